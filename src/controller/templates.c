#include "controller/templates.h"

#include "base/log.h"
#include "controller/keys.h"
#include "controller/pass.h"
#include "controller/template.h"

#define MANAGER "sandboxtemplate-controller"

enum state { AT_LABEL, AT_POLICY, AT_OVER };

struct template_pass {
    struct pass pass;
    enum state state;
    struct object *template; /* ours */
};

static void on_answer(void *ctx, const struct kube_answer *answer);

static void do_label(struct template_pass *p)
{
    struct step step = template_decide_label(p->template, p->pass.ed);

    if (step.verb == STEP_NONE)
        p->state = AT_POLICY;
    else
        pass_call(&p->pass, &step, on_answer, p);
}

static void do_policy(struct template_pass *p)
{
    struct object *have = shared_get(p->pass.shared, SHARED_POLICIES, object_namespace(p->template),
                                     template_policy_name(p->pass.ed, p->template));
    struct step step;
    struct err e;

    p->state = AT_OVER;
    if (template_decide_policy(p->template, have, p->pass.ed, &step, &e) < 0) {
        pass_fault(&p->pass, e.msg);
    } else if (step.verb != STEP_NONE) {
        p->state = AT_POLICY;
        pass_call(&p->pass, &step, on_answer, p);
    }
}

static void finish(struct template_pass *p)
{
    struct queue_item *item = p->pass.item;

    if (pass_has_faults(&p->pass))
        log_warn("template.pass", KV("namespace", queue_item_namespace(item)),
                 KV("template", queue_item_name(item)), KV("err", buf_cstr(&p->pass.faults)));
    if (pass_has_faults(&p->pass) || p->pass.is_stale)
        queue_retry(item);
    else
        queue_done(item);
    pass_done(&p->pass);
    object_unref(p->template);
    free(p);
}

static void advance(struct template_pass *p)
{
    while (!p->pass.is_waiting) {
        switch (p->state) {
        case AT_LABEL:
            do_label(p);
            break;
        case AT_POLICY:
            do_policy(p);
            break;
        case AT_OVER:
            finish(p);
            return;
        }
    }
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct template_pass *p = ctx;

    p->state = p->state == AT_LABEL ? AT_POLICY : AT_OVER;
    switch (outcome_of(answer)) {
    case OUTCOME_DONE:
        break;
    case OUTCOME_GONE:
    case OUTCOME_EXISTS:
    case OUTCOME_STALE:
        p->pass.is_stale = true;
        p->state = AT_OVER;
        break;
    case OUTCOME_INVALID:
    case OUTCOME_FAILED:
        pass_fault_of(&p->pass, answer);
        break;
    }
    advance(p);
}

static void work(void *ctx, struct queue_item *item)
{
    struct reconciler *r = ctx;
    struct object *template =
        shared_get(r->shared, SHARED_TEMPLATES, queue_item_namespace(item), queue_item_name(item));
    struct template_pass *p;

    if (!template || object_is_deleting(template)) {
        queue_done(item);
        return;
    }
    p = NEW(struct template_pass);
    pass_init(&p->pass, r->shared, MANAGER, item);
    p->template = object_ref(template);
    advance(p);
}

static void on_policy(struct reconciler *r, const struct change *c)
{
    (void)reconciler_wake_owner(r, c, GROUP_EXTENSIONS, "SandboxTemplate");
}

static void templates_free(struct reconciler *r)
{
    free(r);
}

struct reconciler *templates_new(struct shared *shared, const struct controller_config *config)
{
    struct reconciler *r = NEW(struct reconciler);

    reconciler_init(r, shared, "sandboxtemplate", config->template_workers, work, templates_free);
    reconciler_follow(r, SHARED_TEMPLATES);
    reconciler_watch(r, SHARED_POLICIES, on_policy);
    return r;
}
