#include "apiserver/admit.h"
#include "apiserver/call.h"

#include "kube/table.h"

#include <stdio.h>
#include <time.h>

static const char *api_version(const struct call *c)
{
    return kind_api_version(c->op.kind, c->op.version);
}

static int fail(struct call *c, const struct err *e)
{
    return status_of_err(&c->status, e);
}

/* In the version of the path; the bytes of what that shares with the stored one are copied as they are. */
static int write_object(struct call *c, struct object *o, bool is_typed, struct buf *out)
{
    OWN(object_done) struct object *shown = NULL;
    struct err e;

    if (admit_show(&c->op, o, &shown, &c->status) < 0)
        return -1;
    return object_write(shown, is_typed ? api_version(c) : NULL, out, &e) < 0 ? fail(c, &e) : 0;
}

static int write_partial(struct call *c, struct object *o, struct buf *out)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = json_edit_object(ed), *whole = object_thaw(o, NULL, ed);
    struct err e;

    json_node_set(root, "kind", json_edit_cstr(ed, "PartialObjectMetadata"));
    json_node_set(root, "apiVersion", json_edit_cstr(ed, "meta.k8s.io/v1"));
    json_node_set(root, "metadata", json_node_get(whole, "metadata"));
    return json_node_write(root, out, &e) < 0 ? fail(c, &e) : 0;
}

static struct table_view view_of(const struct call *c)
{
    return (struct table_view){
        .kind = c->op.kind, .version = c->op.version, .now = time(NULL), .include = c->include
    };
}

static int write_row(struct call *c, struct object *o, struct buf *out)
{
    OWN(object_done) struct object *seen = NULL;
    struct table_view view = view_of(c);
    struct json_out row;
    struct err e;

    if (admit_show(&c->op, o, &seen, &c->status) < 0)
        return -1;
    json_out_init(&row, out, 0);
    table_row(&view, seen, &row);
    return json_out_end(&row, &e) < 0 ? fail(c, &e) : 0;
}

static int write_one(struct call *c, struct object *o, bool is_typed, struct buf *out)
{
    switch (c->form) {
    case FORM_OBJECT:
        return write_object(c, o, is_typed, out);
    case FORM_TABLE:
        return write_row(c, o, out);
    case FORM_PARTIAL:
    case FORM_PARTIAL_LIST:
        break;
    }
    return write_partial(c, o, out);
}

/* What core kinds are in a list, the list says. */
int render_item(struct call *c, struct object *o, struct buf *out)
{
    return write_one(c, o, c->op.kind->traits & KIND_CUSTOM, out);
}

/* A whole answer: of a table, one with one row. */
int render_object(struct call *c, struct object *o, struct buf *out)
{
    OWN(object_done) struct object *seen = NULL;
    struct table_view view = view_of(c);
    struct err e;

    if (c->form != FORM_TABLE)
        return write_one(c, o, true, out);
    if (admit_show(&c->op, o, &seen, &c->status) < 0)
        return -1;
    return table_write_one(&view, seen, out, &e) < 0 ? fail(c, &e) : 0;
}

static void list_names(const struct call *c, const char **ret_kind, const char **ret_version)
{
    *ret_kind = c->form == FORM_TABLE     ? "Table"
                : c->form == FORM_PARTIAL ? "PartialObjectMetadataList"
                                          : c->op.kind->list_name;
    *ret_version = c->form == FORM_OBJECT ? api_version(c) : "meta.k8s.io/v1";
}

/* Everything but the items, which follow, and the two last brackets. */
int render_list_begin(struct call *c, uint64_t version, const char *next, uint64_t remaining,
                      struct buf *out)
{
    const char *kind, *group_version;
    struct json_out o;
    char text[24];
    struct err e;

    list_names(c, &kind, &group_version);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)version);
    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "kind"), json_out_cstr(&o, kind);
    json_out_key(&o, "apiVersion"), json_out_cstr(&o, group_version);
    json_out_key(&o, "metadata"), json_out_object_begin(&o);
    json_out_key(&o, "resourceVersion"), json_out_cstr(&o, text);
    if (next || (c->op.kind->traits & KIND_CUSTOM && c->form == FORM_OBJECT))
        json_out_key(&o, "continue"), json_out_cstr(&o, next ? next : "");
    if (next && remaining)
        json_out_key(&o, "remainingItemCount"), json_out_u64(&o, remaining);
    json_out_object_end(&o);
    if (c->form == FORM_TABLE)
        json_out_key(&o, "columnDefinitions"), table_columns(c->op.kind, c->op.version, &o);
    json_out_key(&o, c->form == FORM_TABLE ? "rows" : "items");
    json_out_array_begin(&o), json_out_array_end(&o);
    json_out_object_end(&o);
    if (json_out_end(&o, &e) < 0)
        return fail(c, &e);
    buf_truncate(out, out->n - 2);
    return 0;
}

int render_list_end(struct call *c, struct buf *out)
{
    struct err e;

    return buf_add(out, SPAN("]}\n"), &e) < 0 ? fail(c, &e) : 0;
}

int render_event(struct call *c, enum event_type type, struct object *o, struct buf *out)
{
    static const char *const names[] = { "ADDED", "MODIFIED", "DELETED" };
    struct err e;

    if (buf_addf(out, &e, "{\"type\":\"%s\",\"object\":", names[type]) < 0)
        return fail(c, &e);
    if (render_object(c, o, out) < 0)
        return -1;
    return buf_add(out, SPAN("}\n"), &e) < 0 ? fail(c, &e) : 0;
}

int render_bookmark(struct call *c, uint64_t version, bool is_end_of_list, struct buf *out)
{
    static const char mark[] = ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}";
    const char *kind = c->op.kind->name, *group_version = api_version(c), *more = "";
    struct err e;

    if (c->form == FORM_TABLE)
        kind = "Table", group_version = "meta.k8s.io/v1",
        more = ",\"columnDefinitions\":null,\"rows\":[]";
    else if (c->form == FORM_PARTIAL)
        kind = "PartialObjectMetadata", group_version = "meta.k8s.io/v1";
    return buf_addf(
               out, &e,
               "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":"
               "{\"resourceVersion\":\"%llu\"%s%s}%s}}\n",
               kind, group_version, (unsigned long long)version,
               c->form == FORM_TABLE || c->op.kind->traits & KIND_CUSTOM
                   ? ""
                   : ",\"creationTimestamp\":null",
               is_end_of_list ? mark : "", more) < 0
               ? fail(c, &e)
               : 0;
}
