#include "ev/timer.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/limits.h"

void ev_timers_init(struct ev_timers *ts)
{
    *ts = (struct ev_timers){ 0 };
}

void ev_timers_done(struct ev_timers *ts)
{
    for (size_t i = 0; i < ts->n; i++)
        ts->heap[i]->slot = 0;
    free(ts->heap);
    ev_timers_init(ts);
}

uint64_t ev_timers_due_ms(const struct ev_timers *ts)
{
    return ts->n ? ts->heap[0]->due_ms : UINT64_MAX;
}

static void put(struct ev_timers *ts, size_t i, struct ev_timer *t)
{
    ts->heap[i] = t;
    t->slot = i + 1;
}

static void sift_up(struct ev_timers *ts, size_t i)
{
    struct ev_timer *t = ts->heap[i];

    for (; i && ts->heap[(i - 1) / 2]->due_ms > t->due_ms; i = (i - 1) / 2)
        put(ts, i, ts->heap[(i - 1) / 2]);
    put(ts, i, t);
}

static void sift_down(struct ev_timers *ts, size_t i)
{
    struct ev_timer *t = ts->heap[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < ts->n && ts->heap[child + 1]->due_ms < ts->heap[child]->due_ms)
            child++;
        if (child >= ts->n || ts->heap[child]->due_ms >= t->due_ms)
            break;
        put(ts, i, ts->heap[child]);
        i = child;
    }
    put(ts, i, t);
}

static void take_out(struct ev_timers *ts, struct ev_timer *t)
{
    size_t i = t->slot - 1;
    struct ev_timer *last = ts->heap[--ts->n];

    t->slot = 0;
    if (last == t)
        return;
    put(ts, i, last);
    sift_down(ts, i);
    sift_up(ts, last->slot - 1);
}

void ev_timers_run(struct ev_timers *ts, uint64_t now_ms)
{
    ts->is_running = true;
    while (ts->n && ts->heap[0]->due_ms <= now_ms) {
        struct ev_timer *t = ts->heap[0];
        uint64_t start = time_mono_ms();

        take_out(ts, t);
        t->fn(t->ctx); /* may free t, or start it again: for a later turn, as due > now */
        if (time_mono_ms() - start > EV_SLOW_CALLBACK_MS)
            log_warn("ev.slow", KV("what", "timer"), KV("ms", time_mono_ms() - start));
    }
    ts->is_running = false;
}

void ev_timer_start(struct ev_loop *loop, struct ev_timer *t, uint64_t ms, ev_fn fn, void *ctx)
{
    struct ev_timers *ts = ev_loop_timers(loop);

    if (t->slot)
        take_out(ts, t);
    if (ts->n == ts->cap) {
        ts->cap = ts->cap ? ts->cap * 2 : 16;
        ts->heap = own_resize(ts->heap, ts->cap, sizeof(struct ev_timer *));
    }
    t->fn = fn;
    t->ctx = ctx;
    t->due_ms = ev_now_ms(loop) + (ts->is_running ? MAX(ms, (uint64_t)1) : ms);
    put(ts, ts->n++, t);
    sift_up(ts, ts->n - 1);
}

void ev_timer_stop(struct ev_loop *loop, struct ev_timer *t)
{
    if (t->slot)
        take_out(ev_loop_timers(loop), t);
}

bool ev_timer_is_running(const struct ev_timer *t)
{
    return t->slot != 0;
}
