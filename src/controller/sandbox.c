#include "controller/sandbox.h"

#include "controller/keys.h"
#include "controller/names.h"

#include <string.h>

static void work(void *ctx, struct queue_item *item)
{
    sandbox_pass_start(ctx, item);
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

/* A volume claim that is in the way of a sandbox has changed, or is gone. Its name is its template's and the sandbox's; both may
 * have hyphens. */
static void on_volume(struct reconciler *r, const struct change *c)
{
    const struct object *o = change_object(c);
    const char *name = object_name(o);

    if (c->is_initial || (c->now && owner_is(o, GROUP_SANDBOX, "Sandbox")))
        return;
    while ((name = strchr(name, '-'))) {
        name++;
        if (shared_get(r->shared, SHARED_SANDBOXES, object_namespace(o), name))
            reconciler_wake(r, object_namespace(o), name, false);
    }
}

/* Nobody asks for what waited. */
static void on_gone(struct reconciler *base, const struct change *c)
{
    struct sandboxes *r = CONTAINER(base, struct sandboxes, base);

    if (c->now)
        return;
    defer_forget(r->metadata, object_uid(c->was));
    defer_forget(r->statuses, object_uid(c->was));
}

static void sandboxes_free(struct reconciler *base)
{
    struct sandboxes *r = CONTAINER(base, struct sandboxes, base);

    defer_free(r->metadata);
    defer_free(r->statuses);
    free(r);
}

struct reconciler *sandboxes_new(struct shared *shared, const struct controller_config *config)
{
    struct sandboxes *r = NEW(struct sandboxes);

    reconciler_init(&r->base, shared, "sandbox", config->sandbox_workers, work, sandboxes_free);
    r->config = config;
    r->metadata = defer_new();
    r->statuses = defer_new();
    reconciler_follow(&r->base, SHARED_SANDBOXES);
    reconciler_watch(&r->base, SHARED_SANDBOXES, on_gone);
    reconciler_watch(&r->base, SHARED_PODS, on_child);
    reconciler_watch(&r->base, SHARED_SERVICES, on_child);
    reconciler_watch(&r->base, SHARED_VOLUMES, on_volume);
    return &r->base;
}
