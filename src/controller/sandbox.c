#include "controller/sandbox.h"

#include "controller/keys.h"
#include "controller/names.h"
#include "controller/sandbox_pass.h"
#include "kube/queue.h"

struct sandboxes {
    struct sandboxes_config config;
    struct queue *queue; /* NULL: it is closed */
};

static void work(void *ctx, struct queue_item *item)
{
    struct sandboxes *r = ctx;

    sandbox_pass_start(&r->config, item);
}

/* ---- what wakes it ---- */

static void wake(struct sandboxes *r, const char *namespace, const char *name, bool is_initial)
{
    if (r->queue)
        queue_add(r->queue, namespace, name, is_initial ? QUEUE_LOW : QUEUE_NORMAL);
}

static void look_at(struct sandboxes *r, const struct object *o, bool is_initial)
{
    wake(r, object_namespace(o), object_name(o), is_initial);
}

static void on_sandbox_add(void *ctx, struct object *o, bool is_initial)
{
    look_at(ctx, o, is_initial);
}

static void on_sandbox_update(void *ctx, struct object *old, struct object *now)
{
    (void)old;
    look_at(ctx, now, false);
}

static void on_sandbox_delete(void *ctx, struct object *last)
{
    look_at(ctx, last, false);
}

/* What belongs to a sandbox wakes it; so does what only has its name, since that stands in its way. */
static void wake_owner(struct sandboxes *r, const struct object *child, bool is_initial)
{
    const char *namespace = object_namespace(child);
    struct object_owner owner;

    if (owner_is(child, GROUP_SANDBOX, "Sandbox") && object_owner_controller(child, &owner))
        wake(r, namespace, owner.name, is_initial);
    else if (shared_get(r->config.shared, SHARED_SANDBOXES, namespace, object_name(child)))
        wake(r, namespace, object_name(child), is_initial);
}

static void on_child_add(void *ctx, struct object *o, bool is_initial)
{
    wake_owner(ctx, o, is_initial);
}

static void on_child_update(void *ctx, struct object *old, struct object *now)
{
    (void)old;
    wake_owner(ctx, now, false);
}

static void on_child_delete(void *ctx, struct object *last)
{
    wake_owner(ctx, last, false);
}

/* ---- life ---- */

struct sandboxes *sandboxes_start(const struct sandboxes_config *config)
{
    static const struct informer_listener own = { .on_add = on_sandbox_add,
                                                  .on_update = on_sandbox_update,
                                                  .on_delete = on_sandbox_delete };
    static const struct informer_listener child = { .on_add = on_child_add,
                                                    .on_update = on_child_update,
                                                    .on_delete = on_child_delete };
    struct sandboxes *r = NEW(struct sandboxes);
    struct queue_spec spec = {
        .name = "sandbox", .workers = config->workers, .work = work, .ctx = r
    };

    r->config = *config;
    r->queue = queue_new(kube_client_loop(config->shared->client), &spec);
    informer_listen(config->shared->of[SHARED_SANDBOXES], &own, r);
    informer_listen(config->shared->of[SHARED_PODS], &child, r);
    informer_listen(config->shared->of[SHARED_SERVICES], &child, r);
    return r;
}

struct queue *sandboxes_queue(struct sandboxes *r)
{
    return r->queue;
}

void sandboxes_close(struct sandboxes *r, void (*closed)(void *ctx), void *ctx)
{
    queue_close(take_ptr(&r->queue), closed, ctx);
}

void sandboxes_free(struct sandboxes *r)
{
    free(r);
}
