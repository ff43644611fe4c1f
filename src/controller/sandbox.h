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
#include "ev/timer.h"

/* Writes that may wait. */
enum deferral {
    DEFER_METADATA, /* labels of Pods, if the operator lets them */
    DEFER_STATUS,   /* the first status of a sandbox: the next one mostly follows at once */
    DEFER_MEMBER,   /* the same of a pool's member, which may wait longer */
    DEFER_POD,      /* the Pod of a pool's member */
    DEFER_NUMBERS,  /* a status that has new generations and is otherwise as it was */
    DEFER_COUNT,
};

struct sandboxes {
    struct reconciler base;
    const struct controller_config *config;
    struct waiting_room {
        struct sandboxes *r;
        struct defer *defer;
        struct ev_timer timer; /* until the first of them is due */
    } rooms[DEFER_COUNT];
};

/* True: such a write of the sandbox may still wait, and the sandbox is looked at again when it is due. */
bool sandboxes_defer(struct sandboxes *r, enum deferral what, const struct object *sandbox);
/* There is nothing to be written any more. */
void sandboxes_forget(struct sandboxes *r, enum deferral what, const struct object *sandbox);

/* Both borrowed. */
struct reconciler *sandboxes_new(struct shared *shared, const struct controller_config *config);

/* sandbox_pass.c: one look at one Sandbox; it ends the work on the item. */
void sandbox_pass_start(struct sandboxes *r, struct queue_item *item);

#endif
