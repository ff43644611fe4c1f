#include "controller/pass.h"

#include "base/log.h"
#include "controller/limits.h"
#include "controller/names.h"
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

enum verdict verdict_of(const struct kube_answer *answer)
{
    switch (outcome_of(answer)) {
    case OUTCOME_DONE:
        break;
    case OUTCOME_GONE:
    case OUTCOME_EXISTS:
    case OUTCOME_STALE:
        return VERDICT_CHANGED;
    case OUTCOME_INVALID:
    case OUTCOME_FAILED:
        return VERDICT_REFUSED;
    }
    return VERDICT_DONE;
}

/* ---- life ---- */

void pass_init(struct pass *p, const struct pass_kind *kind, struct shared *shared,
               struct queue_item *item, void *self)
{
    *p = (struct pass){ .kind = kind,
                        .self = self,
                        .shared = shared,
                        .item = item,
                        .ed = json_edit_new(PASS_MAX_BYTES),
                        .faults = BUF_INIT(MESSAGE_MAX_BYTES) };
    (void)clock_gettime(CLOCK_REALTIME, &p->now);
    (void)kube_time_text(p->now_text, p->now.tv_sec);
}

void pass_go(struct pass *p)
{
    while (!p->is_waiting)
        if (!p->kind->act(p->self))
            return;
}

void pass_end(struct pass *p, bool has_failed)
{
    struct queue_item *item = p->item;

    assert(!p->is_waiting);
    if (has_failed || p->is_stale) {
        if (p->again_ms)
            queue_add_after(queue_of(item), queue_item_namespace(item), queue_item_name(item),
                            p->again_ms);
        queue_retry(item);
    } else if (p->again_ms) {
        queue_done_after(item, p->again_ms);
    } else {
        queue_done(item);
    }
    json_edit_free(p->ed);
    buf_done(&p->faults);
}

void pass_look_again(struct pass *p, uint64_t ms)
{
    if (!p->again_ms || ms < p->again_ms)
        p->again_ms = ms;
}

bool pass_is_as_seen(const struct object *seen, const struct object *now)
{
    const struct json *was = object_meta(seen), *is = object_meta(now);

    return object_generation(seen) == object_generation(now) &&
           object_is_deleting(seen) == object_is_deleting(now) &&
           value_is_same(json_get(was, "labels"), json_get(is, "labels")) &&
           value_is_same(json_get(was, "ownerReferences"), json_get(is, "ownerReferences"));
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
        shared_learn(p->shared, answer->object, queue_of(p->item));
    p->answered(p->self, answer);
    pass_go(p);
}

static void on_unsent(void *ctx)
{
    struct pass *p = ctx;
    OWN(status_done) struct status st = STATUS_INIT;

    (void)status_of_err(&st, &p->unsent);
    on_answer(p, &(struct kube_answer){ .refusal = &st });
}

static void begin(struct pass *p, const char *doing, kube_done_fn answered)
{
    assert(!p->is_waiting);
    p->is_waiting = true;
    p->answered = answered;
    (void)snprintf(p->doing, sizeof p->doing, "%s", doing);
}

void pass_call(struct pass *p, const struct step *step, kube_done_fn answered)
{
    struct kube_call *call;
    char doing[sizeof p->doing];

    begin(p, step_text(step, doing, sizeof doing), answered);
    if (step_start(p->shared->client, step, p->kind->manager, on_answer, p, &call, &p->unsent) < 0)
        ev_post(kube_client_loop(p->shared->client), &p->task, on_unsent, p);
}

void pass_get(struct pass *p, const struct kind *kind, const char *namespace, const char *name,
              kube_done_fn answered)
{
    struct kube_request rq = {
        .verb = KUBE_GET, .kind = kind, .namespace = namespace, .name = name
    };
    char doing[sizeof p->doing];

    (void)snprintf(doing, sizeof doing, "get %s %s/%s", kind->name, namespace, name);
    begin(p, doing, answered);
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

void pass_say_faults(const struct pass *p, const char *event, const char *what)
{
    struct shared *s = p->shared;
    struct ev_loop *loop = kube_client_loop(s->client);
    bool is_said;

    if (!pass_has_faults(p))
        return;
    is_said = bucket_take(&s->complaints, ev_now_ms(loop));
    LOG_AT(is_said ? LOG_WARN : LOG_DEBUG, event, KV("namespace", queue_item_namespace(p->item)),
           KV(what, queue_item_name(p->item)), KV("err", buf_cstr(&p->faults)),
           KV("held_back", s->held_back));
    s->held_back = is_said ? 0 : s->held_back + 1;
}
