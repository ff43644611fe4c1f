/* sandbox: the reconciler of Sandboxes: a Pod, a Service and volume claims for each, and its status.
 *
 *     an event -> the queue -> one pass: volume claims, Pod, Service, status; or the two passes of an expiry
 *
 * Owns:     the passes under way. Decisions are pod.h, service.h, volume.h and sandbox_status.h; here they are carried out,
 *           one call at a time. A pass that finds that something changed meanwhile starts over.
 * Used by:  controller.c. All copies in `shared` are synced before it starts.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_SANDBOX_H
#define SILICA_CONTROLLER_SANDBOX_H

#include "controller/controller.h"
#include "controller/defer.h"
#include "controller/reconciler.h"

struct sandboxes {
    struct reconciler base;
    const struct controller_config *config;
    struct defer *metadata; /* labels of Pods that may wait, if the operator lets them */
    struct defer *statuses; /* the first status of a sandbox: the next one mostly follows at once */
};

/* Both borrowed. */
struct reconciler *sandboxes_new(struct shared *shared, const struct controller_config *config);

/* sandbox_pass.c: one look at one Sandbox; it ends the work on the item. */
void sandbox_pass_start(struct sandboxes *r, struct queue_item *item);

#endif
