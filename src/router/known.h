/* known: sandboxes by the cluster's own word: copies of its Pods and Sandboxes, kept up by watches.
 *
 * Owns:     both copies, and which Pods turned out to be unreachable.
 * Rule:     a target must be a known sandbox. A Pod address must be that of a Pod which the named Sandbox manages: an
 *           address that was given back and is somebody else's now leads nowhere.
 * Address:  status.podIP alone is connected to; one in a request only says which Pod is meant.
 * Order:    the Pod address of the request, else the uid, else the name; a pool's member that nobody claimed has no name yet.
 * Used by:  the router, as its picker.
 * Threads:  the loop's.
 */
#ifndef SILICA_ROUTER_KNOWN_H
#define SILICA_ROUTER_KNOWN_H

#include "router/pick.h"

struct kube_client;

struct known_config {
    struct kube_client *client; /* NULL: nothing is known, and all is allowed that is unlisted */
    struct ev_loop *loop;
    const char *namespace;      /* NULL: all */
    const char *cluster_domain; /* for names of Services */
    /* Pod addresses that nobody lists, and names by DNS: what the public routers do. */
    bool is_unlisted_allowed;
    /* Both copies are there. Once, in a later turn. */
    void (*synced)(void *ctx);
    void *ctx;
};

int known_new(const struct known_config *config, struct picker **ret, struct err *e);
void known_free(struct picker *p); /* nobody may wait any more */

#endif
