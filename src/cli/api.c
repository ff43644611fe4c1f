#include "cli/api.h"

#include "ev/loop.h"
#include "kubeclient/kubeclient.h"

#define TIMEOUT_MS 10000

struct waiter {
    struct ev_loop *loop;
    kube_done_fn fn;
    void *ctx;
    struct err *e;
    int rc;
};

int api_open(struct api *a, const char *kubeconfig, struct err *e)
{
    struct kubeconfig k = { 0 };
    int rc;

    if (kubeconfig_load(&(struct kubeconfig_choice){ .file = kubeconfig }, &k, e) < 0)
        return -1;
    if (ev_loop_new(&a->loop, e) < 0) {
        kubeconfig_done(&k);
        return -1;
    }
    rc = kubeclient_new(a->loop,
                        &(struct kubeclient_config){ .kubeconfig = &k, .timeout_ms = TIMEOUT_MS },
                        &a->client, e);
    kubeconfig_done(&k);
    return rc;
}

void api_done(struct api *a)
{
    if (a->client)
        kube_client_free(a->client);
    if (a->loop) {
        ev_loop_turn(a->loop);
        ev_loop_free(a->loop);
    }
    *a = (struct api)API_INIT;
}

static enum err_code code_of(int status)
{
    switch (status) {
    case 404:
        return ERR_NOT_FOUND;
    case 409:
        return ERR_EXISTS;
    case 401:
    case 403:
        return ERR_DENIED;
    case 0:
        return ERR_UNAVAILABLE;
    default:
        return ERR_INVALID;
    }
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct waiter *w = ctx;

    if (answer->refusal)
        w->rc = err_set(w->e, code_of(answer->refusal->code), "%s",
                        buf_cstr(&answer->refusal->message));
    else if (w->fn)
        w->fn(w->ctx, answer);
    ev_loop_stop(w->loop);
}

int api_call(struct api *a, const struct kube_request *rq, kube_done_fn fn, void *ctx,
             struct err *e)
{
    struct waiter w = { .loop = a->loop, .fn = fn, .ctx = ctx, .e = e };

    (void)kube_call_start(a->client, rq, on_answer, &w);
    ev_loop_run(a->loop);
    return w.rc;
}
