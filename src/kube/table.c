#include "kube/table.h"

#include "base/str.h"
#include "kube/table_cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool table_include_parse(struct span text, enum table_include *ret)
{
    if (text.n == 0 || span_is(text, "Metadata"))
        *ret = TABLE_INCLUDE_METADATA;
    else if (span_is(text, "None"))
        *ret = TABLE_INCLUDE_NONE;
    else if (span_is(text, "Object"))
        *ret = TABLE_INCLUDE_OBJECT;
    else
        return false;
    return true;
}

static void write_column(struct json_out *o, const struct table_column *c, const char *description)
{
    json_out_object_begin(o);
    json_out_key(o, "name"), json_out_cstr(o, c->name);
    json_out_key(o, "type"), json_out_cstr(o, c->type);
    json_out_key(o, "format"), json_out_cstr(o, c->format);
    json_out_key(o, "description"), json_out_cstr(o, description);
    json_out_key(o, "priority"), json_out_i64(o, c->priority);
    json_out_object_end(o);
}

static const struct table_column name_column = { "Name", "string", "name", 0 };
static const struct kind_column age_column = { "Age", "date", ".metadata.creationTimestamp" };

/* A custom kind without columns of its own shows its age. */
static const struct kind_column *custom_columns(const struct kind_version *v, size_t *ret_n)
{
    *ret_n = v->column_count ? v->column_count : 1;
    return v->column_count ? v->columns : &age_column;
}

void table_columns(const struct kind *k, const struct kind_version *v, struct json_out *o)
{
    const struct table_maker *m = table_maker(k->group, k->plural);

    json_out_array_begin(o);
    if (k->traits & KIND_CUSTOM) {
        size_t n;
        const struct kind_column *columns = custom_columns(v, &n);

        write_column(o, &name_column, "");
        for (size_t i = 0; i < n; i++) {
            char text[200];

            snprintf(text, sizeof text,
                     "Custom resource definition column (in JSONPath format): %s", columns[i].path);
            write_column(o, &(struct table_column){ columns[i].name, columns[i].type, "", 0 },
                         text);
        }
    } else if (m) {
        for (size_t i = 0; i < m->column_count; i++)
            write_column(o, &m->columns[i], "");
    } else {
        write_column(o, &name_column, "");
        write_column(o, &(struct table_column){ "Created At", "date", "", 0 }, "");
    }
    json_out_array_end(o);
}

/* One bracket of a path, from behind "[" to before "]". */
static const struct json *pick(const struct json *v, struct span what)
{
    uint64_t index;

    if (span_is(what, "*"))
        return json_at(v, 0);
    if (str_u64(what, 1 << 20, &index))
        return json_at(v, index);
    /* ?(@.key=='value'), with either kind of quote. */
    if (!span_starts(what, "?(@.") || !span_ends(what, ")"))
        return NULL;
    what = span_slice(what, 4, what.n - 1);
    size_t eq = span_find_str(what, SPAN("=="));
    if (eq == SIZE_MAX || what.n < eq + 4)
        return NULL;
    JSON_EACH(item, v)
    {
        if (span_eq(json_str(json_get_span(item, span_slice(what, 0, eq))),
                    span_slice(what, eq + 3, what.n - 1)))
            return item;
    }
    return NULL;
}

const struct json *table_path(const struct object *obj, const char *path)
{
    const struct json *v = NULL;
    struct span rest = span_cstr(path);
    bool is_first = true;

    while (rest.n) {
        if (rest.p[0] == '[') {
            size_t end = span_find(rest, ']');

            if (is_first || end == SIZE_MAX)
                return NULL;
            v = pick(v, span_slice(rest, 1, end));
            rest = span_skip(rest, end + 1);
        } else if (rest.p[0] == '.') {
            size_t n = 1;
            char name[64];

            while (n < rest.n && rest.p[n] != '.' && rest.p[n] != '[')
                n++;
            if (n - 1 >= sizeof name)
                return NULL;
            memcpy(name, rest.p + 1, n - 1);
            name[n - 1] = '\0';
            v = is_first ? object_member(obj, name) : json_get(v, name);
            is_first = false;
            rest = span_skip(rest, n);
        } else {
            return NULL;
        }
    }
    return v;
}

/* A cell of a custom kind: what is not there or is of another type is null. */
static void custom_cell(const struct cells *c, const struct kind_column *column)
{
    const struct json *v = table_path(c->obj, column->path);

    if (!v || json_is_null(v)) {
        json_out_null(c->o);
    } else if (strcmp(column->type, "date") == 0) {
        cell_age(c, v);
    } else if (strcmp(column->type, "integer") == 0) {
        int64_t n;

        json_i64(v, &n) ? json_out_i64(c->o, n) : json_out_null(c->o);
    } else if (json_type(v) == JSON_STRING) {
        json_out_value(c->o, v);
    } else {
        OWN(buf_done) struct buf text = BUF_INIT(4096);
        struct err e;

        (void)json_write(v, &text, &e);
        json_out_str(c->o, buf_span(&text));
    }
}

static void write_cells(const struct table_view *view, const struct object *obj, struct json_out *o)
{
    struct cells c = { o, obj, view->now };
    const struct table_maker *m = table_maker(view->kind->group, view->kind->plural);

    json_out_array_begin(o);
    if (view->kind->traits & KIND_CUSTOM) {
        size_t n;
        const struct kind_column *columns = custom_columns(view->version, &n);

        cell_text(&c, object_name(obj));
        for (size_t i = 0; i < n; i++)
            custom_cell(&c, &columns[i]);
    } else if (m) {
        m->write(&c);
    } else {
        cell_text(&c, object_name(obj));
        cell_text(&c, object_text(obj, "metadata.creationTimestamp"));
    }
    json_out_array_end(o);
}

/* The object as bytes it has already, without a second serialisation. */
static void write_raw(const struct object *obj, const char *api_version, struct json_out *o)
{
    OWN(buf_done) struct buf text = BUF_INIT(JSON_TEXT_MAX_BYTES);
    struct err e;

    if (object_write(obj, api_version, &text, &e) < 0)
        json_out_null(o);
    else
        json_out_raw(o, buf_span(&text));
}

void table_partial(const struct object *obj, struct json_out *o)
{
    OWN(object_done) struct object *bare = NULL;
    struct object_member meta = { "metadata", object_member_doc(obj, "metadata") };
    static const struct kind partial = { .group = "meta.k8s.io", .name = "PartialObjectMetadata" };
    OWN(object_done) struct object *stamped = NULL;
    struct err e;

    if (object_new(&partial, &meta, 1, &bare, &e) < 0) {
        json_out_null(o);
        return;
    }
    stamped = object_with_version(bare, object_version(obj));
    write_raw(stamped, "meta.k8s.io/v1", o);
}

void table_row(const struct table_view *view, const struct object *obj, struct json_out *o)
{
    json_out_object_begin(o);
    json_out_key(o, "cells");
    write_cells(view, obj, o);
    if (strcmp(view->kind->plural, "pods") == 0)
        table_pod_conditions(obj, o);
    json_out_key(o, "object");
    switch (view->include) {
    case TABLE_INCLUDE_NONE:
        json_out_null(o);
        break;
    case TABLE_INCLUDE_METADATA:
        table_partial(obj, o);
        break;
    case TABLE_INCLUDE_OBJECT:
        write_raw(obj, kind_api_version(view->kind, view->version), o);
        break;
    }
    json_out_object_end(o);
}

int table_write_one(const struct table_view *view, const struct object *obj, struct buf *out,
                    struct err *e)
{
    struct json_out o;
    char version[24];

    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "kind"), json_out_cstr(&o, "Table");
    json_out_key(&o, "apiVersion"), json_out_cstr(&o, "meta.k8s.io/v1");
    json_out_key(&o, "metadata"), json_out_object_begin(&o);
    snprintf(version, sizeof version, "%" PRIu64, object_version(obj));
    json_out_key(&o, "resourceVersion"), json_out_cstr(&o, version);
    json_out_object_end(&o);
    json_out_key(&o, "columnDefinitions"), table_columns(view->kind, view->version, &o);
    json_out_key(&o, "rows"), json_out_array_begin(&o);
    table_row(view, obj, &o);
    json_out_array_end(&o);
    json_out_object_end(&o);
    return json_out_end(&o, e);
}
