#include "node/crew.h"

#include "base/log.h"
#include "ev/io.h"
#include "ev/timer.h"
#include "node/limits.h"

#include <pthread.h>

#define REOPEN_MS 200

struct crew {
    struct ev_loop *loop;
    struct ev_pool *pool;
    char *dir;
    struct box_limits all;
    pthread_mutex_t lock;
    struct engine *spare[NODE_ENGINE_THREADS]; /* under the lock */
    size_t spare_count;
    struct engine *watched; /* the loop's own: its connection tells of the keeper's end */
    struct ev_io keeper_io;
    struct ev_timer reopen;
    struct ev_work reopening;
    struct engine *fresh; /* of the reopening */
    struct err fresh_error;
    bool is_closing;
    ev_fn on_lost;
    void *ctx;
};

static int open_engine(const struct crew *c, struct engine **ret, struct err *e)
{
    return engine_open(&(struct engine_spec){ .dir = c->dir, .starts_keeper = true, .all = c->all },
                       ret, e);
}

/* ---- jobs ---- */

static struct engine *take_engine(struct crew *c, struct err *e)
{
    struct engine *en = NULL;

    (void)pthread_mutex_lock(&c->lock);
    if (c->spare_count)
        en = c->spare[--c->spare_count];
    (void)pthread_mutex_unlock(&c->lock);
    if (!en && open_engine(c, &en, e) < 0)
        return NULL;
    return en;
}

static void give_back(struct crew *c, struct engine *en)
{
    (void)pthread_mutex_lock(&c->lock);
    if (c->spare_count < LEN(c->spare)) {
        c->spare[c->spare_count++] = en;
        en = NULL;
    }
    (void)pthread_mutex_unlock(&c->lock);
    engine_close(en);
}

static void run_job(void *ctx)
{
    struct crew_job *job = ctx;
    struct err e;
    struct engine *en = take_engine(job->crew, &e);

    job->run(job->ctx, en, en ? NULL : &e);
    if (en)
        give_back(job->crew, en);
}

static void job_done(void *ctx)
{
    struct crew_job *job = ctx;
    struct err e;

    if (job->work.is_canceled) {
        (void)err_set(&e, ERR_CANCELED, "the node is ending");
        job->run(job->ctx, NULL, &e);
    }
    job->done(job->ctx);
}

void crew_submit(struct crew *c, struct crew_job *job, crew_run_fn run, ev_fn done, void *ctx)
{
    job->crew = c;
    job->run = run;
    job->done = done;
    job->ctx = ctx;
    ev_pool_submit(c->pool, &job->work, run_job, job_done, job);
}

/* ---- the keeper's end ---- */

static int watch_keeper(struct crew *c, struct err *e);
static void reopen(void *ctx);

static void run_reopen(void *ctx)
{
    struct crew *c = ctx;

    if (open_engine(c, &c->fresh, &c->fresh_error) < 0)
        c->fresh = NULL;
}

static void reopened(void *ctx)
{
    struct crew *c = ctx;
    struct err e;

    if (c->is_closing)
        return;
    c->watched = take_ptr(&c->fresh);
    if (c->watched && watch_keeper(c, &e) == 0) {
        log_warn("keeper.lost", KV("data", c->dir));
        c->on_lost(c->ctx);
        return;
    }
    log_error("keeper.start", KV("err", c->watched ? &e : &c->fresh_error),
              KV("retry_ms", REOPEN_MS));
    engine_close(take_ptr(&c->watched));
    ev_timer_start(c->loop, &c->reopen, REOPEN_MS, reopen, c);
}

static void reopen(void *ctx)
{
    struct crew *c = ctx;

    ev_pool_submit(c->pool, &c->reopening, run_reopen, reopened, c);
}

/* Nothing is asked on this connection, so whatever comes is its end. */
static void on_keeper(void *ctx, unsigned ready)
{
    struct crew *c = ctx;

    (void)ready;
    ev_io_close(&c->keeper_io);
    engine_close(take_ptr(&c->watched));
    reopen(c);
}

static int watch_keeper(struct crew *c, struct err *e)
{
    if (ev_io_open_shared(&c->keeper_io, c->loop, engine_keeper_fd(c->watched), on_keeper, c, e) <
        0)
        return -1;
    ev_io_want(&c->keeper_io, EV_READ);
    return 0;
}

/* ---- life ---- */

int crew_open(struct ev_loop *loop, const struct crew_spec *spec, struct crew **ret, struct err *e)
{
    struct crew *c = NEW(struct crew);

    c->loop = loop;
    c->dir = own_strdup(spec->data);
    c->all = spec->all;
    c->on_lost = spec->on_lost;
    c->ctx = spec->ctx;
    (void)pthread_mutex_init(&c->lock, NULL);
    if (open_engine(c, &c->watched, e) == 0 && watch_keeper(c, e) == 0 &&
        ev_pool_new(loop, "engine", NODE_ENGINE_THREADS, &c->pool, e) == 0) {
        *ret = c;
        return 0;
    }
    crew_close(c);
    return -1;
}

void crew_close(struct crew *c)
{
    if (!c)
        return;
    c->is_closing = true;
    ev_timer_stop(c->loop, &c->reopen);
    if (c->pool)
        ev_pool_free(c->pool);
    if (ev_io_is_open(&c->keeper_io))
        ev_io_close(&c->keeper_io);
    engine_close(c->watched);
    engine_close(c->fresh);
    while (c->spare_count)
        engine_close(c->spare[--c->spare_count]);
    (void)pthread_mutex_destroy(&c->lock);
    free(c->dir);
    free(c);
}

const char *crew_dir(const struct crew *c)
{
    return c->dir;
}
