#include "controller/sandbox_pass.h"

#include "base/log.h"
#include "controller/condition.h"
#include "controller/event.h"
#include "controller/expiry.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/members.h"
#include "controller/names.h"
#include "controller/pod.h"
#include "controller/pod_waiting.h"
#include "controller/sandbox_status.h"
#include "controller/volume.h"

#include <stdio.h>
#include <string.h>

/* The pass is of no use any more: everything is looked at again. */
static void start_over(struct sandbox_pass *p)
{
    p->pass.is_stale = true;
    p->state = AT_OVER;
}

/* Most answers: it is done, it must be looked at anew, or it is a fault that is told and does not keep the rest from being done.
 * True: done. */
static bool is_done(struct sandbox_pass *p, const struct kube_answer *answer)
{
    switch (verdict_of(answer)) {
    case VERDICT_DONE:
        return true;
    case VERDICT_CHANGED:
        start_over(p);
        break;
    case VERDICT_REFUSED:
        pass_fault_of(&p->pass, answer);
        break;
    }
    return false;
}

/* The sandbox as our write left it: if others have changed what we decide by, no event tells of that. */
static void got_sandbox(struct sandbox_pass *p, struct object *sandbox)
{
    if (pass_is_as_seen(p->sandbox, sandbox))
        pass_set(&p->sandbox, sandbox);
    else
        start_over(p);
}

/* ---- volume claims ---- */

static void got_volume(void *self, const struct kube_answer *answer)
{
    struct sandbox_pass *p = self;

    if (!is_done(p, answer) && p->state != AT_OVER)
        p->state = AT_POD;
}

static void do_volumes(struct sandbox_pass *p)
{
    const struct json *template =
        json_at(object_at(p->sandbox, "spec.volumeClaimTemplates"), p->volume++);
    struct object *have;
    struct step step;
    struct err e;

    if (!template) {
        p->state = AT_POD;
        return;
    }
    have = shared_get(p->pass.shared, SHARED_VOLUMES, object_namespace(p->sandbox),
                      volume_claim_name(p->pass.ed, template, p->sandbox));
    if (volume_decide(p->sandbox, template, have, p->pass.ed, &step, &e) < 0) {
        pass_fault(&p->pass, e.msg);
        p->state = AT_POD;
    } else if (step.verb != STEP_NONE) {
        pass_call(&p->pass, &step, got_volume);
    }
}

/* ---- the Pod ---- */

/* Its own Pods, borrowed. Those of others are no concern of the decision. */
size_t sandbox_pass_own(const struct sandbox_pass *p, struct object **ret, size_t most)
{
    OWN(informer_walk_done) struct informer_walk walk;
    char hash[NAME_HASH_BYTES];
    struct object *pod;
    size_t n = 0;

    informer_walk(&walk, p->pass.shared->of[SHARED_PODS], PODS_BY_TRACKING,
                  object_namespace(p->sandbox),
                  name_hash(hash, span_cstr(object_name(p->sandbox))));
    while (n < most && (pod = informer_walk_next(&walk)))
        if (ownership_of(pod, p->sandbox) == OWNED)
            ret[n++] = pod;
    return n;
}

/* Labels of a Pod that is the sandbox's own may wait for more of them, if the operator wants to save writes. */
static bool may_wait(struct sandbox_pass *p, const struct pod_verdict *verdict)
{
    return p->r->config->write_behind_ms && verdict->is_metadata_only &&
           sandboxes_defer(p->r, DEFER_METADATA, p->sandbox);
}

/* Its sandbox is to be known to all before it. */
static bool is_too_early(struct sandbox_pass *p, const struct pod_verdict *verdict)
{
    return p->r->config->is_remote && verdict->step.verb == STEP_CREATE &&
           owner_is(p->sandbox, GROUP_EXTENSIONS, "SandboxWarmPool") &&
           sandboxes_defer(p->r, DEFER_POD, p->sandbox);
}

static void pod_failed(struct sandbox_pass *p, const struct kube_answer *answer)
{
    pass_fault_of(&p->pass, answer);
    p->has_pod_failed = true;
    p->note = p->note_if_failed;
    p->state = AT_NOTE;
}

static void got_pod(void *self, const struct kube_answer *answer)
{
    struct sandbox_pass *p = self;
    bool is_delete = sandbox_is_suspended(p->sandbox);

    switch (outcome_of(answer)) {
    case OUTCOME_DONE:
        if (p->pod && !is_delete && p->pod_patches++ < PATCHES_MAX) {
            if (p->found)
                pass_set(&p->found, answer->object);
            return; /* it is looked at once more: the patch may have brought another's change along */
        }
        if (!is_delete) /* until its end is seen, a Pod that was deleted is still there */
            pass_set(&p->pod, answer->object);
        p->state = AT_NOTE;
        return;
    case OUTCOME_EXISTS:
        if (!p->has_looked_up)
            p->state = AT_LOOKUP;
        else
            start_over(p);
        return;
    case OUTCOME_GONE:
    case OUTCOME_STALE:
        start_over(p);
        return;
    case OUTCOME_INVALID:
        p->is_invalid = !is_delete && !p->pod;
        pod_failed(p, answer);
        return;
    case OUTCOME_FAILED:
        pod_failed(p, answer);
    }
}

static void do_pod(struct sandbox_pass *p)
{
    struct object *own[OWN_PODS_MAX];
    struct pod_view view = { .sandbox = p->sandbox, .tracked = own };
    struct pod_verdict verdict;

    view.tracked_count = sandbox_pass_own(p, own, LEN(own));
    view.named = p->has_looked_up
                     ? p->found
                     : shared_get(p->pass.shared, SHARED_PODS, object_namespace(p->sandbox),
                                  pod_name_of(p->sandbox));
    pod_decide(&view, p->pass.ed, &verdict);
    pass_set(&p->pod, verdict.pod);
    p->note = verdict.note;
    p->note_if_failed = verdict.note_if_failed;
    p->state = AT_NOTE;
    if (verdict.is_conflict) {
        (void)snprintf(p->conflict, sizeof p->conflict, "%s", verdict.fault.msg);
        p->has_pod_failed = true;
    } else if (verdict.fault.code != ERR_NONE) {
        pass_fault(&p->pass, verdict.fault.msg);
        p->has_pod_failed = true;
    } else if (is_too_early(p, &verdict)) {
        p->state = AT_OVER;
    } else if (verdict.step.verb != STEP_NONE && !may_wait(p, &verdict)) {
        p->state = AT_POD;
        pass_call(&p->pass, &verdict.step, got_pod);
    }
}

static void got_lookup(void *self, const struct kube_answer *answer)
{
    struct sandbox_pass *p = self;

    if (outcome_of(answer) == OUTCOME_DONE) {
        p->has_looked_up = true;
        pass_set(&p->found, answer->object);
        p->state = AT_POD;
    } else if (outcome_of(answer) == OUTCOME_GONE) {
        start_over(p);
    } else {
        pod_failed(p, answer);
    }
}

static void do_lookup(struct sandbox_pass *p)
{
    pass_get(&p->pass, known_kinds()->pod, object_namespace(p->sandbox), object_name(p->sandbox),
             got_lookup);
}

/* ---- the annotation that names the Pod ---- */

static enum sandbox_state after_note(const struct sandbox_pass *p)
{
    return p->conflict[0] ? AT_STATUS : AT_SERVICE;
}

static void got_note(void *self, const struct kube_answer *answer)
{
    struct sandbox_pass *p = self;

    p->state = after_note(p);
    if (outcome_of(answer) == OUTCOME_GONE) /* the sandbox is */
        p->state = AT_OVER;
    else if (is_done(p, answer))
        got_sandbox(p, answer->object);
}

static void do_note(struct sandbox_pass *p)
{
    struct step step;
    struct json_node *notes;

    p->state = after_note(p);
    if (!p->note)
        return;
    p->state = AT_NOTE;
    step = step_patch(p->pass.ed, p->sandbox);
    notes = tree_object(tree_object(step.body, "metadata"), "annotations");
    if (*p->note)
        tree_text(notes, NOTE_POD_NAME, p->note);
    else
        json_node_set(notes, NOTE_POD_NAME, json_edit_null(p->pass.ed));
    pass_call(&p->pass, &step, got_note);
}

/* ---- the Service ---- */

struct object *sandbox_pass_service(const struct sandbox_pass *p)
{
    return shared_get(p->pass.shared, SHARED_SERVICES, object_namespace(p->sandbox),
                      object_name(p->sandbox));
}

static void got_service(void *self, const struct kube_answer *answer)
{
    struct sandbox_pass *p = self;

    if (!is_done(p, answer)) {
        if (p->state != AT_OVER)
            p->state = AT_STATUS;
    } else if (p->service.step.verb != STEP_PATCH || p->service_patches++ >= PATCHES_MAX) {
        p->is_service_known = true;
        p->state = AT_STATUS;
    } /* else it is looked at once more, as the Pod */
}

static void do_service(struct sandbox_pass *p)
{
    struct err e;

    if (service_decide(p->sandbox, sandbox_pass_service(p), p->pass.ed, &p->service, &e) < 0) {
        pass_fault(&p->pass, e.msg);
        p->state = AT_STATUS;
    } else if (p->service.step.verb == STEP_NONE) {
        p->is_service_known = true;
        p->state = AT_STATUS;
    } else {
        pass_call(&p->pass, &p->service.step, got_service);
    }
}

/* ---- the status ---- */

/* What stands in its way, once for each time that it does. */
static void tell_fault(struct sandbox_pass *p)
{
    const struct json *conditions = object_at(p->sandbox, "status.conditions");
    bool has_conflict = p->conflict[0] != '\0';
    const char *reason = has_conflict    ? REASON_MANY_PODS
                         : p->is_invalid ? REASON_INVALID
                                         : REASON_ERROR;

    if (!has_conflict && !pass_has_faults(&p->pass))
        return;
    if (strcmp(condition_reason(conditions, COND_READY), reason) == 0)
        return;
    event_emit(p->pass.shared->events,
               &(struct event){ .about = p->sandbox,
                                .controller = SANDBOX_MANAGER,
                                .is_warning = true,
                                .reason = reason,
                                .action = "Reconciling",
                                .note = has_conflict ? p->conflict : buf_cstr(&p->pass.faults) });
}

/* A pool is made of its members: what keeps one from its start is told of the pool too, where people look first. */
static void tell_pool(struct sandbox_pass *p)
{
    const struct json *ready =
        condition_find(object_at(p->sandbox, "status.conditions"), COND_READY);
    const char *before = json_cstr(json_get(ready, "message"));
    char why[POD_WAITING_BYTES], note[POD_WAITING_BYTES + 400];
    struct object_owner owner;
    struct object *pool;

    if (!p->pod || !*pod_waiting(p->pod, why) || (before && strstr(before, why)) ||
        !p->pass.shared->of[SHARED_POOLS] || !member_owner(p->sandbox, &owner))
        return;
    pool = shared_get(p->pass.shared, SHARED_POOLS, object_namespace(p->sandbox), owner.name);
    if (!pool)
        return;
    (void)snprintf(note, sizeof note, "sandbox \"%s\" does not become ready: %s",
                   object_name(p->sandbox), why);
    event_emit(p->pass.shared->events, &(struct event){ .about = pool,
                                                        .controller = SANDBOX_MANAGER,
                                                        .is_warning = true,
                                                        .reason = "SandboxNotReady",
                                                        .action = "Reconciling",
                                                        .note = note });
}

static void got_status(void *self, const struct kube_answer *answer)
{
    struct sandbox_pass *p = self;
    enum outcome outcome = outcome_of(answer);

    p->state = AT_OVER;
    if (outcome == OUTCOME_DONE)
        got_sandbox(p, answer->object);
    else if (outcome != OUTCOME_GONE)
        pass_fault_of(&p->pass, answer);
}

/* Writes it, or goes on to the end when there is nothing to be written. */
void sandbox_pass_write(struct sandbox_pass *p, struct json_node *status)
{
    struct step step = sandbox_status_step(p->sandbox, status, p->pass.ed);

    if (step.verb == STEP_NONE)
        p->state = AT_OVER;
    else
        pass_call(&p->pass, &step, got_status);
}

/* It has not said anything yet, and could only say that its Pod is not ready. Where Pods start in milliseconds the next thing to
 * say is that it is: one write instead of two. */
static bool is_beginning(struct sandbox_pass *p, const struct sandbox_facts *f)
{
    const char *phase = f->pod ? object_text(f->pod, "status.phase") : NULL;
    bool is_member = owner_is(p->sandbox, GROUP_EXTENSIONS, "SandboxWarmPool");

    if (f->fault || f->conflict || !f->pod || sandbox_is_suspended(p->sandbox) ||
        json_count(object_at(p->sandbox, "status.conditions")) ||
        (phase && strcmp(phase, "Pending") != 0)) {
        sandboxes_forget(p->r, DEFER_STATUS, p->sandbox);
        sandboxes_forget(p->r, DEFER_MEMBER, p->sandbox);
        return false;
    }
    return sandboxes_defer(p->r, is_member ? DEFER_MEMBER : DEFER_STATUS, p->sandbox);
}

/* A claim that took the sandbox changed its generation, and waits for the store. */
static bool may_be_told_later(struct sandbox_pass *p, struct json_node *status)
{
    if (p->r->config->is_remote)
        return false;
    if (sandbox_status_is_renumbered(p->sandbox, status))
        return sandboxes_defer(p->r, DEFER_NUMBERS, p->sandbox);
    sandboxes_forget(p->r, DEFER_NUMBERS, p->sandbox);
    return false;
}

static void do_status(struct sandbox_pass *p)
{
    struct sandbox_facts facts = {
        .sandbox = p->sandbox,
        .pod = p->pod,
        .has_pod_failed = p->has_pod_failed,
        .conflict = p->conflict[0] ? p->conflict : NULL,
        .fault = pass_has_faults(&p->pass) ? buf_cstr(&p->pass.faults) : NULL,
        .is_invalid = p->is_invalid,
        .is_service_known = p->is_service_known,
        .is_service_required = p->service.is_required,
        .is_service_shown = p->service.is_shown,
        .has_service = p->service.exists && p->is_service_known,
        .cluster_domain = p->r->config->cluster_domain,
        .now = p->pass.now_text,
    };
    struct json_node *status;

    tell_fault(p);
    tell_pool(p);
    if (is_beginning(p, &facts)) {
        p->state = AT_OVER;
        return;
    }
    status = sandbox_status(&facts, p->pass.ed);
    if (may_be_told_later(p, status))
        p->state = AT_OVER;
    else
        sandbox_pass_write(p, status);
}

/* ---- the pass ---- */

/* Says when it is to be looked at again, and is gone. */
static void finish(struct sandbox_pass *p)
{
    struct expiry expiry = expiry_of(object_at(p->sandbox, "spec.shutdownTime"), p->pass.now);
    /* What the server will never take is not offered to it again, until somebody changes it. */
    bool has_failed = p->pass.fault_count > (p->is_invalid ? 1 : 0);
    uint64_t wait_ms = expiry.is_over ? EXPIRY_NEXT_PASS_MS : expiry.wait_ms;
    bool has_end = expiry.is_over && expiry_is_marked(p->sandbox) && !p->is_marking;

    pass_say_faults(&p->pass, "sandbox.pass", "sandbox");
    if (expiry.is_set && !has_end)
        pass_look_again(&p->pass, wait_ms);
    pass_end(&p->pass, has_failed);
    object_unref(p->sandbox);
    object_unref(p->found);
    object_unref(p->pod);
    free(p);
}

static bool act(void *self)
{
    struct sandbox_pass *p = self;

    switch (p->state) {
    case AT_VOLUMES:
        do_volumes(p);
        break;
    case AT_POD:
        do_pod(p);
        break;
    case AT_LOOKUP:
        do_lookup(p);
        break;
    case AT_NOTE:
        do_note(p);
        break;
    case AT_SERVICE:
        do_service(p);
        break;
    case AT_STATUS:
        do_status(p);
        break;
    case AT_MARK:
        p->is_marking = true;
        sandbox_pass_write(p, sandbox_status_expired(p->sandbox, p->pass.now_text, p->pass.ed));
        break;
    case AT_END_POD:
        end_pod(p);
        break;
    case AT_END_SERVICE:
        end_service(p);
        break;
    case AT_END_STATUS:
        end_status(p);
        break;
    case AT_END_SANDBOX:
        end_sandbox(p);
        break;
    case AT_OVER:
        finish(p);
        return false;
    }
    return true;
}

static const struct pass_kind passes = { SANDBOX_MANAGER, act };

void sandbox_pass_start(struct sandboxes *r, struct queue_item *item)
{
    struct object *sandbox = shared_get(r->base.shared, SHARED_SANDBOXES,
                                        queue_item_namespace(item), queue_item_name(item));
    struct sandbox_pass *p;
    struct expiry expiry;

    if (!sandbox || object_is_deleting(sandbox)) {
        queue_done(item); /* what it owned goes with it */
        return;
    }
    p = NEW(struct sandbox_pass);
    pass_init(&p->pass, &passes, r->base.shared, item, p);
    p->r = r;
    p->sandbox = object_ref(sandbox);
    expiry = expiry_of(object_at(sandbox, "spec.shutdownTime"), p->pass.now);
    p->state = !expiry.is_over ? AT_VOLUMES : expiry_is_marked(sandbox) ? AT_END_POD : AT_MARK;
    pass_go(&p->pass);
}
