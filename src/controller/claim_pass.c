#include "controller/claim_pass.h"

#include "base/log.h"
#include "controller/condition.h"
#include "controller/event.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/figures.h"
#include "controller/names.h"

#include <stdio.h>
#include <string.h>

#define MANAGER "sandboxclaim-controller"

void claim_pass_call(struct claim_pass *p, const struct step *step)
{
    pass_call(&p->pass, step, claim_pass_answered, p);
}

void claim_pass_look_again(struct claim_pass *p, uint64_t ms)
{
    if (!p->again_ms || ms < p->again_ms)
        p->again_ms = ms;
}

/* The candidate is not ours after all. */
void claim_pass_let_go(struct claim_pass *p)
{
    const char *namespace = object_namespace(p->claim);

    if (p->candidate && p->is_taken)
        candidates_release(
            p->r->candidates, namespace, object_name(p->candidate),
            shared_get(p->pass.shared, SHARED_SANDBOXES, namespace, object_name(p->candidate)));
    p->is_taken = false;
    pass_set(&p->candidate, NULL);
}

void claim_pass_start_over(struct claim_pass *p)
{
    claim_pass_let_go(p);
    p->pass.is_stale = true;
    p->state = AT_OVER;
}

void claim_pass_fail(struct claim_pass *p, enum claim_fault fault)
{
    p->fault = fault;
    p->state = AT_STATUS;
}

/* A call that nobody can make sense of. */
void claim_pass_fail_of(struct claim_pass *p, const struct kube_answer *answer)
{
    pass_fault_of(&p->pass, answer);
    (void)err_set(&p->why, ERR_UNAVAILABLE, "%s", buf_cstr(&p->pass.faults));
    claim_pass_fail(p, CLAIM_ERROR);
}

static void tell(struct claim_pass *p, bool is_warning, const char *reason, const char *action,
                 const char *note)
{
    if (p->r->config->has_no_claim_events)
        return;
    event_emit(p->pass.shared->events, &(struct event){ .about = p->claim,
                                                        .controller = MANAGER,
                                                        .is_warning = is_warning,
                                                        .reason = reason,
                                                        .action = action,
                                                        .note = note });
}

void claim_pass_tell(struct claim_pass *p, const char *reason, const char *action, const char *note)
{
    tell(p, false, reason, action, note);
}

struct object *claim_pass_sandbox(struct claim_pass *p, const char *name)
{
    return name && *name
               ? shared_get(p->pass.shared, SHARED_SANDBOXES, object_namespace(p->claim), name)
               : NULL;
}

/* ---- what an older controller left ---- */

static void do_policy(struct claim_pass *p)
{
    struct span name =
        json_edit_join(p->pass.ed, span_cstr(object_name(p->claim)), SPAN("-network-policy"));
    struct object *policy = shared_get(p->pass.shared, SHARED_POLICIES, object_namespace(p->claim),
                                       (const char *)name.p);
    struct step step;

    p->state = AT_FIND;
    if (!policy || object_is_deleting(policy) || ownership_of(policy, p->claim) != OWNED)
        return;
    p->state = AT_POLICY;
    step = step_delete(policy);
    claim_pass_call(p, &step);
}

static void got_policy(struct claim_pass *p, const struct kube_answer *answer)
{
    enum outcome outcome = outcome_of(answer);

    p->state = AT_FIND;
    if (outcome == OUTCOME_INVALID || outcome == OUTCOME_FAILED)
        log_warn("claim.policy", KV("namespace", object_namespace(p->claim)),
                 KV("claim", object_name(p->claim)),
                 KV("err", buf_cstr(&answer->refusal->message)));
}

/* ---- it has one: what changed meanwhile reaches it ---- */

static void do_follow(struct claim_pass *p)
{
    struct claim_source source = claim_source_of(p->pass.shared, p->claim, p->pass.ed);
    struct step step;

    p->state = AT_STATUS;
    if (object_is_deleting(p->sandbox))
        return;
    if (claim_follow(p->claim, source.template, p->sandbox, p->launch, p->pass.ed, &step, &p->why) <
        0) {
        pass_fault(&p->pass, p->why.msg);
        claim_pass_fail(p, CLAIM_ERROR);
    } else if (step.verb != STEP_NONE) {
        p->state = AT_FOLLOW;
        claim_pass_call(p, &step);
    }
}

static void got_follow(struct claim_pass *p, const struct kube_answer *answer)
{
    switch (outcome_of(answer)) {
    case OUTCOME_DONE:
        pass_set(&p->sandbox, answer->object);
        p->state = AT_STATUS;
        return;
    case OUTCOME_GONE:
    case OUTCOME_EXISTS:
    case OUTCOME_STALE:
        claim_pass_start_over(p);
        return;
    case OUTCOME_INVALID:
    case OUTCOME_FAILED:
        claim_pass_fail_of(p, answer);
    }
}

/* ---- status ---- */

static enum claim_state after_status(const struct claim_pass *p)
{
    return p->state == AT_STATUS ? AT_STAMP : AT_OVER;
}

static void write_status(struct claim_pass *p, struct json_node *status)
{
    struct step step = claim_status_step(p->claim, status, p->pass.ed);

    if (step.verb == STEP_NONE)
        p->state = after_status(p);
    else
        claim_pass_call(p, &step);
}

static bool is_ready(const struct object *claim)
{
    return condition_is(object_at(claim, "status.conditions"), COND_READY, "True");
}

/* What stands in its way, once for each time that it does: `kubectl describe` shows it. What passes by itself is not told. */
static void tell_fault(struct claim_pass *p)
{
    const struct json *conditions = object_at(p->claim, "status.conditions");
    const char *reason = claim_fault_reason(p->fault);

    if (p->fault == CLAIM_FINE || p->fault == CLAIM_PENDING || p->fault == CLAIM_CONFLICT ||
        strcmp(condition_reason(conditions, COND_READY), reason) == 0)
        return;
    tell(p, true, reason, "Reconciling", p->why.msg);
}

static void do_status(struct claim_pass *p)
{
    struct claim_facts facts = { .claim = p->claim,
                                 .sandbox = p->sandbox,
                                 .fault = p->fault,
                                 .text = p->why.msg,
                                 .now = p->pass.now_text };

    tell_fault(p);
    write_status(p, claim_status(&facts, p->pass.ed));
}

/* 409: somebody wrote the claim, and that wakes it again. */
static void got_status(struct claim_pass *p, const struct kube_answer *answer)
{
    enum outcome outcome = outcome_of(answer);
    enum claim_state next = after_status(p);

    p->state = AT_OVER;
    if (outcome == OUTCOME_DONE) {
        p->became_ready = !is_ready(p->claim) && is_ready(answer->object);
        pass_set(&p->claim, answer->object);
        p->state = next;
    } else if (outcome == OUTCOME_INVALID || outcome == OUTCOME_FAILED) {
        pass_fault_of(&p->pass, answer);
    }
}

/* Counted before it is noted: a note that fails is made up for by the next pass, without counting again. */
static void do_stamp(struct claim_pass *p)
{
    struct timespec now;
    struct step step;

    p->state = AT_OVER;
    if (!is_ready(p->claim) || object_annotation(p->claim, NOTE_FIRST_READY))
        return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (p->became_ready && p->sandbox)
        figures_claim_ready(p->pass.shared->figures, p->claim, p->sandbox, now);
    p->state = AT_STAMP;
    step = claim_stamp(p->claim, p->became_ready ? &now : NULL, p->pass.ed);
    claim_pass_call(p, &step);
}

/* ---- the end ---- */

static void do_mark(struct claim_pass *p)
{
    p->is_marking = true;
    claim_pass_tell(p, "ClaimExpired", "Claim Expired", "Claim expired");
    write_status(p, claim_status_expired(p->claim, NULL, false, p->pass.now_text, p->pass.ed));
}

static void do_end_claim(struct claim_pass *p)
{
    bool is_foreground = claim_end_of(p->claim) == CLAIM_END_FOREGROUND;
    struct step step = step_delete(p->claim);
    char note[96];

    (void)snprintf(note, sizeof note, "Deleting Claim (ShutdownPolicy=%s)",
                   is_foreground ? "DeleteForeground" : "Delete");
    claim_pass_tell(p, "ClaimExpired", "Deleting", note);
    step.propagation = is_foreground ? KUBE_FOREGROUND : KUBE_BACKGROUND;
    claim_pass_call(p, &step);
}

static void do_end_sandbox(struct claim_pass *p)
{
    const char *shown = object_text(p->claim, "status.sandbox.name");
    const char *name = shown && *shown ? shown : object_name(p->claim);
    struct object *sandbox = claim_pass_sandbox(p, name);
    struct step step;

    p->state = AT_END_STATUS;
    if (!sandbox) {
        p->is_end_gone = true;
    } else if (ownership_of(sandbox, p->claim) != OWNED) {
        p->is_end_gone = true;
        (void)snprintf(p->end_text, sizeof p->end_text,
                       "Claim expired. sandbox \"%s\" is not controlled by claim \"%s\"; deletion "
                       "skipped.",
                       name, object_name(p->claim));
    } else if (!object_is_deleting(sandbox)) {
        p->state = AT_END_SANDBOX;
        step = step_delete(sandbox);
        claim_pass_call(p, &step);
    }
}

/* ---- the pass ---- */

static void schedule(struct claim_pass *p)
{
    struct queue_item *item = p->pass.item;
    struct expiry expiry = claim_expiry(p->claim, p->pass.now);
    bool has_failed = pass_has_faults(&p->pass) || p->pass.is_stale || p->fault == CLAIM_CONFLICT ||
                      p->fault == CLAIM_ERROR;

    if (p->fault == CLAIM_NO_POOL || p->fault == CLAIM_NO_TEMPLATE)
        claim_pass_look_again(p, CLAIM_MISSING_MS);
    if (p->fault == CLAIM_PENDING)
        claim_pass_look_again(p, CLAIM_CREATED_MS);
    if (expiry.is_set && !(expiry.is_over && claim_is_marked(p->claim)))
        claim_pass_look_again(p, expiry.is_over ? EXPIRY_NEXT_PASS_MS : expiry.wait_ms);
    if (p->is_marking)
        claim_pass_look_again(p, EXPIRY_NEXT_PASS_MS);
    if (has_failed && p->again_ms)
        queue_add_after(queue_of(item), queue_item_namespace(item), queue_item_name(item),
                        p->again_ms);
    if (has_failed)
        queue_retry(item);
    else if (p->again_ms)
        queue_done_after(item, p->again_ms);
    else
        queue_done(item);
}

static void finish(struct claim_pass *p)
{
    struct queue_item *item = p->pass.item;

    if (pass_has_faults(&p->pass))
        log_warn("claim.pass", KV("namespace", queue_item_namespace(item)),
                 KV("claim", queue_item_name(item)), KV("err", buf_cstr(&p->pass.faults)));
    claim_pass_let_go(p);
    schedule(p);
    pass_done(&p->pass);
    object_unref(p->claim);
    object_unref(p->sandbox);
    free(p);
}

static void advance(struct claim_pass *p)
{
    while (!p->pass.is_waiting) {
        switch (p->state) {
        case AT_POLICY:
            do_policy(p);
            break;
        case AT_FIND:
            bind_find(p);
            break;
        case AT_UNLOCK: /* unlock() has called */
            abort();
        case AT_LOCK:
            bind_lock(p);
            break;
        case AT_TAKE:
            bind_take(p);
            break;
        case AT_RESOLVE:
            bind_resolve(p);
            break;
        case AT_CREATE:
            bind_create(p);
            break;
        case AT_FOLLOW:
            do_follow(p);
            break;
        case AT_STATUS:
            do_status(p);
            break;
        case AT_STAMP:
            do_stamp(p);
            break;
        case AT_MARK:
            do_mark(p);
            break;
        case AT_END_CLAIM:
            do_end_claim(p);
            break;
        case AT_END_SANDBOX:
            do_end_sandbox(p);
            break;
        case AT_END_STATUS:
            write_status(p, claim_status_expired(p->claim, *p->end_text ? p->end_text : NULL,
                                                 p->is_end_gone, p->pass.now_text, p->pass.ed));
            break;
        case AT_OVER:
            finish(p);
            return;
        }
    }
}

void claim_pass_answered(void *ctx, const struct kube_answer *answer)
{
    struct claim_pass *p = ctx;

    switch (p->state) {
    case AT_POLICY:
        got_policy(p, answer);
        break;
    case AT_UNLOCK:
        bind_got_unlock(p, answer);
        break;
    case AT_LOCK:
        bind_got_lock(p, answer);
        break;
    case AT_TAKE:
        bind_got_take(p, answer);
        break;
    case AT_RESOLVE:
        bind_got_resolve(p, answer);
        break;
    case AT_CREATE:
        bind_got_create(p, answer);
        break;
    case AT_FOLLOW:
        got_follow(p, answer);
        break;
    case AT_STATUS:
    case AT_MARK:
    case AT_END_STATUS:
        got_status(p, answer);
        break;
    case AT_STAMP:
    case AT_END_CLAIM:
        pass_deleted(&p->pass, answer);
        p->state = AT_OVER;
        break;
    case AT_END_SANDBOX:
        pass_deleted(&p->pass, answer);
        p->state = AT_END_STATUS;
        break;
    case AT_FIND:
    case AT_OVER:
        abort(); /* they ask for nothing */
    }
    advance(p);
}

void claim_pass_start(struct claims *r, struct queue_item *item)
{
    struct object *claim = shared_get(r->base.shared, SHARED_CLAIMS, queue_item_namespace(item),
                                      queue_item_name(item));
    struct claim_pass *p;

    if (!claim || object_is_deleting(claim)) {
        queue_done(item);
        return;
    }
    p = NEW(struct claim_pass);
    pass_init(&p->pass, r->base.shared, MANAGER, item);
    p->r = r;
    p->claim = object_ref(claim);
    if (!claim_expiry(claim, p->pass.now).is_over)
        p->state = AT_POLICY;
    else if (!claim_is_marked(claim))
        p->state = AT_MARK;
    else
        p->state = claim_end_of(claim) == CLAIM_END_RETAIN ? AT_END_SANDBOX : AT_END_CLAIM;
    advance(p);
}
