#include "controller/reconciler.h"

#include "controller/names.h"

struct follow {
    struct follow *next;
    struct reconciler *reconciler;
    reconciler_fn fn;
};

static void tell(struct follow *f, const struct object *was, const struct object *now,
                 bool is_initial)
{
    if (f->reconciler->queue)
        f->fn(f->reconciler, &(struct change){ was, now, is_initial });
}

static void on_add(void *ctx, struct object *o, bool is_initial)
{
    tell(ctx, NULL, o, is_initial);
}

static void on_update(void *ctx, struct object *old, struct object *now)
{
    tell(ctx, old, now, false);
}

static void on_delete(void *ctx, struct object *last)
{
    tell(ctx, last, NULL, false);
}

static bool yields(void *ctx)
{
    const struct reconciler *r = ctx;

    return r->shared->urgent != r->queue && shared_is_busy(r->shared);
}

static bool holds(void *ctx)
{
    const struct reconciler *r = ctx;

    return shared_holds(r->shared);
}

void reconciler_init(struct reconciler *r, struct shared *shared, const char *name,
                     struct reconciler_workers workers,
                     void (*work)(void *r, struct queue_item *item),
                     void (*free)(struct reconciler *r))
{
    struct queue_spec spec = { .name = name,
                               .workers = workers.most,
                               .workers_yielding = workers.busy,
                               .work = work,
                               .yields = yields,
                               .holds = workers.is_held ? holds : NULL,
                               .ctx = r };

    *r = (struct reconciler){ .shared = shared, .free = free };
    r->queue = queue_new(kube_client_loop(shared->client), &spec);
}

void reconciler_watch(struct reconciler *r, enum shared_kind kind, reconciler_fn fn)
{
    static const struct informer_listener listener = { .on_add = on_add,
                                                       .on_update = on_update,
                                                       .on_delete = on_delete };
    struct follow *f = NEW(struct follow);

    *f = (struct follow){ .next = r->follows, .reconciler = r, .fn = fn };
    r->follows = f;
    informer_listen(r->shared->of[kind], &listener, f);
}

void reconciler_wake(struct reconciler *r, const char *namespace, const char *name, bool is_initial)
{
    if (r->queue)
        queue_add(r->queue, namespace, name, is_initial ? QUEUE_LOW : QUEUE_NORMAL);
}

static void wake_itself(struct reconciler *r, const struct change *c)
{
    const struct object *o = change_object(c);

    reconciler_wake(r, object_namespace(o), object_name(o), c->is_initial);
}

void reconciler_follow(struct reconciler *r, enum shared_kind kind)
{
    reconciler_watch(r, kind, wake_itself);
}

bool reconciler_is_echo(const struct reconciler *r, const struct change *c)
{
    return c->now && shared_is_echo(r->shared, c->now, r->queue);
}

static void wake_by_others(struct reconciler *r, const struct change *c)
{
    if (!reconciler_is_echo(r, c))
        wake_itself(r, c);
}

void reconciler_follow_others(struct reconciler *r, enum shared_kind kind)
{
    reconciler_watch(r, kind, wake_by_others);
}

bool reconciler_wake_owner(struct reconciler *r, const struct change *c, const char *group,
                           const char *kind)
{
    const struct object *o = change_object(c);
    struct object_owner owner;

    if (!owner_is(o, group, kind) || !object_owner_controller(o, &owner))
        return false;
    reconciler_wake(r, object_namespace(o), owner.name, c->is_initial);
    return true;
}

void reconciler_close(struct reconciler *r, void (*closed)(void *ctx), void *ctx)
{
    if (r->shared->urgent == r->queue)
        r->shared->urgent = NULL;
    queue_close(take_ptr(&r->queue), closed, ctx);
}

void reconciler_done(struct reconciler *r)
{
    struct follow *f;

    while ((f = r->follows)) {
        r->follows = f->next;
        free(f);
    }
    r->free(r);
}
