/* pod_status: what a Pod's status says, as the kubelet writes it, made from how its containers stand.
 *
 * Owns:     nothing; trees are of the caller's edit. No I/O and no clock.
 * Used by:  work.c.
 */
#ifndef SILICA_NODE_POD_STATUS_H
#define SILICA_NODE_POD_STATUS_H

#include "kube/object.h"
#include "node/life.h"

#include <time.h>

/* Of Pods whose address is asked for (address_demand.h); claims wait for it. Only the node writes it. */
#define POD_STATUS_ADDRESSES "silica.dev/PodAddresses"
#define POD_STATUS_LISTENING "Listening"         /* the reason with which it is True */
#define POD_STATUS_STRANGERS "PortTakenByOthers" /* by an account that is neither root nor ours */

struct pod_status_spec {
    const struct object *pod;
    const struct life_pod *life;
    const char *ip;           /* of the Pod; "": it has none yet */
    const char *host_ip;      /* of the node */
    const char *message;      /* of life->failed; may be NULL */
    const char *ports_reason; /* of POD_STATUS_ADDRESSES; NULL: the Pod does not have it */
    const char *(*image_id)(void *ctx, const char *image); /* may be NULL */
    void *ctx;
    time_t now;
};

/* A merge patch of those members of the status that are not so yet. NULL: all of it is so. */
struct json_node *pod_status_patch(const struct pod_status_spec *s, struct json_edit *ed);

#endif
