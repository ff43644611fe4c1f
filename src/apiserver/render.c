#include "apiserver/admit.h"
#include "apiserver/call.h"

#include "kube/table.h"
#include "kube/yaml_write.h"

#include <stdio.h>
#include <string.h>
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

/* In YAML each item is whole lines, and the name of the list is still without its line end. */
static int write_yaml_item(struct call *c, struct object *o, bool is_first, struct buf *out)
{
    OWN(buf_done) struct buf text = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    if (write_one(c, o, c->op.kind->traits & KIND_CUSTOM, &text) < 0)
        return -1;
    if ((is_first && buf_addc(out, '\n', &e) < 0) ||
        json_parse(buf_span(&text), NULL, &doc, &e) < 0 ||
        kube_yaml_write_item(json_doc_root(doc), out, &e) < 0)
        return fail(c, &e);
    return 0;
}

/* What core kinds are in a list, the list says. */
int render_item(struct call *c, struct object *o, bool is_first, struct buf *out)
{
    struct err e;

    if (c->is_yaml)
        return write_yaml_item(c, o, is_first, out);
    if (!is_first && buf_addc(out, ',', &e) < 0)
        return fail(c, &e);
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

static const char *items_name(const struct call *c)
{
    return c->form == FORM_TABLE ? "rows" : "items";
}

static void list_names(const struct call *c, const char **ret_kind, const char **ret_version)
{
    *ret_kind = c->form == FORM_TABLE     ? "Table"
                : c->form == FORM_PARTIAL ? "PartialObjectMetadataList"
                                          : c->op.kind->list_name;
    *ret_version = c->form == FORM_OBJECT ? api_version(c) : "meta.k8s.io/v1";
}

/* The list without its items, `json`, in two parts: what stands before them goes out, what follows them is kept. */
static int begin_yaml_list(struct call *c, struct span json, struct buf *out)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL, *before = NULL, *after = NULL;
    struct json_node *head = json_edit_object(ed), *tail = json_edit_object(ed);
    const char *items = items_name(c);
    struct err e;

    if (json_parse(json, NULL, &doc, &e) < 0)
        return fail(c, &e);
    JSON_MEMBERS(name, value, json_doc_root(doc))
    {
        int order = strcmp(json_cstr(name), items);

        if (order)
            json_node_set(order < 0 ? head : tail, json_cstr(name), json_edit_view(ed, value));
    }
    if (json_node_freeze(head, &before, &e) < 0 || json_node_freeze(tail, &after, &e) < 0 ||
        kube_yaml_write(json_doc_root(before), out, &e) < 0 ||
        buf_addf(out, &e, "%s:", items) < 0 ||
        (json_node_count(tail) && kube_yaml_write(json_doc_root(after), &c->list_tail, &e) < 0))
        return fail(c, &e);
    return 0;
}

/* The list with no items in it. */
static int write_list_begin(struct call *c, uint64_t version, const char *next, uint64_t remaining,
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
    json_out_key(&o, items_name(c));
    json_out_array_begin(&o), json_out_array_end(&o);
    json_out_object_end(&o);
    return json_out_end(&o, &e) < 0 ? fail(c, &e) : 0;
}

int render_list_begin(struct call *c, uint64_t version, const char *next, uint64_t remaining,
                      struct buf *out)
{
    OWN(buf_done) struct buf json = BUF_INIT(CALL_ANSWER_MAX_BYTES);

    if (c->is_yaml)
        return write_list_begin(c, version, next, remaining, &json) < 0
                   ? -1
                   : begin_yaml_list(c, buf_span(&json), out);
    if (write_list_begin(c, version, next, remaining, out) < 0)
        return -1;
    buf_truncate(out, out->n - 2);
    return 0;
}

int render_list_end(struct call *c, bool is_empty, struct buf *out)
{
    struct err e;

    if (!c->is_yaml)
        return buf_add(out, SPAN("]}\n"), &e) < 0 ? fail(c, &e) : 0;
    if ((is_empty && buf_add(out, SPAN(" []\n"), &e) < 0) ||
        buf_add(out, buf_span(&c->list_tail), &e) < 0)
        return fail(c, &e);
    return 0;
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
