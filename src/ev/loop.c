#include "ev/loop.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/limits.h"
#include "ev/timer.h"

#include <pthread.h>
#include <uv.h>

/* An object on its way out; allocated, because the object itself may be anything. */
struct grave {
    struct grave *next;
    void *obj;
    ev_fn free_fn;
};

struct queue {
    struct ev_task *head, *tail;
};

struct ev_loop {
    uv_loop_t uv;
    uv_idle_t idle;         /* started while tasks are queued: keeps the poll from sleeping */
    uv_async_t wake;        /* rung by other threads */
    struct queue posted;
    struct grave *graves;
    pthread_mutex_t lock;   /* guards remote only */
    struct queue remote;
    struct ev_timers timers;
    uint8_t *scratch;       /* allocated at first use */
};

static void push(struct queue *q, struct ev_task *task)
{
    task->next = NULL;
    if (q->tail)
        q->tail->next = task;
    else
        q->head = task;
    q->tail = task;
}

static void run_task(struct ev_task *task)
{
    ev_fn fn = task->fn;
    void *ctx = task->ctx;
    bool is_canceled = task->is_canceled;
    uint64_t start;

    task->is_queued = task->is_canceled = false;
    if (is_canceled)
        return;
    start = time_mono_ms();
    fn(ctx); /* may free the task */
    if (time_mono_ms() - start > EV_SLOW_CALLBACK_MS)
        log_warn("ev.slow", KV("what", "task"), KV("ms", time_mono_ms() - start));
}

/* Only what was queued before this turn: a task that posts itself again must not starve I/O. */
static void run_posted(struct ev_loop *loop)
{
    struct ev_task *task = loop->posted.head;

    loop->posted = (struct queue){ NULL, NULL };
    while (task) {
        struct ev_task *next = task->next;

        run_task(task);
        task = next;
    }
}

/* One turn: what was posted before it, then the objects that were given up before it. Not those given up during it:
 * a task of theirs, posted and taken back in this same turn, stands in the next turn's queue. */
static void run_turn(struct ev_loop *loop)
{
    struct grave *g = take_ptr(&loop->graves);

    run_posted(loop);
    while (g) {
        struct grave *next = g->next;

        g->free_fn(g->obj);
        free(g);
        g = next;
    }
}

static void settle_idle(struct ev_loop *loop);

static void on_idle(uv_idle_t *idle)
{
    struct ev_loop *loop = idle->data;

    run_turn(loop);
    settle_idle(loop);
}

static void settle_idle(struct ev_loop *loop)
{
    if (loop->posted.head || loop->graves)
        (void)uv_idle_start(&loop->idle, on_idle);
    else
        (void)uv_idle_stop(&loop->idle);
}

static void on_wake(uv_async_t *wake)
{
    struct ev_loop *loop = wake->data;
    struct ev_task *task;

    (void)pthread_mutex_lock(&loop->lock);
    task = loop->remote.head;
    loop->remote = (struct queue){ NULL, NULL };
    (void)pthread_mutex_unlock(&loop->lock);
    while (task) {
        struct ev_task *next = task->next;

        run_task(task);
        task = next;
    }
}

int ev_loop_new(struct ev_loop **ret, struct err *e)
{
    struct ev_loop *loop = NEW(struct ev_loop);
    int r = uv_loop_init(&loop->uv);

    if (r < 0) {
        free(loop);
        return err_errno(e, -r, "cannot create an event loop");
    }
    (void)pthread_mutex_init(&loop->lock, NULL);
    (void)uv_idle_init(&loop->uv, &loop->idle);
    loop->idle.data = loop;
    r = uv_async_init(&loop->uv, &loop->wake, on_wake);
    assert(r == 0);
    loop->wake.data = loop;
    ev_timers_init(&loop->timers, loop);
    *ret = loop;
    return 0;
}

static void close_handle(uv_handle_t *h, void *ctx)
{
    (void)ctx;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

void ev_loop_free(struct ev_loop *loop)
{
    if (!loop)
        return;
    while (loop->posted.head || loop->graves)
        run_turn(loop);
    ev_timers_done(&loop->timers);
    uv_walk(&loop->uv, close_handle, NULL);
    while (uv_run(&loop->uv, UV_RUN_NOWAIT))
        ;
    (void)uv_loop_close(&loop->uv);
    (void)pthread_mutex_destroy(&loop->lock);
    free(loop->scratch);
    free(loop);
}

void ev_loop_run(struct ev_loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void ev_loop_stop(struct ev_loop *loop)
{
    uv_stop(&loop->uv);
    uv_async_send(&loop->wake); /* the stop is seen at the next turn: make sure there is one */
}

void ev_loop_turn(struct ev_loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
}

uint64_t ev_now_ms(const struct ev_loop *loop)
{
    return uv_now(&loop->uv);
}

void ev_post(struct ev_loop *loop, struct ev_task *task, ev_fn fn, void *ctx)
{
    assert(!task->is_queued || task->is_canceled);
    if (task->is_queued) { /* taken back but still in the list: revive it */
        task->is_canceled = false;
        task->fn = fn, task->ctx = ctx;
        return;
    }
    *task = (struct ev_task){ .fn = fn, .ctx = ctx, .is_queued = true };
    push(&loop->posted, task);
    settle_idle(loop);
}

void ev_post_cancel(struct ev_task *task)
{
    task->is_canceled = task->is_queued;
}

void ev_post_remote(struct ev_loop *loop, struct ev_task *task, ev_fn fn, void *ctx)
{
    *task = (struct ev_task){ .fn = fn, .ctx = ctx, .is_queued = true };
    (void)pthread_mutex_lock(&loop->lock);
    push(&loop->remote, task);
    (void)pthread_mutex_unlock(&loop->lock);
    uv_async_send(&loop->wake);
}

void ev_free_later(struct ev_loop *loop, void *obj, ev_fn free_fn)
{
    struct grave *g = NEW(struct grave);

    *g = (struct grave){ loop->graves, obj, free_fn };
    loop->graves = g;
    settle_idle(loop);
}

uint8_t *ev_scratch(struct ev_loop *loop)
{
    if (!loop->scratch)
        loop->scratch = own_new(EV_SCRATCH_BYTES);
    return loop->scratch;
}

struct uv_loop_s *ev_loop_uv(struct ev_loop *loop)
{
    return &loop->uv;
}

struct ev_timers *ev_loop_timers(struct ev_loop *loop)
{
    return &loop->timers;
}
