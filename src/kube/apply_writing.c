#include "kube/apply_writing.h"

#include "kube/convert.h"

const struct kind_version *writing_version_of(const struct kind *kind, struct span api_version)
{
    for (size_t i = 0; i < kind->version_count; i++)
        if (span_is(api_version, kind_api_version(kind, &kind->versions[i])))
            return &kind->versions[i];
    return NULL;
}

struct span writing_api_version(const struct writing *w)
{
    return span_cstr(kind_api_version(w->by->kind, w->version));
}

struct json_node *writing_empty_object(struct json_edit *ed, const struct schema_type *type)
{
    struct json_node *o = json_edit_object(ed);

    for (size_t i = 0; i < type->field_count; i++) {
        const struct schema_field *f = &type->fields[i];
        bool is_struct = f->shape == SCHEMA_SINGLE && f->value == SCHEMA_OBJECT && f->ref;

        if (f->flags & SCHEMA_ALWAYS || strcmp(f->name, "metadata") == 0)
            json_node_set(o, f->name,
                          is_struct ? writing_empty_object(ed, f->ref) : json_edit_null(ed));
    }
    return o;
}

static struct json_node *without_managed(struct json_edit *ed, struct json_node *object)
{
    struct json_node *copy = json_node_copy(ed, object);

    (void)json_node_remove(json_node_get(copy, "metadata"), "managedFields");
    return copy;
}

int writing_begin(struct writing *w, const struct apply_by *by, struct json_node *object,
                  struct err *e)
{
    w->by = by;
    w->ed = json_node_edit(object);
    w->version = kind_version(by->kind, by->version);
    w->seen_n = 0;
    w->managed.ed = w->ed;
    w->managed.n = 0;
    if (!w->version)
        return err_set(e, ERR_PROTOCOL, "%s is not served in version '%s'", by->kind->name,
                       by->version);
    w->live = NULL;
    return 0;
}

void writing_compare_with(struct writing *w, struct json_node *live)
{
    w->live = live ? without_managed(w->ed, live) : writing_empty_object(w->ed, w->version->type);
}

struct json_node *writing_in_version(const struct writing *w, struct json_node *object,
                                     const struct kind_version *from, const struct kind_version *to)
{
    struct json_node *copy;
    struct err e;

    if (from == to)
        return object;
    copy = json_node_copy(w->ed, object);
    return convert_tree(w->by->kind, from->name, to->name, copy, &e) == 0 ? copy : NULL;
}

struct json_node *writing_reset_fields(const struct writing *w)
{
    struct json_node *set = fieldset_new(w->ed);

    if (strcmp(w->by->subresource, "status") == 0) {
        fieldset_mark(fieldset_child(set, SPAN("f:spec")));
        if (w->by->kind->traits & KIND_CUSTOM)
            fieldset_mark(fieldset_child(set, SPAN("f:metadata")));
    } else if (kind_subresource(w->version, "status")) {
        fieldset_mark(fieldset_child(set, SPAN("f:status")));
    }
    return set;
}

/* Of one version, compared once. NULL: it is not served, so its managers go. */
static const struct typed_diff *diff_in(struct writing *w, const struct kind_version *version)
{
    struct json_node *live, *object, *reset;
    struct writing_seen *s;

    for (size_t i = 0; i < w->seen_n; i++)
        if (w->seen[i].version == version)
            return &w->seen[i].diff;
    if (!version || w->seen_n == LEN(w->seen))
        return NULL;
    live = writing_in_version(w, w->live, w->version, version);
    object = writing_in_version(w, w->object, w->version, version);
    if (!live || !object)
        return NULL;
    s = &w->seen[w->seen_n++];
    s->version = version;
    typed_compare(version->type, live, object, &s->diff);
    reset = writing_reset_fields(w);
    fieldset_subtract_below(s->diff.added, reset);
    fieldset_subtract_below(s->diff.modified, reset);
    fieldset_subtract_below(s->diff.removed, reset);
    return &s->diff;
}

struct json_node *writing_lost_fields(struct writing *w, struct manager *row)
{
    const struct typed_diff *d = diff_in(w, writing_version_of(w->by->kind, row->api_version));
    struct json_node *lost;

    if (!d)
        return NULL;
    lost = managed_common(&w->managed, row, d->modified);
    fieldset_add(lost, managed_common(&w->managed, row, d->added));
    return fieldset_is_empty(lost) ? NULL : lost;
}

/* The manager loses what is in the set; one that has nothing of it is not even decoded. */
static void take_from(struct writing *w, struct manager *row, struct json_node *set)
{
    if (set && json_node_count(set) && !fieldset_is_empty(managed_common(&w->managed, row, set)))
        managed_take(&w->managed, row, set);
}

void writing_settle_others(struct writing *w, const struct manager *self)
{
    for (size_t i = 0; i < w->managed.n; i++) {
        struct manager *row = &w->managed.rows[i];
        const struct typed_diff *d = diff_in(w, writing_version_of(w->by->kind, row->api_version));

        if (row == self || !d)
            continue;
        take_from(w, row, writing_lost_fields(w, row));
        take_from(w, row, d->removed);
    }
}

void writing_drop_unserved(struct writing *w)
{
    for (size_t i = w->managed.n; i-- > 0;)
        if (!writing_version_of(w->by->kind, w->managed.rows[i].api_version))
            managed_drop(&w->managed, &w->managed.rows[i]);
}

const char *const writing_nobodys[] = {
    "name",        "namespace",  "creationTimestamp", "selfLink",        "uid",
    "clusterName", "generation", "managedFields",     "resourceVersion", NULL,
};

void writing_strip(struct json_node *set)
{
    struct json_node *below = fieldset_find(set, SPAN("f:metadata"));

    (void)json_node_remove(set, "f:apiVersion");
    (void)json_node_remove(set, "f:kind");
    (void)json_node_remove(below, ".");
    for (const char *const *name = writing_nobodys; below && *name; name++)
        (void)json_node_remove_span(below, fieldset_field(json_node_edit(set), span_cstr(*name)));
}

struct manager writing_updater(const struct writing *w, const char *manager)
{
    return (struct manager){ .name = span_cstr(manager),
                             .api_version = writing_api_version(w),
                             .subresource = span_cstr(w->by->subresource),
                             .time = span_cstr(w->by->now) };
}

int writing_take_changes(struct writing *w, const char *manager, struct err *e)
{
    const struct typed_diff *d = diff_in(w, w->version);
    struct manager self = writing_updater(w, manager), *before = managed_find(&w->managed, &self);

    writing_strip(d->added);
    writing_strip(d->modified);
    if (before)
        take_from(w, before, d->removed);
    if (fieldset_is_empty(d->added) && fieldset_is_empty(d->modified))
        return 0;
    if (before) {
        before->time = self.time;
        if (before->wire && fieldset_wire_has(before->wire, d->added) &&
            fieldset_wire_has(before->wire, d->modified))
            return 0;
        managed_put(&w->managed, before, d->added);
        managed_put(&w->managed, before, d->modified);
        return 0;
    }
    self.set = d->added;
    fieldset_add(self.set, d->modified);
    if (managed_add(&w->managed, &self))
        return 0;
    return err_set(e, ERR_LIMIT, "more than %d managers of fields", MANAGED_MAX);
}

void writing_write_managed(struct writing *w, struct json_node *object)
{
    struct json_node *meta = json_node_get(object, "metadata"), *list = managed_encode(&w->managed);

    if (!meta)
        meta = json_node_set(object, "metadata", json_edit_object(w->ed));
    json_node_set(meta, "managedFields", list);
}

int writing_full(const struct writing *w, struct err *e)
{
    if (!json_edit_is_full(w->ed))
        return 0;
    return err_set(e, ERR_LIMIT, "the object has more fields than can be kept account of");
}

const char *writing_manager_name(const struct apply_by *by)
{
    return by->manager[0] ? by->manager : "unknown";
}
