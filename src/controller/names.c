#include "controller/names.h"

#include "controller/keys.h"

#include <stdio.h>
#include <string.h>

const char *name_hash(char text[NAME_HASH_BYTES], struct span bytes)
{
    uint32_t hash = 0x811c9dc5u;

    for (size_t i = 0; i < bytes.n; i++)
        hash = (hash ^ bytes.p[i]) * 0x01000193u;
    (void)snprintf(text, NAME_HASH_BYTES, "%08x", hash);
    return text;
}

bool key_is_reserved(struct span key)
{
    return span_starts(key, GROUP_SANDBOX "/") || span_starts(key, GROUP_EXTENSIONS "/") ||
           span_is(key, NOTE_TRACE);
}

const char *created_by_known(const char *said)
{
    static const char *const known[] = { "go-client", "python-client", "controller" };

    EACH(name, known) {
        if (said && strcmp(said, *name) == 0)
            return *name;
    }
    return "unknown";
}

/* ---- owners ---- */

enum ownership ownership_of(const struct object *child, const struct object *parent)
{
    struct object_owner owner;

    if (!object_owner_controller(child, &owner))
        return UNOWNED;
    return *owner.uid && strcmp(owner.uid, object_uid(parent)) == 0 ? OWNED : FOREIGN;
}

bool owner_is(const struct object *o, const char *group, const char *kind)
{
    struct object_owner owner;
    struct span api, part;

    if (!object_owner_controller(o, &owner) || (kind && strcmp(owner.kind, kind) != 0))
        return false;
    api = span_cstr(owner.api_version);
    return span_cut(&api, '/', &part) && span_is(part, group);
}

bool may_adopt(const struct object *child, const char *hash)
{
    const char *adoptable = object_label(child, LABEL_ADOPTABLE);
    const char *tracking = object_label(child, LABEL_TRACKING);

    return (adoptable && strcmp(adoptable, "true") == 0) ||
           (tracking && strcmp(tracking, hash) == 0);
}

struct json_node *owner_reference(struct json_edit *ed, const struct object *parent)
{
    const struct kind *kind = object_kind(parent);
    struct json_node *ref = json_edit_object(ed);

    tree_text(ref, "apiVersion", kind_api_version(kind, &kind->versions[0]));
    tree_text(ref, "kind", kind->name);
    tree_text(ref, "name", object_name(parent));
    tree_text(ref, "uid", object_uid(parent));
    json_node_set(ref, "controller", json_edit_bool(ed, true));
    json_node_set(ref, "blockOwnerDeletion", json_edit_bool(ed, true));
    return ref;
}

struct json_node *owner_references_with(struct json_edit *ed, const struct object *child,
                                        const struct object *parent)
{
    struct json_node *list = json_edit_array(ed);

    JSON_EACH(ref, json_get(object_meta(child), "ownerReferences"))
    {
        json_node_append(list, json_edit_view(ed, ref));
    }
    json_node_append(list, owner_reference(ed, parent));
    return list;
}

int err_foreign(struct err *e, const char *what, const struct object *child,
                const struct object *parent)
{
    struct object_owner owner = { "", "", "", "", false };

    (void)object_owner_controller(child, &owner);
    return err_set(e, ERR_CONFLICT, "%s \"%s\" is owned by %s/%s (UID: %s), not by sandbox \"%s\"",
                   what, object_name(child), owner.kind, owner.name, owner.uid,
                   object_name(parent));
}

int err_unowned(struct err *e, const char *what, const struct object *child,
                const struct object *parent)
{
    return err_set(e, ERR_CONFLICT,
                   "%s \"%s\" exists, is not owned by sandbox \"%s\", and is not labelled %s=true: "
                   "it is not adopted",
                   what, object_name(child), object_name(parent), LABEL_ADOPTABLE);
}

/* ---- trees ---- */

struct json_node *tree_object(struct json_node *parent, const char *name)
{
    struct json_node *child = json_node_get(parent, name);

    if (json_node_type(child) == JSON_OBJECT)
        return child;
    return json_node_set(parent, name, json_edit_object(json_node_edit(parent)));
}

void tree_text(struct json_node *object, const char *name, const char *text)
{
    json_node_set(object, name, json_edit_cstr(json_node_edit(object), text));
}

bool value_is_same(const struct json *a, const struct json *b)
{
    OWN(json_edit_done) struct json_edit *ed = NULL;

    if (a == b || !a || !b)
        return a == b;
    ed = json_edit_new(0);
    return json_node_equal_value(json_edit_view(ed, a), b);
}
