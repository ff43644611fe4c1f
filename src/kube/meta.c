/* What is read and stamped of an object's metadata. */
#include "kube/object.h"

#include "base/str.h"

const struct json *object_at(const struct object *o, const char *path)
{
    struct span rest = span_cstr(path), name;
    const struct json *v = NULL;
    char first[64];

    if (!span_cut(&rest, '.', &name) || name.n >= sizeof first)
        return NULL;
    memcpy(first, name.p, name.n);
    first[name.n] = '\0';
    v = object_member(o, first);
    while (v && span_cut(&rest, '.', &name))
        v = json_get_span(v, name);
    return v;
}

const char *object_text(const struct object *o, const char *path)
{
    return json_cstr(object_at(o, path));
}

const char *object_label(const struct object *o, const char *key)
{
    return json_cstr(json_get(json_get(object_meta(o), "labels"), key));
}

const char *object_annotation(const struct object *o, const char *key)
{
    return json_cstr(json_get(json_get(object_meta(o), "annotations"), key));
}

bool object_has_finalizer(const struct object *o, const char *name)
{
    JSON_EACH(item, json_get(object_meta(o), "finalizers"))
    {
        if (span_is(json_str(item), name))
            return true;
    }
    return false;
}

/* In one walk of its members: every event of a dependent asks for it. */
static bool read_owner(const struct json *owner, struct object_owner *ret)
{
    bool is_controller = false;

    *ret = (struct object_owner){ .api_version = "", .kind = "", .name = "", .uid = "" };
    JSON_MEMBERS(name, value, owner)
    {
        struct span key = json_str(name);
        const char **text = span_is(key, "uid")          ? &ret->uid
                            : span_is(key, "name")       ? &ret->name
                            : span_is(key, "kind")       ? &ret->kind
                            : span_is(key, "apiVersion") ? &ret->api_version
                                                         : NULL;

        if (text)
            *text = json_cstr(value) ? json_cstr(value) : "";
        else if (span_is(key, "controller"))
            (void)json_bool(value, &is_controller);
        else if (span_is(key, "blockOwnerDeletion"))
            (void)json_bool(value, &ret->is_blocking);
    }
    return is_controller;
}

bool object_owner_controller(const struct object *o, struct object_owner *ret)
{
    JSON_EACH(owner, json_get(object_meta(o), "ownerReferences"))
    {
        struct object_owner found;

        if (read_owner(owner, &found)) {
            *ret = found;
            return true;
        }
    }
    return false;
}

static void change_meta(struct json_node *meta, const struct meta_change *change)
{
    struct json_edit *ed = json_node_edit(meta);
    const struct {
        const char *name, *value;
    } texts[] = {
        { "name", change->name },
        { "namespace", change->name_space },
        { "uid", change->uid },
        { "creationTimestamp", change->creation_timestamp },
        { "deletionTimestamp", change->deletion_timestamp },
    };

    for (const char *const *name = change->drop; name && *name; name++)
        (void)json_node_remove(meta, *name);
    EACH(t, texts) {
        if (t->value)
            json_node_set(meta, t->name, json_edit_cstr(ed, t->value));
    }
    if (change->deletion_grace_seconds)
        json_node_set(meta, "deletionGracePeriodSeconds",
                      json_edit_i64(ed, *change->deletion_grace_seconds));
    if (change->generation)
        json_node_set(meta, "generation", json_edit_i64(ed, change->generation));
    if (json_is_null(change->managed_fields))
        (void)json_node_remove(meta, "managedFields");
    else if (change->managed_fields)
        json_node_set(meta, "managedFields", json_edit_view(ed, change->managed_fields));
}

int object_with_meta(const struct object *o, const struct meta_change *change, struct object **ret,
                     struct err *e)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_node *meta = json_edit_view(ed, object_meta(o));

    change_meta(meta, change);
    if (json_node_freeze(meta, &doc, e) < 0)
        return -1;
    return object_with(o, "metadata", doc, ret, e);
}
