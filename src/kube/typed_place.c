#include "kube/typed_place.h"

#define IDENTITY_MAX_BYTES (1024 * 1024)
#define KEYS_MAX           8 /* of one list; the schema has at most three */

struct place place_of_type(const struct schema_type *type)
{
    struct place p = { .shape = PLACE_STRUCT, .type = type };

    if (!type || type->is_atomic)
        p.shape = PLACE_LEAF;
    return p;
}

/* What one value is, whatever shape holds it. */
static struct place place_of_value(const struct schema_field *field)
{
    struct place leaf = { .shape = PLACE_LEAF };

    return field->value == SCHEMA_OBJECT ? place_of_type(field->ref) : leaf;
}

static struct place place_of_field(const struct schema_field *field)
{
    struct place leaf = { .shape = PLACE_LEAF }, p = { .type = field->ref, .field = field };

    if (field->flags & SCHEMA_ATOMIC)
        return leaf;
    switch (field->shape) {
    case SCHEMA_SINGLE:
        return place_of_value(field);
    case SCHEMA_MAP:
        p.shape = PLACE_MAP;
        return p;
    case SCHEMA_LIST:
        p.shape = PLACE_LIST;
        return field->list == SCHEMA_LIST_SET || field->list == SCHEMA_LIST_MAP ? p : leaf;
    }
    return leaf;
}

struct place place_of_member(const struct place *p, struct span name)
{
    const struct schema_field *field;

    if (p->shape == PLACE_MAP)
        return place_of_value(p->field);
    field = schema_field(p->type, name);
    return field ? place_of_field(field) : (struct place){ .shape = PLACE_LEAF };
}

struct place place_of_element(const struct place *p)
{
    return place_of_value(p->field);
}

/* Of anything but a scalar: null. */
static void put_scalar(struct json_out *o, const struct json *v)
{
    bool b;

    if (json_type(v) == JSON_STRING)
        json_out_str(o, json_str(v));
    else if (json_type(v) == JSON_NUMBER)
        json_out_raw(o, json_number(v));
    else if (json_bool(v, &b))
        json_out_bool(o, b);
    else
        json_out_null(o);
}

/* An element of a list: a value, or a node that was opened. */
struct element {
    const struct json *value;
    struct json_node *node;
};

static const struct json *key_of(const struct element *of, const char *key, bool *ret_is_there)
{
    const struct json *v = of->value ? json_get(of->value, key) : NULL;
    struct json_node *node = of->value ? NULL : json_node_get(of->node, key);

    *ret_is_there = v || node;
    return of->value ? v : json_node_plain(node);
}

static int compare_texts(const void *pa, const void *pb)
{
    return strcmp(*(const char *const *)pa, *(const char *const *)pb);
}

/* {"containerPort":80,"protocol":"TCP"}: names sorted, defaults filled in. False: no key is there. */
static bool put_keys(struct json_out *o, const struct place *p, const struct element *of)
{
    const char *keys[KEYS_MAX];
    size_t n = 0;
    bool has_any = false;

    while (n < LEN(keys) && p->field->keys[n])
        keys[n] = p->field->keys[n], n++;
    if (n > 1)
        qsort(keys, n, sizeof *keys, compare_texts);
    json_out_object_begin(o);
    for (size_t i = 0; i < n; i++) {
        const struct schema_field *f = p->type ? schema_field(p->type, span_cstr(keys[i])) : NULL;
        bool is_there;
        const struct json *v = key_of(of, keys[i], &is_there);

        if (!is_there && (!f || !f->preset))
            continue;
        json_out_key(o, keys[i]);
        if (is_there)
            put_scalar(o, v);
        else
            json_out_raw(o, span_cstr(f->preset));
        has_any = true;
    }
    json_out_object_end(o);
    return has_any;
}

static struct span identity(const struct place *p, const struct element *of, enum json_type type,
                            struct json_edit *ed)
{
    OWN(buf_done) struct buf text = BUF_INIT(IDENTITY_MAX_BYTES);
    bool is_map = p->field->list == SCHEMA_LIST_MAP, has_any = true;
    struct json_out o;
    struct err e;

    if (is_map ? type != JSON_OBJECT : type >= JSON_ARRAY || type <= JSON_NULL)
        return SPAN_NONE;
    if (buf_add(&text, is_map ? SPAN("k:") : SPAN("v:"), &e) < 0)
        return SPAN_NONE;
    json_out_init(&o, &text, JSON_HTML_SAFE);
    if (is_map)
        has_any = put_keys(&o, p, of);
    else
        put_scalar(&o, of->value);
    if (json_out_end(&o, &e) < 0 || !has_any)
        return SPAN_NONE;
    return json_edit_text(ed, buf_span(&text));
}

struct span place_identity(const struct place *p, struct json_node *element)
{
    return identity(p, &(struct element){ json_node_plain(element), element },
                    json_node_type(element), json_node_edit(element));
}

struct span place_identity_of(const struct place *p, const struct json *element,
                              struct json_edit *ed)
{
    return identity(p, &(struct element){ element, NULL }, json_type(element), ed);
}
