#include "ev/loop.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/io.h"
#include "ev/limits.h"
#include "ev/timer.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* An object on its way out. */
struct grave {
    void *obj;
    ev_fn free_fn;
};

/* A list that keeps its memory: every request has some. */
struct graves {
    struct grave *p;
    size_t n, cap;
};

struct queue {
    struct ev_task *head, *tail;
};

/* Blocks of one size that nobody has. */
struct spare {
    struct spare *next;
};

struct spares {
    struct spare *first;
    size_t size;
    unsigned count;
};

struct ev_loop {
    int epoll_fd;
    int wake_fd; /* an eventfd, rung by other threads */
    struct ev_io wake;
    bool is_stopped, is_rung; /* is_rung: atomic, one ring per batch is enough */
    uint64_t now_ms;
    struct ev_poll *closed; /* may still stand in the batch of events under way */
    struct queue posted;
    struct ev_task *left;      /* of the turn under way: what runs after the task that runs */
    struct graves graves, dug; /* dug: empty, the memory of the turn before */
    pthread_mutex_t lock;      /* guards remote only */
    struct queue remote;
    struct ev_timers timers;
    uint8_t *scratch; /* allocated at first use */
    struct spares spares[EV_BLOCK_SIZES];
    struct buf text; /* ev_text_take; empty */
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
    start = time_coarse_ms();
    fn(ctx); /* may free the task */
    if (time_coarse_ms() - start > EV_SLOW_CALLBACK_MS)
        log_warn("ev.slow", KV("what", "task"), KV("ms", time_coarse_ms() - start));
}

/* Only what was queued before this turn: a task that posts itself again must not starve I/O. */
static void run_posted(struct ev_loop *loop)
{
    struct ev_task *task = loop->posted.head;

    loop->posted = (struct queue){ NULL, NULL };
    while (task) {
        struct ev_task *next = task->next;

        loop->left = next;
        run_task(task);
        task = next;
    }
    loop->left = NULL;
}

/* One turn: what was posted before it, then the objects that were given up before it. Not those given up during it:
 * a task of theirs, posted and taken back in this same turn, stands in the next turn's queue. */
static void run_turn(struct ev_loop *loop)
{
    struct graves due = loop->graves;

    loop->graves = loop->dug;
    loop->dug = (struct graves){ 0 };
    run_posted(loop);
    for (size_t i = due.n; i--;) /* who came last goes first: what it stands on came before it */
        due.p[i].free_fn(due.p[i].obj);
    due.n = 0;
    free(loop->dug.p); /* of a turn within this one */
    if (due.cap > EV_GRAVES_KEPT) {
        free(due.p);
        due = (struct graves){ 0 };
    }
    loop->dug = due;
}

static void on_wake(void *ctx, unsigned ready)
{
    struct ev_loop *loop = ctx;
    struct ev_task *task;
    uint64_t rings;

    (void)ready;
    (void)!read(loop->wake_fd, &rings, sizeof rings);
    __atomic_store_n(&loop->is_rung, false, __ATOMIC_SEQ_CST);
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

    (void)pthread_mutex_init(&loop->lock, NULL);
    ev_timers_init(&loop->timers);
    loop->now_ms = time_mono_ms();
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->wake_fd < 0) {
        (void)err_sys(e, "cannot create an event loop");
        ev_loop_free(loop);
        return -1;
    }
    if (ev_io_open(&loop->wake, loop, loop->wake_fd, on_wake, loop, e) < 0) {
        ev_loop_free(loop);
        return -1;
    }
    ev_io_want(&loop->wake, EV_READ);
    *ret = loop;
    return 0;
}

static void free_closed(struct ev_loop *loop)
{
    struct ev_poll *p = take_ptr(&loop->closed);

    while (p) {
        struct ev_poll *next = p->next;

        free(p);
        p = next;
    }
}

static void free_spares(struct ev_loop *loop)
{
    EACH(s, loop->spares) {
        while (s->first) {
            struct spare *next = s->first->next;

            free(s->first);
            s->first = next;
        }
    }
}

void ev_loop_free(struct ev_loop *loop)
{
    if (!loop)
        return;
    while (loop->posted.head || loop->graves.n)
        run_turn(loop);
    free(loop->graves.p);
    free(loop->dug.p);
    free_spares(loop);
    ev_timers_done(&loop->timers);
    ev_io_close(&loop->wake);
    free_closed(loop);
    own_fd_close(&loop->wake_fd);
    own_fd_close(&loop->epoll_fd);
    (void)pthread_mutex_destroy(&loop->lock);
    free(loop->scratch);
    buf_done(&loop->text);
    free(loop);
}

/* How long the poll may sleep: not at all while tasks wait, else until the next deadline. */
static int poll_ms(const struct ev_loop *loop)
{
    uint64_t due = ev_timers_due_ms(&loop->timers);

    if (loop->posted.head || loop->graves.n || loop->is_stopped)
        return 0;
    if (due == UINT64_MAX)
        return -1;
    return due > loop->now_ms ? (int)MIN(due - loop->now_ms, (uint64_t)INT32_MAX) : 0;
}

static void turn(struct ev_loop *loop, bool may_wait)
{
    struct epoll_event events[EV_EVENTS_PER_TURN];
    int n;

    loop->now_ms = time_mono_ms();
    ev_timers_run(&loop->timers, loop->now_ms);
    run_turn(loop);
    n = epoll_wait(loop->epoll_fd, events, EV_EVENTS_PER_TURN, may_wait ? poll_ms(loop) : 0);
    assert(n >= 0 || errno == EINTR);
    loop->now_ms = time_mono_ms();
    for (int i = 0; i < n; i++)
        ev_poll_ready(events[i].data.ptr, events[i].events);
    free_closed(loop);
}

void ev_loop_run(struct ev_loop *loop)
{
    loop->is_stopped = false;
    while (!loop->is_stopped)
        turn(loop, true);
}

void ev_loop_stop(struct ev_loop *loop)
{
    loop->is_stopped = true;
}

void ev_loop_turn(struct ev_loop *loop)
{
    turn(loop, false);
}

uint64_t ev_now_ms(const struct ev_loop *loop)
{
    return loop->now_ms;
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
}

void ev_post_aside(struct ev_loop *loop, struct ev_task *task, ev_fn fn, void *ctx)
{
    ev_post(loop, task, fn, ctx);
    task->is_aside = true;
}

static bool has_pressing(const struct ev_task *task)
{
    while (task && task->is_aside)
        task = task->next;
    return task;
}

bool ev_has_posted(const struct ev_loop *loop)
{
    return has_pressing(loop->left) || has_pressing(loop->posted.head);
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
    if (!__atomic_exchange_n(&loop->is_rung, true, __ATOMIC_SEQ_CST)) {
        uint64_t ring = 1;

        (void)!write(loop->wake_fd, &ring, sizeof ring);
    }
}

void ev_free_later(struct ev_loop *loop, void *obj, ev_fn free_fn)
{
    struct graves *g = &loop->graves;

    if (g->n == g->cap) {
        g->cap = g->cap ? g->cap * 2 : EV_GRAVES_FIRST;
        g->p = own_resize(g->p, g->cap, sizeof g->p[0]);
    }
    g->p[g->n++] = (struct grave){ obj, free_fn };
}

/* NULL: no place is left for another size. */
static struct spares *spares_of(struct ev_loop *loop, size_t size)
{
    assert(size >= sizeof(struct spare));
    EACH(s, loop->spares) {
        if (!s->size)
            s->size = size;
        if (s->size == size)
            return s;
    }
    return NULL;
}

void *ev_block_new(struct ev_loop *loop, size_t size)
{
    struct spares *s = spares_of(loop, size);
    struct spare *block = s ? s->first : NULL;

    if (!block)
        return own_new(size);
    s->first = block->next;
    s->count--;
    return memset(block, 0, size);
}

void ev_block_free(struct ev_loop *loop, void *block, size_t size)
{
    struct spares *s = spares_of(loop, size);
    struct spare *spare = block;

    if (!s || s->count == EV_BLOCKS_KEPT) {
        free(block);
        return;
    }
    spare->next = s->first;
    s->first = spare;
    s->count++;
}

void ev_text_take(struct ev_loop *loop, struct buf *empty)
{
    buf_pass_block(empty, &loop->text);
}

void ev_text_give(struct ev_loop *loop, struct buf *done)
{
    if (loop->text.p || done->cap > EV_TEXT_KEPT_BYTES)
        buf_done(done);
    else
        buf_pass_block(&loop->text, done);
}

uint8_t *ev_scratch(struct ev_loop *loop)
{
    if (!loop->scratch)
        loop->scratch =
            own_resize(NULL, EV_SCRATCH_BYTES, 1); /* not zeroed: most is never touched */
    return loop->scratch;
}

int ev_loop_epoll(const struct ev_loop *loop)
{
    return loop->epoll_fd;
}

void ev_loop_bury_poll(struct ev_loop *loop, struct ev_poll *p)
{
    p->next = loop->closed;
    loop->closed = p;
}

struct ev_timers *ev_loop_timers(struct ev_loop *loop)
{
    return &loop->timers;
}
