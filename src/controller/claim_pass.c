#include "controller/claim_pass.h"

#include "base/log.h"
#include "controller/condition.h"
#include "controller/event.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/figures.h"
#include "controller/names.h"
#include "controller/pod.h"

#include <stdio.h>
#include <string.h>

#define MANAGER "sandboxclaim-controller"

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

bool claim_pass_is_done(struct claim_pass *p, const struct kube_answer *answer)
{
    switch (verdict_of(answer)) {
    case VERDICT_DONE:
        return true;
    case VERDICT_CHANGED:
        claim_pass_start_over(p);
        break;
    case VERDICT_REFUSED:
        claim_pass_let_go(p);
        claim_pass_fail_of(p, answer);
        break;
    }
    return false;
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

static void got_policy(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;

    p->state = AT_FIND;
    if (verdict_of(answer) == VERDICT_REFUSED)
        log_warn("claim.policy", KV("namespace", object_namespace(p->claim)),
                 KV("claim", object_name(p->claim)),
                 KV("err", buf_cstr(&answer->refusal->message)));
}

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
    pass_call(&p->pass, &step, got_policy);
}

/* ---- it has one: what changed meanwhile reaches it ---- */

static void got_follow(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;

    p->state = AT_STATUS;
    if (claim_pass_is_done(p, answer))
        pass_set(&p->sandbox, answer->object);
}

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
        pass_call(&p->pass, &step, got_follow);
    }
}

/* ---- status ---- */

static enum claim_state after_status(const struct claim_pass *p)
{
    return p->state == AT_STATUS ? AT_STAMP : AT_OVER;
}

static bool is_ready(const struct object *claim)
{
    return condition_is(object_at(claim, "status.conditions"), COND_READY, "True");
}

/* 409: somebody wrote the claim, and that wakes it again. */
static void got_status(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;
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

static void write_status(struct claim_pass *p, struct json_node *status)
{
    struct step step = claim_status_step(p->claim, status, p->pass.ed);

    if (step.verb == STEP_NONE)
        p->state = after_status(p);
    else
        pass_call(&p->pass, &step, got_status);
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

static struct object *pod_of(const struct claim_pass *p)
{
    return p->sandbox ? shared_get(p->pass.shared, SHARED_PODS, object_namespace(p->sandbox),
                                   pod_name_of(p->sandbox))
                      : NULL;
}

static void do_status(struct claim_pass *p)
{
    struct claim_facts facts = { .claim = p->claim,
                                 .sandbox = p->sandbox,
                                 .pod = pod_of(p),
                                 .fault = p->fault,
                                 .text = p->why.msg,
                                 .now = p->pass.now_text };

    tell_fault(p);
    write_status(p, claim_status(&facts, p->pass.ed));
}

static void got_last(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;

    pass_deleted(&p->pass, answer);
    p->state = AT_OVER;
}

static void got_stamp(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;

    if (verdict_of(answer) != VERDICT_REFUSED)
        stamps_drop(p->r->stamps, object_namespace(p->claim), object_name(p->claim));
    if (!answer->refusal)
        p->pass.is_stale |= !pass_is_as_seen(p->claim, answer->object);
    got_last(p, answer);
}

/* While others wait for their sandboxes it comes in a later pass. Where the store is ours, always: as its commit is what the claim
 * itself waits for. */
static bool may_stamp_later(struct claim_pass *p, struct timespec ready)
{
    struct queue_item *item = p->pass.item;
    bool is_alone = queue_load(queue_of(item)) == 1;

    if (is_alone && p->r->config->is_remote)
        return false;
    stamps_put(p->r->stamps, p->claim, ready);
    if (is_alone)
        pass_look_again(&p->pass, AFTERWARDS_MS);
    else
        queue_add(queue_of(item), queue_item_namespace(item), queue_item_name(item), QUEUE_LOW);
    return true;
}

/* Counted before it is noted, and once: a note that fails is made up for by the next pass, without counting again. */
static void do_stamp(struct claim_pass *p)
{
    struct timespec ready;
    bool is_known;
    struct step step;

    p->state = AT_OVER;
    if (!is_ready(p->claim) || object_annotation(p->claim, NOTE_FIRST_READY))
        return;
    is_known = stamps_get(p->r->stamps, p->claim, &ready);
    if (!is_known && p->became_ready) {
        is_known = true;
        (void)clock_gettime(CLOCK_REALTIME, &ready);
        if (p->sandbox)
            figures_claim_ready(p->pass.shared->figures, p->claim, p->sandbox, ready);
        if (may_stamp_later(p, ready))
            return;
    }
    p->state = AT_STAMP;
    step = claim_stamp(p->claim, is_known ? &ready : NULL, p->pass.ed);
    pass_call(&p->pass, &step, got_stamp);
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
    pass_call(&p->pass, &step, got_last);
}

static void got_end_sandbox(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;

    pass_deleted(&p->pass, answer);
    p->state = AT_END_STATUS;
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
        pass_call(&p->pass, &step, got_end_sandbox);
    }
}

/* ---- the pass ---- */

/* What happens by itself, and when. */
static void schedule(struct claim_pass *p)
{
    struct expiry expiry = claim_expiry(p->claim, p->pass.now);

    if (p->fault == CLAIM_NO_POOL || p->fault == CLAIM_NO_TEMPLATE)
        pass_look_again(&p->pass, CLAIM_MISSING_MS);
    if (p->fault == CLAIM_PENDING)
        pass_look_again(&p->pass, CLAIM_CREATED_MS);
    if (expiry.is_set && !(expiry.is_over && claim_is_marked(p->claim)))
        pass_look_again(&p->pass, expiry.is_over ? EXPIRY_NEXT_PASS_MS : expiry.wait_ms);
    if (p->is_marking)
        pass_look_again(&p->pass, EXPIRY_NEXT_PASS_MS);
}

static void finish(struct claim_pass *p)
{
    pass_say_faults(&p->pass, "claim.pass", "claim");
    claim_pass_let_go(p);
    schedule(p);
    pass_end(&p->pass,
             pass_has_faults(&p->pass) || p->fault == CLAIM_CONFLICT || p->fault == CLAIM_ERROR);
    object_unref(p->claim);
    object_unref(p->sandbox);
    free(p);
}

static bool act(void *self)
{
    struct claim_pass *p = self;

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
        return false;
    }
    return true;
}

static const struct pass_kind passes = { MANAGER, act };

void claim_pass_start(struct claims *r, struct queue_item *item)
{
    struct object *claim = shared_get(r->base.shared, SHARED_CLAIMS, queue_item_namespace(item),
                                      queue_item_name(item));
    struct claim_pass *p;

    if (!claim || object_is_deleting(claim)) {
        candidates_unwait(r->candidates, queue_item_namespace(item), queue_item_name(item));
        stamps_drop(r->stamps, queue_item_namespace(item), queue_item_name(item));
        queue_done(item);
        return;
    }
    p = NEW(struct claim_pass);
    pass_init(&p->pass, &passes, r->base.shared, item, p);
    p->r = r;
    p->claim = object_ref(claim);
    if (!claim_expiry(claim, p->pass.now).is_over)
        p->state = AT_POLICY;
    else if (!claim_is_marked(claim))
        p->state = AT_MARK;
    else
        p->state = claim_end_of(claim) == CLAIM_END_RETAIN ? AT_END_SANDBOX : AT_END_CLAIM;
    pass_go(&p->pass);
}
