/* timer: deadlines. Embedded in the object they guard, so that the object can be freed as soon as its timer
 * is stopped. The loop sleeps until the earliest of all.
 *
 * Owns:     the heap's array; a timer is its owner's memory.
 * Threads:  the loop's.
 */
#ifndef SILICA_EV_TIMER_H
#define SILICA_EV_TIMER_H

#include "ev/loop.h"

struct ev_timer {
    uint64_t due_ms;
    ev_fn fn;
    void *ctx;
    size_t slot; /* place in the heap plus one; 0 means not running */
};

/* Calls fn(ctx) once, after at least `ms`. Starting a running timer moves it. */
void ev_timer_start(struct ev_loop *loop, struct ev_timer *t, uint64_t ms, ev_fn fn, void *ctx);
void ev_timer_stop(struct ev_loop *loop, struct ev_timer *t);
bool ev_timer_is_running(const struct ev_timer *t);

/* The heap; for loop.c. */
struct ev_timers {
    struct ev_timer **heap;
    size_t n, cap;
    bool is_running; /* inside the callbacks: what is started now is for a later turn */
};
void ev_timers_init(struct ev_timers *ts);
void ev_timers_done(struct ev_timers *ts);
void ev_timers_run(struct ev_timers *ts, uint64_t now_ms);
uint64_t ev_timers_due_ms(const struct ev_timers *ts); /* UINT64_MAX without a timer */

#endif
