/* The second pass of an expiry: what a sandbox has goes, and it says so, or goes too. */
#include "controller/sandbox_pass.h"

#include "controller/expiry.h"
#include "controller/names.h"
#include "controller/pod.h"
#include "controller/sandbox_status.h"

static enum sandbox_state after_service(const struct sandbox_pass *p)
{
    return expiry_deletes(p->sandbox) ? AT_END_SANDBOX : AT_END_STATUS;
}

static void got_deleted(void *self, const struct kube_answer *answer)
{
    struct sandbox_pass *p = self;

    pass_deleted(&p->pass, answer);
    p->state = p->state == AT_END_POD       ? AT_END_SERVICE
               : p->state == AT_END_SERVICE ? after_service(p)
                                            : AT_OVER;
}

void end_pod(struct sandbox_pass *p)
{
    struct object *own[1], *pod = shared_get(p->pass.shared, SHARED_PODS,
                                             object_namespace(p->sandbox), pod_name_of(p->sandbox));
    struct step step;

    if (!pod || ownership_of(pod, p->sandbox) != OWNED)
        pod = sandbox_pass_own(p, own, 1) ? own[0] : NULL;
    p->state = AT_END_SERVICE;
    if (!pod || object_is_deleting(pod))
        return;
    p->state = AT_END_POD;
    step = step_delete(pod);
    pass_call(&p->pass, &step, got_deleted);
}

void end_service(struct sandbox_pass *p)
{
    struct object *service = sandbox_pass_service(p);
    struct step step;

    p->state = after_service(p);
    if (!service || object_is_deleting(service) || ownership_of(service, p->sandbox) != OWNED)
        return;
    p->state = AT_END_SERVICE;
    step = step_delete(service);
    pass_call(&p->pass, &step, got_deleted);
}

/* What could not be deleted here goes with the Sandbox, as everything that it owns. */
void end_sandbox(struct sandbox_pass *p)
{
    struct step step = step_delete(p->sandbox);

    pass_forgive(&p->pass);
    pass_call(&p->pass, &step, got_deleted);
}

void end_status(struct sandbox_pass *p)
{
    if (pass_has_faults(&p->pass))
        p->state = AT_OVER;
    else
        sandbox_pass_write(p, sandbox_status_ended(p->sandbox, p->pass.now_text, p->pass.ed));
}
