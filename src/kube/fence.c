#include "kube/fence.h"

#include "base/log.h"
#include "ev/loop.h"

struct fence {
    struct kube_client client;
    struct kube_client *inner;
    const struct lease *lease;
};

/* A write that is not made. */
struct held_back {
    struct kube_call call;
    kube_done_fn done;
    void *ctx;
    struct ev_task task;
};

static void on_turn(void *ctx)
{
    struct held_back *h = ctx;
    OWN(status_done) struct status st = STATUS_INIT;

    (void)buf_add_capped(&st.message, SPAN("the Lease is not held any more"));
    h->done(h->ctx, &(struct kube_answer){ .refusal = &st });
    ev_free_later(h->call.client->loop, h, free);
}

static bool is_write(enum kube_verb verb)
{
    switch (verb) {
    case KUBE_GET:
    case KUBE_LIST:
        return false;
    case KUBE_CREATE:
    case KUBE_UPDATE:
    case KUBE_PATCH:
    case KUBE_DELETE:
    case KUBE_DELETE_COLLECTION:
        break;
    }
    return true;
}

static struct kube_call *call(struct kube_client *c, const struct kube_request *rq,
                              kube_done_fn done, void *ctx)
{
    struct fence *f = CONTAINER(c, struct fence, client);
    struct held_back *h;

    if (!is_write(rq->verb) || lease_is_held(f->lease))
        return kube_call_start(f->inner, rq, done, ctx);
    log_warn("fence.write", KV("kind", rq->kind->name), KV("name", rq->name ? rq->name : ""));
    h = NEW(struct held_back);
    *h = (struct held_back){ .call.client = c, .done = done, .ctx = ctx };
    ev_post(c->loop, &h->task, on_turn, h);
    return &h->call;
}

/* Only of what is held back, and that is answered anyway: other calls are the inner client's. */
static void call_cancel(struct kube_call *held)
{
    (void)held;
}

static struct kube_watch *watch(struct kube_client *c, const struct kube_watch_spec *spec,
                                const struct kube_watch_events *events, void *ctx)
{
    return kube_watch_start(CONTAINER(c, struct fence, client)->inner, spec, events, ctx);
}

static void watch_stop(struct kube_watch *w)
{
    (void)w; /* never ours */
}

static void fence_free(struct kube_client *c)
{
    free(CONTAINER(c, struct fence, client));
}

struct kube_client *fence_new(struct kube_client *client, const struct lease *lease)
{
    static const struct kube_client_ops ops = { call, call_cancel, watch, watch_stop, fence_free };
    struct fence *f = NEW(struct fence);

    *f = (struct fence){ .client = { &ops, kube_client_loop(client) },
                         .inner = client,
                         .lease = lease };
    return &f->client;
}
