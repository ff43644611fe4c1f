/* Dependents of owners that are gone, or that wait for them. */
#include "apiserver/collect_impl.h"

#include <string.h>

static bool drop_owner_ref(struct json_edit *ed, struct json_node *root, const void *uid)
{
    struct json_node *meta = json_node_get(root, "metadata"),
                     *list = json_node_get(meta, "ownerReferences");
    bool is_changed = false;

    (void)ed;
    for (size_t i = json_node_count(list); i-- > 0;) {
        if (span_is(json_node_str(json_node_get(json_node_at(list, i), "uid")), uid)) {
            json_node_remove_at(list, i);
            is_changed = true;
        }
    }
    if (is_changed && json_node_count(list) == 0)
        (void)json_node_remove(meta, "ownerReferences");
    return is_changed;
}

static bool owner_exists(struct collect *c, const struct json *ref, const struct object *dependent,
                         bool *ret_is_in_foreground)
{
    const char *name = json_cstr(json_get(ref, "name")), *uid = json_cstr(json_get(ref, "uid"));
    const struct kind *k =
        kind_of(json_str(json_get(ref, "apiVersion")), json_str(json_get(ref, "kind")));
    struct shelf_key key;
    struct object *owner;

    if (!k) /* of a version we do not serve any more: by group and kind alone */
        return true;
    if (!name || !uid)
        return false;
    key = (struct shelf_key){ op_number(k),
                              kind_is_namespaced(k) ? object_namespace(dependent) : "", name };
    owner = store_get(c->s->store, STORE_HEAD, &key);
    if (!owner || strcmp(object_uid(owner), uid) != 0)
        return false;
    if (object_is_deleting(owner) && object_has_finalizer(owner, FOREGROUND))
        *ret_is_in_foreground = true;
    return true;
}

/* Others still own it: those that are gone, or wait for it to go, are named no more. */
static void leave_owners(struct collect *c, unsigned kind, struct object *o)
{
    OWN(object_done) struct object *held = object_ref(o);

    JSON_EACH(ref, json_get(object_meta(held), "ownerReferences"))
    {
        const char *uid = json_cstr(json_get(ref, "uid"));
        struct shelf_key key = { kind, object_namespace(held), object_name(held) };
        struct object *now = store_get(c->s->store, STORE_HEAD, &key);
        bool is_waiting = false;

        if (now && uid && (!owner_exists(c, ref, held, &is_waiting) || is_waiting))
            collect_change(c, kind, now, drop_owner_ref, uid);
    }
}

/* An object goes when none of its owners is left; while one that waits in the foreground is the only one, too. */
void collect_dependent(struct collect *c, unsigned kind, struct object *o)
{
    const struct json *refs = json_get(object_meta(o), "ownerReferences");
    size_t there = 0, waiting = 0;

    JSON_EACH(ref, refs)
    {
        bool is_waiting = false;

        if (owner_exists(c, ref, o, &is_waiting)) {
            there++;
            waiting += is_waiting;
        }
    }
    if (there == waiting && !object_is_deleting(o))
        collect_delete(c, kind, o, waiting ? OP_FOREGROUND : OP_BACKGROUND);
    else if (there > waiting && (waiting || there < json_count(refs)))
        leave_owners(c, kind, o);
}

static bool blocks(const struct object *dependent, const char *uid)
{
    JSON_EACH(ref, json_get(object_meta(dependent), "ownerReferences"))
    {
        bool is_blocking = false;

        if (span_is(json_str(json_get(ref, "uid")), uid) &&
            json_bool(json_get(ref, "blockOwnerDeletion"), &is_blocking) && is_blocking)
            return true;
    }
    return false;
}

void collect_foreground(struct collect *c, unsigned kind, struct object *o)
{
    struct owner *owner = owners_find(&c->owners, object_uid(o));

    for (size_t i = 0; owner && i < owner->n; i++) {
        struct object *d = collect_get(c, &owner->dependents[i]->ref);

        if (!d)
            continue;
        if (!object_is_deleting(d))
            collect_look_at(c, owner->dependents[i]->ref.kind, d);
        if (blocks(d, object_uid(o)))
            return; /* its own end brings us back */
    }
    collect_change(c, kind, o, collect_drop_finalizer, FOREGROUND);
}

void collect_orphan(struct collect *c, unsigned kind, struct object *o)
{
    OWN(object_done) struct object *held = object_ref(o);
    struct owner *owner;

    while ((owner = owners_find(&c->owners, object_uid(held)))) {
        struct object *d = collect_get(c, &owner->dependents[0]->ref);

        if (d)
            collect_change(c, owner->dependents[0]->ref.kind, d, drop_owner_ref, object_uid(held));
        owners_drop(&c->owners, owner, 0);
    }
    collect_change(c, kind, held, collect_drop_finalizer, ORPHAN);
}
