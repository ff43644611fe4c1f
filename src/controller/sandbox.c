#include "controller/sandbox.h"

#include "base/time.h"
#include "controller/keys.h"
#include "controller/limits.h"
#include "controller/names.h"

#include <string.h>

static void work(void *ctx, struct queue_item *item)
{
    sandbox_pass_start(ctx, item);
}

/* ---- writes that wait ---- */

static void on_due(void *ctx);

/* One timer for all of them: they wait equally long. */
static void rearm(struct waiting_room *room)
{
    struct ev_loop *loop = kube_client_loop(room->r->base.shared->client);
    uint64_t left_ms;

    if (defer_next_ms(room->defer, time_mono_ms(), &left_ms))
        ev_timer_start(loop, &room->timer, left_ms, on_due, room);
    else
        ev_timer_stop(loop, &room->timer);
}

static void on_due(void *ctx)
{
    struct waiting_room *room = ctx;
    const char *namespace, *name;

    while (defer_due(room->defer, time_mono_ms(), &namespace, &name))
        reconciler_wake(&room->r->base, namespace, name, false);
    rearm(room);
}

bool sandboxes_defer(struct sandboxes *r, enum deferral what, const struct object *sandbox)
{
    struct waiting_room *room = &r->rooms[what];

    if (!defer_waits(room->defer, sandbox, time_mono_ms()))
        return false;
    if (!ev_timer_is_running(&room->timer))
        rearm(room);
    return true;
}

void sandboxes_forget(struct sandboxes *r, enum deferral what, const struct object *sandbox)
{
    defer_forget(r->rooms[what].defer, object_uid(sandbox));
}

/* ---- what wakes it ---- */

/* What belongs to a sandbox wakes it; so does what only has its name, since that stands in its way. */
static void on_child(struct reconciler *r, const struct change *c)
{
    const struct object *o = change_object(c);

    if (reconciler_is_echo(r, c) || reconciler_wake_owner(r, c, GROUP_SANDBOX, "Sandbox"))
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
    for (size_t i = 0; i < DEFER_COUNT; i++)
        sandboxes_forget(r, (enum deferral)i, c->was);
}

static void sandboxes_free(struct reconciler *base)
{
    struct sandboxes *r = CONTAINER(base, struct sandboxes, base);

    EACH(room, r->rooms) {
        ev_timer_stop(kube_client_loop(base->shared->client), &room->timer);
        defer_free(room->defer);
    }
    free(r);
}

struct reconciler *sandboxes_new(struct shared *shared, const struct controller_config *config)
{
    struct sandboxes *r = NEW(struct sandboxes);

    struct reconciler_workers workers = { .most = config->sandbox_workers,
                                          .busy = config->is_remote ? SANDBOXES_BUSY : 0,
                                          .is_held = config->is_remote };

    reconciler_init(&r->base, shared, "sandbox", workers, work, sandboxes_free);
    r->config = config;
    for (size_t i = 0; i < DEFER_COUNT; i++)
        r->rooms[i].r = r;
    r->rooms[DEFER_METADATA].defer =
        defer_new(MIN(config->write_behind_ms, (uint64_t)WRITE_BEHIND_MAX_MS));
    r->rooms[DEFER_STATUS].defer = defer_new(FIRST_STATUS_MS);
    r->rooms[DEFER_MEMBER].defer = defer_new(MEMBER_STATUS_MS);
    r->rooms[DEFER_POD].defer = defer_new(MEMBER_POD_MS);
    r->rooms[DEFER_NUMBERS].defer = defer_new(AFTERWARDS_MS);
    reconciler_follow_others(&r->base, SHARED_SANDBOXES);
    reconciler_watch(&r->base, SHARED_SANDBOXES, on_gone);
    reconciler_watch(&r->base, SHARED_PODS, on_child);
    reconciler_watch(&r->base, SHARED_SERVICES, on_child);
    reconciler_watch(&r->base, SHARED_VOLUMES, on_volume);
    return &r->base;
}
