/* worker: threads for work that may block: files, spawning, name service.
 *
 * Owns:     the threads: started on need up to the pool's ceiling, ended when idle, so that an idle process has
 *           one thread. Work runs in the order it came.
 * Threads:  ev_pool_submit on the loop's; run() on a worker, done() back on the loop's, exactly once, also when
 *           the pool is closed before the work began (is_canceled is then set and run was not called).
 */
#ifndef SILICA_EV_WORKER_H
#define SILICA_EV_WORKER_H

#include "ev/loop.h"

struct ev_pool;

struct ev_work {
    struct ev_task done_task;
    struct ev_work *next;
    ev_fn run;  /* on a worker thread; must not touch the loop */
    ev_fn done; /* on the loop */
    void *ctx;
    struct ev_pool *pool;
    bool is_canceled;
};

int ev_pool_new(struct ev_loop *loop, const char *name, unsigned max_threads, struct ev_pool **ret,
                struct err *e);
/* The work's memory is the caller's and must live until done(). */
void ev_pool_submit(struct ev_pool *pool, struct ev_work *work, ev_fn run, ev_fn done, void *ctx);
/* Work submitted and not yet done. */
size_t ev_pool_load(const struct ev_pool *pool);
/* Cancels what has not begun, waits for what has, ends the threads. done() of all of it has run on return. */
void ev_pool_free(struct ev_pool *pool);

#endif
