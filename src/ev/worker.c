#include "ev/worker.h"

#include "ev/limits.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

struct ev_pool {
    struct ev_loop *loop;
    char name[16];
    unsigned max_threads;
    size_t load;          /* loop's thread only */
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t more, gone;
    struct ev_work *head, *tail;
    unsigned threads, idle, queued;
    bool is_closing;
};

static void finish(void *ctx)
{
    struct ev_work *work = ctx;

    work->pool->load--;
    work->done(work->ctx);
}

/* Waits for work; NULL when there was none for long enough, or the pool closes. The lock is held. */
static struct ev_work *next_work(struct ev_pool *pool)
{
    struct ev_work *work;
    struct timespec until;
    int r = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += EV_WORKER_IDLE_MS / 1000;
    while (!pool->head && !pool->is_closing && r != ETIMEDOUT) {
        pool->idle++;
        r = pthread_cond_timedwait(&pool->more, &pool->lock, &until);
        pool->idle--;
    }
    work = pool->head;
    if (!work)
        return NULL;
    pool->head = work->next;
    pool->queued--;
    if (!pool->head)
        pool->tail = NULL;
    return work;
}

static void *worker_main(void *ctx)
{
    struct ev_pool *pool = ctx;

    (void)pthread_setname_np(pthread_self(), pool->name);
    (void)pthread_mutex_lock(&pool->lock);
    for (struct ev_work *work = next_work(pool); work; work = next_work(pool)) {
        (void)pthread_mutex_unlock(&pool->lock);
        if (!work->is_canceled)
            work->run(work->ctx);
        ev_post_remote(pool->loop, &work->done_task, finish, work);
        (void)pthread_mutex_lock(&pool->lock);
    }
    pool->threads--;
    (void)pthread_cond_signal(&pool->gone);
    (void)pthread_mutex_unlock(
        &pool->lock); /* the last touch: ev_pool_free may free the pool now */
    return NULL;
}

int ev_pool_new(struct ev_loop *loop, const char *name, unsigned max_threads, struct ev_pool **ret,
                struct err *e)
{
    struct ev_pool *pool;
    pthread_condattr_t attr;

    if (max_threads == 0)
        return err_set(e, ERR_INVALID, "a pool needs at least one thread");
    pool = NEW(struct ev_pool);
    pool->loop = loop;
    pool->max_threads = max_threads;
    (void)snprintf(pool->name, sizeof pool->name, "%s", name);
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&pool->more, &attr);
    (void)pthread_cond_init(&pool->gone, NULL);
    (void)pthread_condattr_destroy(&attr);
    *ret = pool;
    return 0;
}

/* Signals belong to the loop's thread: a worker starts with all of them blocked. */
static int start_thread(struct ev_pool *pool)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    int r;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, EV_WORKER_STACK_BYTES);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&thread, &attr, worker_main, pool);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attr);
    return r;
}

/* True when somebody will come to the work: a thread that waits, one that was started now, or one that is busy. The
 * lock is held. */
static bool find_thread(struct ev_pool *pool, bool *ret_wakes)
{
    *ret_wakes = pool->idle > 0;
    if (pool->queued > pool->idle && pool->threads < pool->max_threads && start_thread(pool) == 0)
        pool->threads++;
    return pool->threads > 0;
}

void ev_pool_submit(struct ev_pool *pool, struct ev_work *work, ev_fn run, ev_fn done, void *ctx)
{
    bool has_thread, wakes;

    *work = (struct ev_work){ .run = run, .done = done, .ctx = ctx, .pool = pool };
    pool->load++;
    (void)pthread_mutex_lock(&pool->lock);
    if (pool->tail)
        pool->tail->next = work;
    else
        pool->head = work;
    pool->tail = work;
    pool->queued++;
    has_thread = find_thread(pool, &wakes);
    if (!has_thread) { /* none to be had: the loop does the work itself rather than lose it */
        pool->head = pool->tail = NULL;
        pool->queued = 0;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (has_thread && wakes)
        (void)pthread_cond_signal(
            &pool->more); /* outside the lock, which the woken thread wants first thing */
    if (has_thread)
        return;
    work->run(work->ctx);
    ev_post(pool->loop, &work->done_task, finish, work);
}

size_t ev_pool_load(const struct ev_pool *pool)
{
    return pool->load;
}

void ev_pool_free(struct ev_pool *pool)
{
    if (!pool)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    for (struct ev_work *w = pool->head; w; w = w->next)
        w->is_canceled = true;
    pool->is_closing = true;
    (void)pthread_cond_broadcast(&pool->more);
    while (pool->threads)
        (void)pthread_cond_wait(&pool->gone, &pool->lock);
    (void)pthread_mutex_unlock(&pool->lock);
    while (pool->load)
        ev_loop_turn(pool->loop);
    (void)pthread_cond_destroy(&pool->more);
    (void)pthread_cond_destroy(&pool->gone);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}
