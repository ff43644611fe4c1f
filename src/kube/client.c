#include "kube/client.h"

struct kube_call *kube_call_start(struct kube_client *c, const struct kube_request *rq,
                                  kube_done_fn done, void *ctx)
{
    return c->ops->call(c, rq, done, ctx);
}

void kube_call_cancel(struct kube_call *call)
{
    call->client->ops->call_cancel(call);
}

struct kube_watch *kube_watch_start(struct kube_client *c, const struct kube_watch_spec *spec,
                                    const struct kube_watch_events *events, void *ctx)
{
    return c->ops->watch(c, spec, events, ctx);
}

void kube_watch_stop(struct kube_watch *w)
{
    w->client->ops->watch_stop(w);
}

void kube_client_free(struct kube_client *c)
{
    if (c)
        c->ops->free(c);
}

struct ev_loop *kube_client_loop(const struct kube_client *c)
{
    return c->loop;
}
