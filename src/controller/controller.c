#include "controller/controller.h"

#include "controller/claims.h"
#include "controller/event.h"
#include "controller/figures.h"
#include "controller/limits.h"
#include "controller/pools.h"
#include "controller/rest.h"
#include "controller/sandbox.h"
#include "controller/templates.h"

#define RECONCILERS_MAX 4

static const char *const label_domains[] = { "sandbox.users.io", NULL };

struct controller {
    struct controller_config config;
    struct shared shared;
    struct reconciler *reconcilers[RECONCILERS_MAX];
    size_t count;
    struct ev_task task;
    struct rest rest;
    size_t closing; /* what has not ended yet */
    void (*closed)(void *ctx);
    void *ctx;
};

/* ---- memory ---- */

static uint64_t work(void *ctx, bool *ret_is_idle)
{
    const struct controller *c = ctx;
    uint64_t passes = 0;
    size_t load = 0;

    for (size_t i = 0; i < c->count; i++) {
        struct queue_stats s;

        queue_stats(c->reconcilers[i]->queue, &s);
        passes += s.done + s.done_after + s.retries;
        load += s.depth + s.working;
    }
    *ret_is_idle = load == 0;
    return passes;
}

/* ---- life ---- */

static void on_synced(void *ctx)
{
    struct controller *c = ctx;

    c->reconcilers[c->count++] = sandboxes_new(&c->shared, &c->config);
    if (c->config.has_extensions) {
        c->reconcilers[c->count++] = templates_new(&c->shared, &c->config);
        c->reconcilers[c->count++] = pools_new(&c->shared, &c->config);
        c->reconcilers[c->count++] = claims_new(&c->shared, &c->config);
    }
    if (c->config
            .is_remote) /* copies of a store of this process are the store's, which sees to its own */
        rest_open(&c->rest, &c->shared, work, c);
    if (c->config.started)
        c->config.started(c->config.ctx);
}

int controller_open(struct kube_client *client, const struct controller_config *config,
                    struct controller **ret, struct err *e)
{
    struct controller *c = NEW(struct controller);

    c->config = *config;
    if (!c->config.label_domains)
        c->config.label_domains = label_domains;
    if (shared_open(&c->shared, client, &c->config, on_synced, c, e) < 0) {
        free(c);
        return -1;
    }
    c->shared.figures = figures_new();
    c->shared.events = events_new(&c->shared);
    *ret = c;
    return 0;
}

/* The copies end after the last pass, which looks at them; what listens to them ends after that. */
static void on_closed(void *ctx)
{
    struct controller *c = ctx;
    void (*closed)(void *) = c->closed;
    void *closed_ctx = c->ctx;

    if (--c->closing > 0)
        return;
    shared_close(&c->shared);
    for (size_t i = 0; i < c->count; i++)
        reconciler_done(c->reconcilers[i]);
    figures_free(c->shared.figures);
    events_close(c->shared.events);
    free(c);
    closed(closed_ctx);
}

void controller_close(struct controller *c, void (*closed)(void *ctx), void *ctx)
{
    c->closed = closed;
    c->ctx = ctx;
    c->closing = c->count + 1;
    rest_close(&c->rest);
    for (size_t i = 0; i < c->count; i++)
        reconciler_close(c->reconcilers[i], on_closed, c);
    ev_post(kube_client_loop(c->shared.client), &c->task, on_closed, c);
}

struct queue *controller_queue(struct controller *c, size_t i)
{
    return i < c->count ? c->reconcilers[i]->queue : NULL;
}

bool controller_memory(struct controller *c, size_t i, const char **ret_kind, size_t *ret_objects,
                       size_t *ret_bytes)
{
    OWN(informer_walk_done) struct informer_walk w = { 0 };
    struct object *o;

    if (i >= SHARED_COUNT || !c->shared.of[i])
        return false;
    *ret_kind = shared_kind_name((enum shared_kind)i);
    *ret_objects = *ret_bytes = 0;
    informer_walk_all(&w, c->shared.of[i]);
    while ((o = informer_walk_next(&w))) {
        ++*ret_objects;
        *ret_bytes += object_memory(o);
    }
    return true;
}

int controller_metrics_write(struct controller *c, struct buf *out, struct err *e)
{
    struct queue *queues[RECONCILERS_MAX];
    size_t n = 0;

    while (n < LEN(queues) && (queues[n] = controller_queue(c, n)))
        n++;
    return queue_metrics_write(queues, n, out, e) < 0 ||
                   shared_metrics_write(&c->shared, out, e) < 0
               ? -1
               : figures_write(c->shared.figures, c->shared.of[SHARED_SANDBOXES], out, e);
}
