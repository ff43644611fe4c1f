#include "controller/templates.h"

#include "base/log.h"
#include "controller/keys.h"
#include "controller/pass.h"
#include "controller/template.h"

enum state { AT_LABEL, AT_POLICY, AT_OVER };

struct template_pass {
    struct pass pass;
    enum state state;
    struct object *template; /* ours */
};

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct template_pass *p = ctx;

    p->state = p->state == AT_LABEL ? AT_POLICY : AT_OVER;
    switch (verdict_of(answer)) {
    case VERDICT_DONE:
        break;
    case VERDICT_CHANGED:
        p->pass.is_stale = true;
        p->state = AT_OVER;
        break;
    case VERDICT_REFUSED:
        pass_fault_of(&p->pass, answer);
        break;
    }
}

static void do_label(struct template_pass *p)
{
    struct step step = template_decide_label(p->template, p->pass.ed);

    if (step.verb == STEP_NONE)
        p->state = AT_POLICY;
    else
        pass_call(&p->pass, &step, on_answer);
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
        pass_call(&p->pass, &step, on_answer);
    }
}

static void finish(struct template_pass *p)
{
    pass_say_faults(&p->pass, "template.pass", "template");
    pass_end(&p->pass, pass_has_faults(&p->pass));
    object_unref(p->template);
    free(p);
}

static bool act(void *self)
{
    struct template_pass *p = self;

    switch (p->state) {
    case AT_LABEL:
        do_label(p);
        break;
    case AT_POLICY:
        do_policy(p);
        break;
    case AT_OVER:
        finish(p);
        return false;
    }
    return true;
}

static const struct pass_kind passes = { "sandboxtemplate-controller", act };

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
    pass_init(&p->pass, &passes, r->shared, item, p);
    p->template = object_ref(template);
    pass_go(&p->pass);
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

    reconciler_init(r, shared, "sandboxtemplate",
                    (struct reconciler_workers){ .most = config->template_workers }, work,
                    templates_free);
    reconciler_follow(r, SHARED_TEMPLATES);
    reconciler_watch(r, SHARED_POLICIES, on_policy);
    return r;
}
