#include "apiserver/admit.h"
#include "apiserver/grant.h"
#include "apiserver/op_write.h"

#include "base/str.h"
#include "kube/default.h"

#include <string.h>

/* What a client may send but not change. */
static const char *const kept_meta[] = { "creationTimestamp", "uid",
                                         "deletionTimestamp", "deletionGracePeriodSeconds",
                                         "generation",        "selfLink" };

static bool has_status(const struct op *op)
{
    return kind_subresource(op->version, "status") != NULL;
}

static bool is_status(const struct op *op)
{
    return op->sub && op->sub->sub == KIND_SUB_STATUS;
}

/* The resourceVersion and uid a client sent are its picture of what it changes. */
static int check_picture(struct op *op, const struct object *old, struct json_node *meta,
                         struct status *st)
{
    struct json_node *version = json_node_get(meta, "resourceVersion");
    struct span text = json_node_str(version), uid = json_node_str(json_node_get(meta, "uid"));
    uint64_t number;

    if (uid.n && !span_is(uid, object_uid(old)))
        return status_conflict(
            st, op->kind, op->name,
            "Precondition failed: UID in precondition: %.*s, UID in object meta: %s", SPAN_ARG(uid),
            object_uid(old));
    if (!text.n || span_is(text, "0"))
        return 0;
    if (!str_u64(text, UINT64_MAX, &number))
        return status_bare(st, "strconv.ParseUint: parsing \"%.*s\": invalid syntax",
                           SPAN_ARG(text));
    return number == object_version(old) ? 0 : status_modified(st, op->kind, op->name);
}

static void keep_meta(struct json_node *meta, struct json_node *old_meta, struct json_edit *ed)
{
    EACH(name, kept_meta) {
        struct json_node *was = json_node_get(old_meta, *name);

        if (was)
            json_node_set(meta, *name, json_node_copy(ed, was));
        else
            (void)json_node_remove(meta, *name);
    }
    (void)json_node_remove(meta, "resourceVersion");
}

/* A write of the status changes nothing else, any other write does not change the status. */
static void keep_other_half(struct op *op, struct json_edit *ed, struct json_node **body,
                            struct json_node *old)
{
    struct json_node *status;

    if (is_status(op)) {
        struct json_node *meta = json_node_get(*body, "metadata"), *kept;

        status = json_node_get(*body, "status");
        kept = json_node_copy(ed, old);
        json_node_set(kept, "status", status ? json_node_copy(ed, status) : NULL);
        if (json_node_get(meta, "managedFields"))
            json_node_set(json_node_get(kept, "metadata"), "managedFields",
                          json_node_copy(ed, json_node_get(meta, "managedFields")));
        *body = kept;
    } else if (has_status(op)) {
        status = json_node_get(old, "status");
        json_node_set(*body, "status", status ? json_node_copy(ed, status) : NULL);
    }
}

static bool holds_text(struct json_node *list, struct span wanted)
{
    for (size_t i = 0; i < json_node_count(list); i++)
        if (span_eq(json_node_str(json_node_at(list, i)), wanted))
            return true;
    return false;
}

/* What is on its way out gets no more reasons to stay. Said twice, as the public server does. */
static int check_finalizers(struct op *op, struct json_node *old, struct json_node *body,
                            struct status *st)
{
    struct json_node *old_meta = json_node_get(old, "metadata");
    struct json_node *was = json_node_get(old_meta, "finalizers");
    struct json_node *now = json_node_get(json_node_get(body, "metadata"), "finalizers");
    OWN(buf_done) struct buf names = BUF_INIT(4096);
    bool has_new = false;

    if (!json_node_get(old_meta, "deletionTimestamp"))
        return 0;
    for (size_t i = 0; i < json_node_count(now); i++) {
        struct span name = json_node_str(json_node_at(now, i));

        if (holds_text(was, name))
            continue;
        has_new = true;
        buf_addf_capped(&names, "%s\"%.*s\"", names.n ? ", " : "", SPAN_ARG(name));
    }
    if (!has_new)
        return 0;
    for (int i = 0; i < 2; i++)
        causes_add(&st->causes, CAUSE_FORBIDDEN, AT(AT(NULL, "metadata"), "finalizers"), NULL,
                   "no new finalizers can be added if the object is being deleted, found new "
                   "finalizers []string{%s}",
                   buf_cstr(&names));
    return status_invalid(st, op->kind, op->name);
}

bool op_may_go(const struct object *o)
{
    int64_t grace = 0;

    if (!object_is_deleting(o) || object_finalizer_count(o) > 0)
        return false;
    if (json_count(object_at(o, "spec.finalizers")) > 0) /* a Namespace's */
        return false;
    (void)json_i64(object_at(o, "metadata.deletionGracePeriodSeconds"), &grace);
    return grace == 0;
}

static int count_generation(struct op *op, const struct object *old, struct object **o,
                            struct status *st)
{
    static const char *const not_spec[] = { "metadata", "status", NULL };
    struct meta_change change = { .generation = object_generation(old) + 1 };
    struct object *next;
    struct err e;

    if (!(op->kind->traits & KIND_GENERATION) || object_differs_only(old, *o, not_spec))
        return 0;
    if (object_with_meta(*o, &change, &next, &e) < 0)
        return status_of_err(st, &e);
    object_unref(*o);
    *o = next;
    return 0;
}

int op_replace(struct op *op, struct json_edit *ed, struct object *old, struct json_node *body,
               struct object **ret, struct status *st)
{
    OWN(object_done) struct object *o = NULL, *shown = NULL, *mine = NULL, *gone = NULL;
    struct json_node *was;

    if (check_picture(op, old, json_node_get(body, "metadata"), st) < 0 ||
        admit_show(op, old, &shown, st) < 0)
        return -1;
    was = object_thaw(shown, kind_api_version(op->kind, op->version), ed);
    keep_other_half(op, ed, &body, was);
    keep_meta(json_node_get(body, "metadata"), json_node_get(was, "metadata"), ed);
    (void)json_node_remove(json_node_get(was, "metadata"), "resourceVersion");
    if (check_finalizers(op, was, body, st) < 0 || admit_defaults(op, body, was, st) < 0)
        return -1;
    default_updated(op->kind, body, was);
    if (admit_kind_updated(op, body, was, st) < 0 || grant_check(op, body, was, st) < 0 ||
        admit_track(op, was, body, st) < 0 || admit_rules(op, body, shown, &mine, st) < 0 ||
        admit_store(op, mine, old, &o, st) < 0)
        return -1;
    if (object_is_same(old, o)) {
        *ret = object_ref(old);
        return 0;
    }
    if (count_generation(op, old, &o, st) < 0)
        return -1;
    if (op_may_go(o)) {
        if (op_commit(op, STORE_DELETE, o, true, &gone, st) < 0)
            return -1;
        *ret = object_with_version(gone, object_version(old)); /* a version of it is no more */
        return 0;
    }
    return op_commit(op, STORE_UPDATE, o, object_is_deleting(o), ret, st);
}

/* Kinds that nobody may overwrite without having seen them. */
static bool wants_version(const struct kind *k)
{
    static const char *const names[] = { "Lease", "PodDisruptionBudget", "RuntimeClass",
                                         "CustomResourceDefinition" };

    EACH(name, names) {
        if (strcmp(k->name, *name) == 0)
            return true;
    }
    return k->traits & KIND_CUSTOM;
}

/* Read without opening a body that was sent: its fields are yet to be checked. */
static bool has_name(struct json_node *body)
{
    const struct json *sent = json_node_view(body);

    if (sent)
        return json_str(json_get(json_get(sent, "metadata"), "name")).n > 0;
    return json_node_str(json_node_get(json_node_get(body, "metadata"), "name")).n > 0;
}

int op_update(struct op *op, struct json_edit *ed, struct json_node *body, struct object **ret,
              struct status *st)
{
    OWN(object_done) struct object *old = NULL, *shown = NULL;
    struct json_node *version;
    struct shelf_key key = op_key(op);

    if (json_node_type(body) == JSON_OBJECT && !has_name(body))
        return status_bad_request(st,
                                  "the name of the object (%s based on URL) was undeterminable: "
                                  "name must be provided",
                                  op->name);
    old = object_ref(store_get(op->store, STORE_HEAD, &key));
    if (old && admit_show(op, old, &shown, st) < 0)
        return -1;
    if (admit_body(op, body, shown, st) < 0)
        return -1;
    if (!old)
        return status_not_found(st, op->kind, op->name);
    version = json_node_get(json_node_get(body, "metadata"), "resourceVersion");
    if (!json_node_str(version).n && wants_version(op->kind)) {
        const struct kind named = { .group = op->kind->group, .name = op->kind->plural };

        causes_add_shown(&st->causes, CAUSE_INVALID, AT(AT(NULL, "metadata"), "resourceVersion"),
                         "0", "must be specified for an update");
        return status_invalid(st, &named, op->name);
    }
    return op_replace(op, ed, old, body, ret, st);
}
