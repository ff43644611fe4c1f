#include "controller/pass.h"

#include "controller/limits.h"
#include "kube/time.h"

#include <stdio.h>
#include <string.h>

enum outcome outcome_of(const struct kube_answer *answer)
{
    if (!answer->refusal)
        return OUTCOME_DONE;
    switch (answer->refusal->code) {
    case 404:
        return OUTCOME_GONE;
    case 409:
        return answer->refusal->reason && strcmp(answer->refusal->reason, "AlreadyExists") == 0
                   ? OUTCOME_EXISTS
                   : OUTCOME_STALE;
    case 422:
        return OUTCOME_INVALID;
    default:
        return OUTCOME_FAILED;
    }
}

void pass_init(struct pass *p, struct shared *shared, const char *manager, struct queue_item *item)
{
    *p = (struct pass){ .shared = shared,
                        .manager = manager,
                        .item = item,
                        .ed = json_edit_new(PASS_MAX_BYTES),
                        .faults = BUF_INIT(MESSAGE_MAX_BYTES) };
    (void)clock_gettime(CLOCK_REALTIME, &p->now);
    (void)kube_time_text(p->now_text, p->now.tv_sec);
}

void pass_done(struct pass *p)
{
    assert(!p->is_waiting);
    json_edit_free(p->ed);
    buf_done(&p->faults);
}

void pass_set(struct object **to, struct object *o)
{
    struct object *old = *to;

    *to = o ? object_ref(o) : NULL;
    object_unref(old);
}

/* ---- calls ---- */

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct pass *p = ctx;

    p->is_waiting = false;
    if (answer->object && !answer->refusal && !object_is_deleting(answer->object))
        shared_learn(p->shared, answer->object);
    p->answered(p->ctx, answer);
}

static void on_unsent(void *ctx)
{
    struct pass *p = ctx;
    OWN(status_done) struct status st = STATUS_INIT;

    (void)status_of_err(&st, &p->unsent);
    on_answer(p, &(struct kube_answer){ .refusal = &st });
}

static void begin(struct pass *p, const char *doing, kube_done_fn answered, void *ctx)
{
    assert(!p->is_waiting);
    p->is_waiting = true;
    p->answered = answered;
    p->ctx = ctx;
    (void)snprintf(p->doing, sizeof p->doing, "%s", doing);
}

void pass_call(struct pass *p, const struct step *step, kube_done_fn answered, void *ctx)
{
    struct kube_call *call;
    char doing[sizeof p->doing];

    begin(p, step_text(step, doing, sizeof doing), answered, ctx);
    if (step_start(p->shared->client, step, p->manager, on_answer, p, &call, &p->unsent) < 0)
        ev_post(kube_client_loop(p->shared->client), &p->task, on_unsent, p);
}

void pass_get(struct pass *p, const struct kind *kind, const char *namespace, const char *name,
              kube_done_fn answered, void *ctx)
{
    struct kube_request rq = {
        .verb = KUBE_GET, .kind = kind, .namespace = namespace, .name = name
    };
    char doing[sizeof p->doing];

    (void)snprintf(doing, sizeof doing, "get %s %s/%s", kind->name, namespace, name);
    begin(p, doing, answered, ctx);
    (void)kube_call_start(p->shared->client, &rq, on_answer, p);
}

/* ---- faults ---- */

void pass_fault(struct pass *p, const char *text)
{
    if (p->fault_count++)
        (void)buf_add_capped(&p->faults, SPAN("\n"));
    (void)buf_add_capped(&p->faults, span_cstr(text));
}

void pass_fault_of(struct pass *p, const struct kube_answer *answer)
{
    OWN(buf_done) struct buf text = BUF_INIT(MESSAGE_MAX_BYTES);
    const struct status *st = answer->refusal;

    (void)buf_add_capped(&text, SPAN("cannot "));
    (void)buf_add_capped(&text, span_cstr(p->doing));
    (void)buf_add_capped(&text, SPAN(": "));
    if (st && st->message.n)
        (void)buf_add_capped(&text, buf_span(&st->message));
    else
        (void)buf_add_capped(&text, SPAN("no answer from the API server"));
    pass_fault(p, buf_cstr(&text));
}

void pass_forgive(struct pass *p)
{
    buf_clear(&p->faults);
    p->fault_count = 0;
}

void pass_deleted(struct pass *p, const struct kube_answer *answer)
{
    enum outcome outcome = outcome_of(answer);

    if (outcome == OUTCOME_INVALID || outcome == OUTCOME_FAILED)
        pass_fault_of(p, answer);
}

bool pass_has_faults(const struct pass *p)
{
    return p->fault_count > 0;
}
