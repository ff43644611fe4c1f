#include "apiserver/slices.h"

#include "base/time.h"

void slices_init(struct slices *s, struct ev_loop *loop)
{
    *s = (struct slices){ .loop = loop };
    s->last = &s->first;
}

static void run(void *ctx)
{
    struct slices *s = ctx;
    uint64_t began_us;

    slice_begin(s);
    /* The first one runs whatever the clock says: this thread may have stood still since. */
    for (began_us = s->began_us; s->first && s->began_us - began_us < SLICES_TURN_US;
         slice_begin(s)) {
        struct slice *one = s->first;

        slices_cancel(s, one);
        one->fn(one->ctx);
    }
    if (s->first && !s->task.is_queued)
        ev_post_aside(s->loop, &s->task, run, s);
}

void slices_add(struct slices *s, struct slice *one, ev_fn fn, void *ctx)
{
    if (one->is_queued)
        return;
    *one = (struct slice){ .link = s->last, .fn = fn, .ctx = ctx, .is_queued = true };
    *s->last = one;
    s->last = &one->next;
    if (!s->task.is_queued)
        ev_post_aside(s->loop, &s->task, run, s);
}

void slices_cancel(struct slices *s, struct slice *one)
{
    if (!one->is_queued)
        return;
    one->is_queued = false;
    *one->link = one->next;
    if (one->next)
        one->next->link = one->link;
    else
        s->last = one->link;
}

void slice_begin(struct slices *s)
{
    s->began_us = time_mono_us();
}

bool slice_is_over(const struct slices *s)
{
    return time_mono_us() - s->began_us >= SLICE_US;
}

void slices_done(struct slices *s)
{
    assert(!s->first);
    ev_post_cancel(&s->task);
}
