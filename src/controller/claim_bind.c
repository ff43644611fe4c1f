/* Find a claim's sandbox, or bind it to one. */
#include "controller/claim_pass.h"

#include "controller/fields.h"
#include "controller/keys.h"
#include "controller/figures.h"
#include "controller/limits.h"
#include "controller/names.h"
#include "kube/time.h"

#include <stdio.h>
#include <string.h>

/* ---- find or bind ---- */

static void use(struct claim_pass *p, struct object *sandbox, const char *launch)
{
    pass_set(&p->sandbox, sandbox);
    p->launch = launch;
    p->state = AT_FOLLOW;
}

static void got_unlock(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;

    if (outcome_of(answer) == OUTCOME_GONE) {
        p->state = AT_OVER;
    } else if (claim_pass_is_done(p, answer)) {
        pass_set(&p->claim, answer->object);
        p->state = p->after_unlock;
    }
}

/* The reference says nothing that is so: it goes, and the search begins again. */
static void unlock(struct claim_pass *p, enum claim_state after)
{
    struct step step = claim_unlock(p->claim, p->pass.ed);

    p->after_unlock = after;
    p->state = AT_UNLOCK;
    pass_call(&p->pass, &step, got_unlock);
}

/* By the status, the lock, its own name. True: the search is over, for now. */
static bool find_bound(struct claim_pass *p, const struct claim_source *source)
{
    const char *claim_name = object_name(p->claim), *assigned = claim_assigned(p->claim);
    const char *shown = object_text(p->claim, "status.sandbox.name");
    struct object *o = claim_pass_sandbox(p, shown);

    if (o && ownership_of(o, p->claim) == OWNED) {
        bool is_cold =
            strcmp(shown, claim_name) == 0 && !(assigned && strcmp(assigned, shown) == 0);

        use(p, o, is_cold ? LAUNCH_COLD : LAUNCH_WARM);
        return true;
    }
    if (assigned) {
        bool is_noted = object_annotation(p->claim, NOTE_SANDBOX_NAME) != NULL;

        o = claim_pass_sandbox(p, assigned);
        if (o && ownership_of(o, p->claim) == OWNED && is_noted) {
            use(p, o, LAUNCH_WARM);
        } else if (o && (ownership_of(o, p->claim) == OWNED ||
                         claim_source_allows(source, p->claim, o))) {
            pass_set(&p->candidate, o);
            p->state = is_noted ? AT_TAKE : AT_LOCK; /* from the older label to the annotation */
        } else {
            unlock(p, AT_FIND);
        }
        return true;
    }
    o = claim_pass_sandbox(p, claim_name);
    if (o && ownership_of(o, p->claim) == OWNED) {
        use(p, o, LAUNCH_COLD);
        return true;
    }
    if (!o)
        return false;
    (void)err_set(&p->why, ERR_CONFLICT,
                  "sandbox \"%s\" is not controlled by claim \"%s\". Please use a different claim "
                  "name or delete the sandbox manually",
                  claim_name, claim_name);
    claim_pass_fail(p, CLAIM_NOT_OWNED);
    return true;
}

/* A member of the pool is about to get its address: it is worth waiting for. True: it is waited for. */
static bool waits_for_pending(struct claim_pass *p, size_t pending)
{
    struct timespec made;
    int64_t left_ms;

    if (!pending ||
        !kube_time_parse(span_cstr(object_text(p->claim, "metadata.creationTimestamp")), &made))
        return false;
    left_ms = (made.tv_sec - p->pass.now.tv_sec) * 1000 - p->pass.now.tv_nsec / 1000000 +
              CLAIM_PATIENCE_MS;
    if (left_ms <= 0)
        return false;
    pass_look_again(&p->pass, MIN((uint64_t)left_ms, (uint64_t)CLAIM_POLL_MS));
    p->state = AT_OVER;
    return true;
}

void bind_find(struct claim_pass *p)
{
    struct claim_source source = claim_source_of(p->pass.shared, p->claim, p->pass.ed);
    struct object *o;
    size_t pending = 0;

    p->fault = claim_check_metadata(p->claim, p->r->config->label_domains, &p->why);
    if (p->fault) {
        p->state = AT_STATUS;
        return;
    }
    if (find_bound(p, &source))
        return;
    if (!claim_needs_own(p->claim)) {
        o = claim_source_take(p->r, p->claim, &source, &pending);
        if (o) {
            pass_set(&p->candidate, o);
            p->is_taken = true;
            p->state = AT_LOCK;
            return;
        }
        if (waits_for_pending(p, pending))
            return;
        candidates_unwait(p->r->candidates, object_namespace(p->claim), object_name(p->claim));
    }
    p->state = AT_CREATE;
}

/* ---- adoption ---- */

static void got_lock(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;

    if (outcome_of(answer) == OUTCOME_GONE) {
        claim_pass_let_go(p);
        p->state = AT_OVER;
    } else if (claim_pass_is_done(p, answer)) {
        pass_set(&p->claim, answer->object);
        p->state = AT_TAKE;
        if (ownership_of(p->candidate, p->claim) == OWNED)
            use(p, p->candidate, LAUNCH_WARM);
    }
}

void bind_lock(struct claim_pass *p)
{
    const struct timespec *now = p->r->config->has_no_claim_times ? NULL : &p->pass.now;
    struct step step = claim_lock(p->claim, object_name(p->candidate), now, p->pass.ed);

    if (p->r->config->forgets_fields)
        fields_forget(&step, p->claim);
    pass_call(&p->pass, &step, got_lock);
}

static void adopted(struct claim_pass *p, struct object *sandbox)
{
    char note[320];

    pass_set(&p->sandbox, sandbox);
    candidates_forget(p->r->candidates, object_namespace(sandbox), object_name(sandbox));
    p->is_taken = false;
    figures_claim_bound(p->pass.shared->figures, p->claim, sandbox);
    (void)snprintf(note, sizeof note, "Adopted warm pool Sandbox \"%s\"", object_name(sandbox));
    claim_pass_tell(p, "SandboxAdopted", "Adoption", note);
    p->state = AT_STATUS;
}

static void got_take(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;

    if (verdict_of(answer) == VERDICT_CHANGED)
        p->state = AT_RESOLVE;
    else if (claim_pass_is_done(p, answer))
        adopted(p, answer->object);
}

void bind_take(struct claim_pass *p)
{
    struct claim_source source = claim_source_of(p->pass.shared, p->claim, p->pass.ed);
    struct step step;

    if (claim_adopt(p->claim, source.template, p->candidate, p->pass.ed, &step, &p->why) < 0) {
        pass_fault(&p->pass, p->why.msg);
        claim_pass_let_go(p);
        claim_pass_fail(p, CLAIM_ERROR);
        return;
    }
    if (p->r->config->forgets_fields)
        fields_forget(&step, p->candidate);
    pass_call(&p->pass, &step, got_take);
}

static void lost(struct claim_pass *p, bool is_contention)
{
    (void)err_set(
        &p->why, ERR_CONFLICT, "%s sandbox \"%s\"; the next pass retries from a converged view",
        is_contention ? "too much contention for" : "could not adopt", object_name(p->candidate));
    claim_pass_let_go(p);
    claim_pass_fail(p, CLAIM_CONFLICT);
    if (!is_contention)
        unlock(p, AT_STATUS);
}

static void got_resolve(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;
    struct claim_source source = claim_source_of(p->pass.shared, p->claim, p->pass.ed);

    if (outcome_of(answer) == OUTCOME_GONE) {
        lost(p, false);
    } else if (outcome_of(answer) != OUTCOME_DONE) {
        claim_pass_let_go(p);
        claim_pass_fail_of(p, answer);
    } else if (ownership_of(answer->object, p->claim) == OWNED) {
        adopted(p, answer->object);
    } else if (!claim_source_allows(&source, p->claim, answer->object)) {
        lost(p, false);
    } else if (++p->tries >= CLAIM_TRIES_MAX) {
        lost(p, true);
    } else {
        pass_set(&p->candidate, answer->object);
        p->state = AT_TAKE;
    }
}

/* The copy was behind. An assignment is never changed for another in the same pass: it is completed, or ends here. */
void bind_resolve(struct claim_pass *p)
{
    pass_get(&p->pass, known_kinds()->sandbox, object_namespace(p->claim),
             object_name(p->candidate), got_resolve);
}

/* ---- a new one ---- */

static void got_create(void *self, const struct kube_answer *answer)
{
    struct claim_pass *p = self;
    char note[320];

    if (outcome_of(answer) == OUTCOME_EXISTS) {
        (void)err_set(&p->why, ERR_EXISTS,
                      "Sandbox already created; waiting for cache to converge");
        claim_pass_fail(p, CLAIM_PENDING);
        return;
    }
    if (!claim_pass_is_done(p, answer))
        return;
    pass_set(&p->sandbox, answer->object);
    figures_claim_bound(p->pass.shared->figures, p->claim, p->sandbox);
    (void)snprintf(note, sizeof note, "Created Sandbox \"%s\"", object_name(p->sandbox));
    claim_pass_tell(p, "SandboxProvisioned", "Provisioning", note);
    p->state = AT_STATUS;
}

void bind_create(struct claim_pass *p)
{
    struct claim_source source = claim_source_of(p->pass.shared, p->claim, p->pass.ed);
    const char *pool = object_text(p->claim, "spec.warmPoolRef.name");
    struct step step;
    enum claim_fault fault;

    if (!source.template_name) {
        (void)err_set(&p->why, ERR_NOT_FOUND, "SandboxWarmPool \"%s\" not found", pool ? pool : "");
        claim_pass_fail(p, CLAIM_NO_POOL);
    } else if (!source.template) {
        (void)err_set(&p->why, ERR_NOT_FOUND, "SandboxTemplate \"%s\" not found",
                      source.template_name);
        claim_pass_fail(p, CLAIM_NO_TEMPLATE);
    } else {
        fault = claim_make_sandbox(p->claim, source.template, p->pass.ed, &step, &p->why);
        if (fault)
            claim_pass_fail(p, fault);
        else
            pass_call(&p->pass, &step, got_create);
    }
}
