#include "controller/controller.h"

#include "controller/sandbox.h"
#include "controller/shared.h"
#include "ev/loop.h"

#define QUEUES_MAX 4

struct controller {
    struct controller_config config;
    struct shared shared;
    struct sandboxes *sandboxes;
    struct queue *queues[QUEUES_MAX];
    size_t queue_count;
    struct ev_task task;
    size_t closing; /* reconcilers that have not ended */
    void (*closed)(void *ctx);
    void *ctx;
};

static void on_synced(void *ctx)
{
    struct controller *c = ctx;

    c->sandboxes = sandboxes_start(&(struct sandboxes_config){ &c->shared, c->config.cluster_domain,
                                                               c->config.sandbox_workers });
    c->queues[c->queue_count++] = sandboxes_queue(c->sandboxes);
    if (c->config.started)
        c->config.started(c->config.ctx);
}

int controller_open(struct kube_client *client, const struct controller_config *config,
                    struct controller **ret, struct err *e)
{
    struct controller *c = NEW(struct controller);

    c->config = *config;
    if (shared_open(&c->shared, client, config->has_extensions, on_synced, c, e) < 0) {
        free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

static void on_closed(void *ctx)
{
    struct controller *c = ctx;
    void (*closed)(void *) = c->closed;
    void *closed_ctx = c->ctx;

    if (--c->closing > 0)
        return;
    shared_close(&c->shared);
    sandboxes_free(c->sandboxes);
    free(c);
    closed(closed_ctx);
}

void controller_close(struct controller *c, void (*closed)(void *ctx), void *ctx)
{
    c->closed = closed;
    c->ctx = ctx;
    c->closing = 1 + (c->sandboxes ? 1 : 0);
    if (c->sandboxes)
        sandboxes_close(c->sandboxes, on_closed, c);
    ev_post(kube_client_loop(c->shared.client), &c->task, on_closed, c);
}

struct queue *const *controller_queues(struct controller *c, size_t *ret_count)
{
    *ret_count = c->queue_count;
    return c->queues;
}
