#include "controller/claims.h"

#include "controller/condition.h"
#include "controller/keys.h"
#include "controller/names.h"

#include <string.h>

static void work(void *ctx, struct queue_item *item)
{
    claim_pass_start(ctx, item);
}

/* ---- what wakes it ---- */

static void on_free(void *ctx, const char *namespace, const char *claim)
{
    struct claims *r = ctx;

    reconciler_wake(&r->base, namespace, claim, false);
}

/* What a claim copies of the sandbox's Ready: every adoption moves its observedGeneration, and nothing else. */
static bool is_same_ready(const struct json *was, const struct json *now)
{
    static const char *const copied[] = { "status", "reason", "message", "lastTransitionTime" };

    EACH(name, copied) {
        if (!span_eq(json_str(json_get(was, *name)), json_str(json_get(now, *name))))
            return false;
    }
    return true;
}

/* What a claim shows of its sandbox. Both versions often share the status, which is then one document. */
static bool is_relevant(const struct change *c)
{
    const struct json *was, *now;

    if (!c->was || !c->now || object_is_deleting(c->was) != object_is_deleting(c->now))
        return true;
    if (object_member(c->was, "status") == object_member(c->now, "status"))
        return false;
    if (!value_is_same(object_at(c->was, "status.podIPs"), object_at(c->now, "status.podIPs")))
        return true;
    was = object_at(c->was, "status.conditions");
    now = object_at(c->now, "status.conditions");
    return !is_same_ready(condition_find(was, COND_READY), condition_find(now, COND_READY)) ||
           !value_is_same(condition_find(was, COND_FINISHED), condition_find(now, COND_FINISHED));
}

/* Somebody took the sandbox away from its claim, by hand: that must look for another. */
static void wake_who_lost(struct reconciler *r, const struct change *c)
{
    struct object_owner was, now;

    if (!c->was || !c->now || !object_owner_controller(c->was, &was) ||
        (object_owner_controller(c->now, &now) && strcmp(was.uid, now.uid) == 0))
        return;
    (void)reconciler_wake_owner(r, &(struct change){ .was = c->was }, GROUP_EXTENSIONS,
                                "SandboxClaim");
}

static void on_sandbox(struct reconciler *base, const struct change *c)
{
    struct claims *r = CONTAINER(base, struct claims, base);
    const struct object *o = change_object(c);

    if (c->now)
        candidates_see(r->candidates, c->now);
    else
        candidates_forget(r->candidates, object_namespace(o), object_name(o));
    if (is_relevant(c))
        (void)reconciler_wake_owner(base, c, GROUP_EXTENSIONS, "SandboxClaim");
    wake_who_lost(base, c);
    /* A name that stood in a claim's way is free. */
    if (!c->now && shared_get(base->shared, SHARED_CLAIMS, object_namespace(o), object_name(o)))
        reconciler_wake(base, object_namespace(o), object_name(o), false);
}

static const char *addresses_of(const struct object *pod)
{
    const struct json *conditions = pod ? object_at(pod, "status.conditions") : NULL;

    return condition_find(conditions, COND_POD_ADDRESSES)
               ? condition_reason(conditions, COND_POD_ADDRESSES)
               : "";
}

/* Its ports are listened on now: its claim may wait for that. */
static void on_pod(struct reconciler *base, const struct change *c)
{
    struct object_owner owner;
    struct object *sandbox;

    if (!c->now || c->is_initial || strcmp(addresses_of(c->was), addresses_of(c->now)) == 0 ||
        !object_owner_controller(c->now, &owner))
        return;
    sandbox = shared_get(base->shared, SHARED_SANDBOXES, object_namespace(c->now), owner.name);
    if (sandbox)
        (void)reconciler_wake_owner(base, &(struct change){ .now = sandbox }, GROUP_EXTENSIONS,
                                    "SandboxClaim");
}

static void wake_claims_of(struct reconciler *r, const char *namespace, const char *pool,
                           bool is_unbound_only)
{
    OWN(informer_walk_done) struct informer_walk walk;
    struct object *claim;

    informer_walk(&walk, r->shared->of[SHARED_CLAIMS], CLAIMS_BY_POOL, namespace, pool);
    while ((claim = informer_walk_next(&walk))) {
        const char *bound = object_text(claim, "status.sandbox.name");

        if (!object_is_deleting(claim) && !(is_unbound_only && bound && *bound))
            reconciler_wake(r, namespace, object_name(claim), false);
    }
}

static void on_pool(struct reconciler *r, const struct change *c)
{
    const struct object *pool = change_object(c);

    if (c->is_initial ||
        (c->was && c->now && object_generation(c->was) == object_generation(c->now)))
        return;
    wake_claims_of(r, object_namespace(pool), object_name(pool), true);
}

/* All who wait for the template, through its pools or by the older API. */
static void wake_claims_for(struct reconciler *r, const struct object *template,
                            bool is_unbound_only)
{
    OWN(informer_walk_done) struct informer_walk walk;
    OWN(buf_done) struct buf shadow = BUF_INIT(512);
    struct object *pool;
    struct err e;

    informer_walk(&walk, r->shared->of[SHARED_POOLS], POOLS_BY_TEMPLATE, object_namespace(template),
                  object_name(template));
    while ((pool = informer_walk_next(&walk)))
        wake_claims_of(r, object_namespace(pool), object_name(pool), is_unbound_only);
    if (buf_addf(&shadow, &e, CLAIM_SHADOW_PREFIX "%s", object_name(template)) == 0)
        wake_claims_of(r, object_namespace(template), buf_cstr(&shadow), is_unbound_only);
}

static void on_template(struct reconciler *r, const struct change *c)
{
    if (!c->now || c->is_initial)
        return;
    /* What it forbids may be why a claim has no sandbox. */
    if (!c->was || object_generation(c->was) != object_generation(c->now))
        wake_claims_for(r, c->now, c->was != NULL);
}

static void claims_free(struct reconciler *base)
{
    struct claims *r = CONTAINER(base, struct claims, base);

    candidates_free(r->candidates);
    stamps_free(r->stamps);
    free(r);
}

struct reconciler *claims_new(struct shared *shared, const struct controller_config *config)
{
    struct claims *r = NEW(struct claims);

    reconciler_init(&r->base, shared, "sandboxclaim",
                    (struct reconciler_workers){ .most = config->claim_workers }, work,
                    claims_free);
    shared->urgent = r->base.queue;
    r->config = config;
    r->candidates = candidates_new(on_free, r);
    r->stamps = stamps_new();
    reconciler_watch(&r->base, SHARED_SANDBOXES, on_sandbox);
    reconciler_watch(&r->base, SHARED_PODS, on_pod);
    reconciler_follow_others(&r->base, SHARED_CLAIMS);
    reconciler_watch(&r->base, SHARED_POOLS, on_pool);
    reconciler_watch(&r->base, SHARED_TEMPLATES, on_template);
    return &r->base;
}
