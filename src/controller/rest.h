/* rest: memory that goes back to the system while there is nothing to do.
 *
 * What lists and bursts took stays with the heap otherwise, as holes between the objects that are kept.
 *
 * Used by:  controller.c, where the copies of objects and the process are the controllers' own.
 * Costs:    some ms of the loop now and then, in turns of less than one.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_REST_H
#define SILICA_CONTROLLER_REST_H

#include "controller/shared.h"
#include "ev/timer.h"

/* How much was done so far; *ret_is_idle: and nothing is to be done. */
typedef uint64_t (*rest_work_fn)(void *ctx, bool *ret_is_idle);

struct rest {
    struct shared *shared;
    rest_work_fn work;
    void *ctx;
    uint64_t done; /* by the last rest */
    struct ev_timer timer;
    struct informer_walk walk; /* packing: over the copies of this kind */
    size_t kind;
};

/* Whenever something was done, and all is idle. */
void rest_open(struct rest *r, struct shared *shared, rest_work_fn work, void *ctx);
void rest_close(struct rest *r); /* harmless when it was not opened */

#endif
