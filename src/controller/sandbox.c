#include "controller/sandbox.h"

#include "controller/keys.h"

struct sandboxes {
    struct reconciler base;
    const struct controller_config *config;
};

static void work(void *ctx, struct queue_item *item)
{
    struct sandboxes *r = ctx;

    sandbox_pass_start(r->base.shared, r->config, item);
}

/* What belongs to a sandbox wakes it; so does what only has its name, since that stands in its way. */
static void on_child(struct reconciler *r, const struct change *c)
{
    const struct object *o = change_object(c);

    if (reconciler_wake_owner(r, c, GROUP_SANDBOX, "Sandbox"))
        return;
    if (shared_get(r->shared, SHARED_SANDBOXES, object_namespace(o), object_name(o)))
        reconciler_wake(r, object_namespace(o), object_name(o), c->is_initial);
}

static void sandboxes_free(struct reconciler *r)
{
    free(CONTAINER(r, struct sandboxes, base));
}

struct reconciler *sandboxes_new(struct shared *shared, const struct controller_config *config)
{
    struct sandboxes *r = NEW(struct sandboxes);

    reconciler_init(&r->base, shared, "sandbox", config->sandbox_workers, work, sandboxes_free);
    r->config = config;
    reconciler_follow(&r->base, SHARED_SANDBOXES);
    reconciler_watch(&r->base, SHARED_PODS, on_child);
    reconciler_watch(&r->base, SHARED_SERVICES, on_child);
    return &r->base;
}
