#include "controller/claims.h"

#include "controller/blueprint.h"
#include "controller/keys.h"
#include "controller/pool.h"

#include <string.h>

#define NOTE_OLD "api.agents.x-k8s.io/v1alpha1-sandboxclaim-state"

/* Whether the older claim wants a new sandbox whatever waits. */
static bool refuses_pools(const struct object *claim)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const char *state = object_annotation(claim, NOTE_OLD);
    struct err e;

    if (!state || json_parse(span_cstr(state), NULL, &doc, &e) < 0)
        return false;
    return span_is(json_str(json_get(json_get(json_doc_root(doc), "spec"), "warmpool")), "none");
}

struct claim_source claim_source_of(struct shared *shared, const struct object *claim,
                                    struct json_edit *ed)
{
    const char *namespace = object_namespace(claim);
    const char *name = object_text(claim, "spec.warmPoolRef.name");
    struct claim_source source = { 0 };

    if (!name)
        return source;
    source.pool = shared_get(shared, SHARED_POOLS, namespace, name);
    if (source.pool) {
        source.template_name = object_text(source.pool, "spec.sandboxTemplateRef.name");
    } else if (span_starts(span_cstr(name), CLAIM_SHADOW_PREFIX)) {
        struct span rest = span_skip(span_cstr(name), strlen(CLAIM_SHADOW_PREFIX));

        source.template_name = (const char *)json_edit_text(ed, rest).p;
        source.takes_any = !refuses_pools(claim);
    }
    if (source.template_name)
        source.template = shared_get(shared, SHARED_TEMPLATES, namespace, source.template_name);
    return source;
}

/* ---- candidates ---- */

/* A pool that recreates gives nothing away that is out of date. */
static bool is_wanted(const struct object *pool, const struct claim_source *source,
                      const struct object *sandbox)
{
    if (!candidate_is_adoptable(sandbox))
        return false;
    return !pool_recreates(pool) || !source->template ||
           !blueprint_is_stale(sandbox, source->template);
}

static struct object *take_of(struct claims *r, const char *claim, const struct object *pool,
                              const struct claim_source *source, size_t *pending)
{
    const char *namespace = object_namespace(pool), *name;
    size_t n;

    while ((name = candidates_take(r->candidates, namespace, object_name(pool)))) {
        struct object *sandbox = shared_get(r->base.shared, SHARED_SANDBOXES, namespace, name);

        if (sandbox && is_wanted(pool, source, sandbox))
            return sandbox;
        candidates_forget(r->candidates, namespace, name); /* a ghost, or out of date */
    }
    n = candidates_pending(r->candidates, namespace, object_name(pool));
    if (n && !*pending)
        candidates_wait(r->candidates, namespace, object_name(pool), claim);
    *pending += n;
    return NULL;
}

struct object *claim_source_take(struct claims *r, const struct object *claim,
                                 const struct claim_source *source, size_t *ret_pending)
{
    OWN(informer_walk_done) struct informer_walk walk;
    struct object *pool, *sandbox = NULL;

    *ret_pending = 0;
    candidates_unwait(r->candidates, object_namespace(claim), object_name(claim));
    if (source->pool)
        sandbox = take_of(r, object_name(claim), source->pool, source, ret_pending);
    informer_walk(&walk, r->base.shared->of[SHARED_POOLS], POOLS_BY_TEMPLATE,
                  object_namespace(claim), source->template_name ? source->template_name : "");
    while (source->takes_any && !sandbox && (pool = informer_walk_next(&walk)))
        sandbox = take_of(r, object_name(claim), pool, source, ret_pending);
    return sandbox;
}

bool claim_source_allows(const struct claim_source *source, const struct object *claim,
                         const struct object *sandbox)
{
    struct object_owner owner;

    if (strcmp(object_namespace(sandbox), object_namespace(claim)) != 0 ||
        !candidate_is_adoptable(sandbox) || !object_owner_controller(sandbox, &owner))
        return false;
    return source->takes_any ||
           (source->pool && strcmp(owner.name, object_name(source->pool)) == 0);
}
