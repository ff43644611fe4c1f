/* claims: PersistentVolumeClaims on this machine: plain directories (volumes.h), Bound as soon as they are seen.
 *
 * A claim's directory is made when a Pod first uses it and goes when the claim is gone from the API, also if that happened
 * while nobody watched: what stands on disk is compared with what is there at the start; unless it is another API server's. So
 * a removal that was cut short is taken up again. What sandboxes have mounted stays until they have ended, whatever the API
 * says: they would write into what is being removed.
 *
 * Owns:     a copy of the claims (an informer), the removals under way.
 * Used by:  node.c.
 * Threads:  the loop's; directories are removed by the crew.
 */
#ifndef SILICA_NODE_CLAIMS_H
#define SILICA_NODE_CLAIMS_H

#include "kube/client.h"

struct claims;
struct crew;
struct node;

struct claims_spec {
    struct node *node;          /* whose sandboxes have claims mounted */
    struct kube_client *client; /* outlives it */
    struct crew *crew;
    int dir_fd; /* the data directory; borrowed */
};

int claims_open(const struct claims_spec *spec, struct claims **ret, struct err *e);
/* A claim that was made together with its Pod, if it has been told already: then nobody can have made another of that name
 * meanwhile, and it need not be asked for. NULL: ask. Borrowed for the turn. */
struct object *claims_of_pod(struct claims *cs, const struct object *pod, const char *name);
/* It is known which claims sandboxes have mounted (volumes_in_use.h): nothing is removed before. */
void claims_begin(struct claims *cs);
/* A claim's directory is being removed: no sandbox may be given it. */
bool claims_is_removing(const struct claims *cs, const char *place);
/* A Pod has let go of the directory, which goes if the claim is gone. */
void claims_released(struct claims *cs, const char *place);
/* The claim whose directory that is, as it was last told; NULL: there is none. Borrowed for the turn. */
struct object *claims_at(const struct claims *cs, const char *place);
/* Before the crew is closed. Tolerates NULL. */
void claims_close(struct claims *cs);

#endif
