/* slices: long answers, a slice at a time. Whatever waits its turn here, other connections wait for one slice only.
 *
 * Owns:     the queue. In each turn of the loop the first in it run, until SLICES_TURN_US are over.
 * Used by:  lists and the beginnings of watches. Each run of theirs ends by itself within SLICE_US (slice_is_over), and
 *           queues itself again behind the others when there is more.
 * Threads:  the loop's.
 */
#ifndef SILICA_APISERVER_SLICES_H
#define SILICA_APISERVER_SLICES_H

#include "ev/loop.h"

#define SLICE_US       200 /* of one: a create is held up by some of these, and may be by 5 ms */
#define SLICES_TURN_US 200 /* of all in a turn; the one that passes it is the last */

struct slice {
    struct slice *next, **link;
    ev_fn fn;
    void *ctx;
    bool is_queued;
};

struct slices {
    struct ev_loop *loop;
    struct slice *first, **last;
    struct ev_task task;
    uint64_t began_us; /* the one that runs */
};

void slices_init(struct slices *s, struct ev_loop *loop);
/* Harmless when it is queued already. */
void slices_add(struct slices *s, struct slice *one, ev_fn fn, void *ctx);
void slices_cancel(struct slices *s, struct slice *one); /* harmless when it is not queued */
/* For one that runs without having been queued: its time begins now. */
void slice_begin(struct slices *s);
/* The one that runs has had its time. */
bool slice_is_over(const struct slices *s);
void slices_done(struct slices *s); /* none is queued */

#endif
