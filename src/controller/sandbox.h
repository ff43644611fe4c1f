/* sandbox: the reconciler of Sandboxes: a Pod, a Service and volume claims for each, and its status.
 *
 *     an event -> the queue -> one pass: volume claims, Pod, Service, status; or the two passes of an expiry
 *
 * Owns:     its queue and the passes under way. Decisions are pod.h, service.h, volume.h and sandbox_status.h; here they
 *           are carried out, one call at a time. A pass that finds that something changed meanwhile starts over.
 * Used by:  controller.c. All copies in `shared` are synced before it starts.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_SANDBOX_H
#define SILICA_CONTROLLER_SANDBOX_H

#include "controller/shared.h"

struct sandboxes;
struct queue;

struct sandboxes_config {
    struct shared *shared;      /* borrowed */
    const char *cluster_domain; /* the same */
    unsigned workers;
};

struct sandboxes *sandboxes_start(const struct sandboxes_config *config);
struct queue *sandboxes_queue(struct sandboxes *r);
/* No pass is started any more; `closed` comes when the last has ended. */
void sandboxes_close(struct sandboxes *r, void (*closed)(void *ctx), void *ctx);
/* Once the copies it listens to are closed. */
void sandboxes_free(struct sandboxes *r);

#endif
