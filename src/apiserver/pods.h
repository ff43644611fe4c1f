/* pods: the way from a Pod to its pod side: the process that has it, and speaks podstream on a socket of its own.
 *
 *     struct pods *pods = node_pods(...);                whoever runs Pods implements it
 *     apiserver_open(loop, &(struct apiserver_config){ .pods = pods, ... }, ...);
 *
 * Owns:     nothing. Whoever implements it outlives the API server.
 * Used by:  stream.c. Implemented by cli/pod_side.c for tests, and by the node.
 * Trust:    whoever may come was decided here, so the pod side asks nobody: only this process may connect to it. What it
 *           answers is passed on unread.
 * Asked:    GET or POST /api/v1/namespaces/NS/pods/NAME/{exec,attach,portforward}?QUERY&container=C&uid=UID with the
 *           client's own query first, and GET .../log?container=C&uid=UID with follow, previous, timestamps, tailLines,
 *           limitBytes, since (a time in UTC) and stream where they were given. A port-forward to a Pod that wants_caller
 *           has caller={"user":NAME,"groups":[NAME,...]} as its last word. Of two equal names the last one counts.
 */
#ifndef SILICA_APISERVER_PODS_H
#define SILICA_APISERVER_PODS_H

#include "kube/object.h"
#include "net/addr.h"

struct pods {
    const struct pods_ops *ops;
};
struct pods_ops {
    /* Where the pod side of this Pod listens; its namespace, name and uid say which it is. -1: ERR_NOT_FOUND when nobody has
     * it (yet), anything else when who has it cannot be reached. */
    int (*find)(struct pods *p, const struct object *pod, struct net_addr *ret, struct err *e);
    /* A port of it leads further than to the Pod, as the router's does: its pod side is told who asks, and judges by that.
     * NULL: no such Pod. */
    bool (*wants_caller)(struct pods *p, const struct object *pod);
};

#endif
