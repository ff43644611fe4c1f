#include "controller/rest.h"

#include "controller/limits.h"

#include <malloc.h>

static void on_timer(void *ctx);

static void wait_for_work(struct rest *r)
{
    informer_walk_done(&r->walk);
    ev_timer_start(kube_client_loop(r->shared->client), &r->timer, TRIM_MS, on_timer, r);
}

/* The walk over the next kind that there is; false: that was the last. */
static bool next_kind(struct rest *r)
{
    informer_walk_done(&r->walk);
    while (r->kind < SHARED_COUNT && !r->shared->of[r->kind])
        r->kind++;
    if (r->kind == SHARED_COUNT)
        return false;
    informer_walk_all(&r->walk, r->shared->of[r->kind++]);
    return true;
}

static void pack(void *ctx)
{
    struct rest *r = ctx;
    bool is_idle;

    (void)r->work(r->ctx, &is_idle);
    if (!is_idle) { /* then something will have been done, and this begins again */
        wait_for_work(r);
        return;
    }
    if (informer_pack(&r->walk, PACK_OBJECTS) == 0 && !next_kind(r)) {
        (void)malloc_trim(0);
        wait_for_work(r);
        return;
    }
    ev_timer_start(kube_client_loop(r->shared->client), &r->timer, 1, pack, r);
}

static void on_timer(void *ctx)
{
    struct rest *r = ctx;
    bool is_idle;
    uint64_t done = r->work(r->ctx, &is_idle);

    if (!is_idle || done == r->done) {
        wait_for_work(r);
        return;
    }
    r->done = done;
    r->kind = 0;
    (void)next_kind(r);
    pack(r);
}

void rest_open(struct rest *r, struct shared *shared, rest_work_fn work, void *ctx)
{
    *r = (struct rest){ .shared = shared, .work = work, .ctx = ctx };
    wait_for_work(r);
}

void rest_close(struct rest *r)
{
    if (!r->shared)
        return;
    ev_timer_stop(kube_client_loop(r->shared->client), &r->timer);
    informer_walk_done(&r->walk);
}
