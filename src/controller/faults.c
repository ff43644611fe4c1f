#include "controller/faults.h"

#include "ev/loop.h"

#include <string.h>

#define FAULTS_MAX 16

struct faults {
    struct kube_client client;
    struct kube_client *inner;
    struct fault rules[FAULTS_MAX];
    size_t count;
    struct wrong *late; /* whose answers are kept back */
};

/* A call that is answered here, or whose answer is kept back. */
struct wrong {
    struct kube_call call;
    int code;
    kube_done_fn done;
    void *ctx;
    struct ev_task task;
    struct wrong *next;
    struct object *object; /* of an answer that is kept back, which is a good one */
};

static void free_wrong(void *ctx)
{
    free(ctx);
}

/* code 0: no answer came. */
static void answer(struct wrong *w)
{
    OWN(status_done) struct status st = STATUS_INIT;
    struct err e;

    st.code = w->code;
    st.reason = w->code == 409 ? "Conflict" : w->code ? "InternalError" : "";
    (void)buf_add(&st.message, SPAN("a fault of the test"), &e);
    w->done(w->ctx, &(struct kube_answer){ .refusal = &st });
    ev_free_later(w->call.client->loop, w, free_wrong);
}

static void on_refused(void *ctx)
{
    answer(ctx);
}

static void on_lost(void *ctx, const struct kube_answer *real)
{
    (void)real;
    answer(ctx);
}

static void on_late(void *ctx, const struct kube_answer *real)
{
    struct wrong *w = ctx;
    struct faults *f = CONTAINER(w->call.client, struct faults, client);

    assert(real->object && !real->refusal);
    w->object = object_ref(real->object);
    w->next = f->late;
    f->late = w;
}

static void on_released(void *ctx)
{
    struct wrong *w = ctx;

    w->done(w->ctx, &(struct kube_answer){ .object = w->object });
    object_unref(w->object);
    ev_free_later(w->call.client->loop, w, free_wrong);
}

void faults_release(struct faults *f)
{
    struct wrong *w;

    while ((w = f->late)) {
        f->late = w->next;
        ev_post(f->client.loop, &w->task, on_released, w);
    }
}

static bool fits(const struct fault *r, const struct kube_request *rq)
{
    if (!r->times || r->verb != rq->verb || (r->kind && r->kind != rq->kind))
        return false;
    if ((r->sub != NULL) != (rq->sub != NULL) || (r->sub && strcmp(r->sub, rq->sub) != 0))
        return false;
    return !r->manager || (rq->manager && strcmp(r->manager, rq->manager) == 0);
}

static struct kube_call *call(struct kube_client *c, const struct kube_request *rq,
                              kube_done_fn done, void *ctx)
{
    struct faults *f = CONTAINER(c, struct faults, client);
    struct fault *rule = f->rules;
    struct wrong *w;

    while (rule < f->rules + f->count && !fits(rule, rq))
        rule++;
    if (rule == f->rules + f->count)
        return kube_call_start(f->inner, rq, done, ctx);
    rule->times--;
    if (rule->what == FAULT_FIRST) {
        if (rule->first)
            rule->first(rule->ctx, rq);
        return kube_call_start(f->inner, rq, done, ctx);
    }
    w = NEW(struct wrong);
    *w = (struct wrong){ .call.client = c, .code = rule->code, .done = done, .ctx = ctx };
    if (rule->what == FAULT_LOST || rule->what == FAULT_LATE)
        (void)kube_call_start(f->inner, rq, rule->what == FAULT_LATE ? on_late : on_lost, w);
    else
        ev_post(c->loop, &w->task, on_refused, w);
    return &w->call;
}

/* It is answered all the same, as the interface allows. */
static void call_cancel(struct kube_call *c)
{
    (void)c;
}

/* The watch is the inner client's, and is stopped there. */
static struct kube_watch *watch(struct kube_client *c, const struct kube_watch_spec *spec,
                                const struct kube_watch_events *events, void *ctx)
{
    return kube_watch_start(CONTAINER(c, struct faults, client)->inner, spec, events, ctx);
}

static void watch_stop(struct kube_watch *w)
{
    (void)w;
}

static void faults_free(struct kube_client *c)
{
    struct faults *f = CONTAINER(c, struct faults, client);

    kube_client_free(f->inner);
    free(f);
}

struct kube_client *faults_new(struct kube_client *inner, struct faults **ret)
{
    static const struct kube_client_ops ops = { call, call_cancel, watch, watch_stop, faults_free };
    struct faults *f = NEW(struct faults);

    f->client = (struct kube_client){ &ops, inner->loop };
    f->inner = inner;
    *ret = f;
    return &f->client;
}

const struct fault *faults_add(struct faults *f, const struct fault *fault)
{
    assert(f->count < FAULTS_MAX);
    f->rules[f->count] = *fault;
    return &f->rules[f->count++];
}

void faults_clear(struct faults *f)
{
    f->count = 0;
}

unsigned faults_left(const struct faults *f)
{
    unsigned n = 0;

    for (size_t i = 0; i < f->count; i++)
        n += f->rules[i].times;
    return n;
}
