/* Volume claims: who deletes one that a Pod uses waits for that Pod, as in any cluster. */
#include "apiserver/collect_impl.h"

#include <string.h>

static const char *claim_of(const struct json *volume)
{
    return json_cstr(json_get(json_get(volume, "persistentVolumeClaim"), "claimName"));
}

/* A Pod without a node does not start any more with a claim that goes; one that has ended has no use for it. */
static bool uses(const struct object *pod, const char *claim)
{
    const char *node = object_text(pod, "spec.nodeName"), *phase = object_text(pod, "status.phase");

    if (!node || !*node ||
        (phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0)))
        return false;
    JSON_EACH(volume, object_at(pod, "spec.volumes"))
    {
        const char *name = claim_of(volume);

        if (name && strcmp(name, claim) == 0)
            return true;
    }
    return false;
}

/* Only for claims that go, so a walk through the Pods of their namespace will do. */
static bool is_used(struct collect *c, const struct object *claim)
{
    struct shelf_key from = { c->pods, object_namespace(claim), "" };
    uint64_t version;
    struct shelf *shelf = store_snapshot(c->s->store, STORE_HEAD, &version);
    struct shelf_walk walk;
    struct object *pod;
    unsigned kind;
    bool is_found = false;

    shelf_walk_init(&walk, shelf, &from, false);
    while (!is_found && (pod = shelf_walk_next(&walk, &kind)) && kind == c->pods &&
           strcmp(object_namespace(pod), from.namespace) == 0)
        is_found = uses(pod, object_name(claim));
    shelf_unref(shelf);
    return is_found;
}

void collect_volume_claim(struct collect *c, struct object *o)
{
    if (!is_used(c, o))
        collect_change(c, c->volume_claims, o, collect_drop_finalizer, IN_USE);
}

void collect_pod_is_gone(struct collect *c, const struct object *pod)
{
    JSON_EACH(volume, object_at(pod, "spec.volumes"))
    {
        struct shelf_key key = { c->volume_claims, object_namespace(pod), claim_of(volume) };
        struct object *o = key.name ? store_get(c->s->store, STORE_HEAD, &key) : NULL;

        if (o && object_is_deleting(o))
            collect_look_at(c, c->volume_claims, o);
    }
}
