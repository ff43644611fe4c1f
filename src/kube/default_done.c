/* Values that are as default.c would leave them: told by looking, so that their nodes need not be made. Most of what is
 * written was read from here before. */
#include "kube/default_kinds.h"

#include "kube/quantity.h"
#include "kube/time.h"

#include <string.h>

bool default_is_same_view(const struct json_node *a, const struct json_node *b)
{
    return json_node_view(a) && json_node_view(a) == json_node_view(b);
}

bool default_is_empty(const struct schema_field *f, enum json_type type, size_t n, bool is_zero)
{
    switch (type) {
    case JSON_NONE:
    case JSON_NULL:
        return true;
    case JSON_ARRAY:
        return n == 0;
    case JSON_OBJECT:
        return f->shape == SCHEMA_MAP && n == 0;
    case JSON_STRING:
        return !(f->flags & SCHEMA_POINTER) && n == 0;
    case JSON_NUMBER:
        return !(f->flags & SCHEMA_POINTER) && f->value != SCHEMA_INT_OR_STRING && is_zero;
    case JSON_BOOL:
        return !(f->flags & SCHEMA_POINTER) && is_zero;
    }
    return false;
}

static bool is_empty(const struct schema_field *f, const struct json *v)
{
    int64_t n = 1;
    bool b = true;

    (void)json_i64(v, &n);
    (void)json_bool(v, &b);
    return default_is_empty(f, json_type(v), v ? v->n : 0, n == 0 || !b);
}

bool default_is_zero_null(const struct schema_field *f)
{
    return f->shape != SCHEMA_SINGLE || f->flags & SCHEMA_POINTER || f->value == SCHEMA_BYTES ||
           f->value == SCHEMA_TIME || f->value == SCHEMA_MICROTIME || f->value == SCHEMA_RAW ||
           f->value == SCHEMA_STRINGS;
}

/* An empty text is not written by core kinds, so it is no value to put there either. */
const char *default_preset(const struct schema_field *f)
{
    const char *preset = f->preset ? f->preset : f->fill;

    return preset && strcmp(preset, "\"\"") == 0 && !(f->flags & SCHEMA_POINTER) ? NULL : preset;
}

static bool is_canonical_quantity(const struct json *v)
{
    struct quantity q;
    char text[QUANTITY_TEXT_BYTES];

    if (!quantity_parse(json_type(v) == JSON_STRING ? json_str(v) : json_number(v), &q))
        return true;
    return json_type(v) == JSON_STRING && span_is(json_str(v), quantity_text(&q, text));
}

/* "2026-11-16T09:30:00Z", or with six digits of a fraction: the one form of its time. */
static bool is_canonical_time(const struct json *v, bool is_micro)
{
    struct span text = json_str(v);
    struct timespec t;

    return !kube_time_parse(text, &t) || (text.n == (is_micro ? 27u : 20u) && span_ends(text, "Z"));
}

static bool is_done_value(const struct schema_field *f, const struct json *v)
{
    if (json_is_null(v) && f->value != SCHEMA_RAW)
        return false;
    switch (f->value) {
    case SCHEMA_OBJECT:
        return json_type(v) != JSON_OBJECT || default_is_done(f->ref, v);
    case SCHEMA_QUANTITY:
        return is_canonical_quantity(v);
    case SCHEMA_TIME:
    case SCHEMA_MICROTIME:
        return is_canonical_time(v, f->value == SCHEMA_MICROTIME);
    case SCHEMA_BYTES:
        return span_find(json_str(v), '\n') == SIZE_MAX && span_find(json_str(v), '\r') == SIZE_MAX;
    case SCHEMA_STRING:
    case SCHEMA_INT32:
    case SCHEMA_INT64:
    case SCHEMA_BOOL:
    case SCHEMA_DOUBLE:
    case SCHEMA_DURATION:
    case SCHEMA_INT_OR_STRING:
    case SCHEMA_RAW:
    case SCHEMA_STRINGS:
        break;
    }
    return true;
}

bool default_is_done_field(const struct schema_field *f, const struct json *v)
{
    if (f->shape == SCHEMA_SINGLE)
        return is_done_value(f, v);
    if (json_type(v) != (f->shape == SCHEMA_LIST ? JSON_ARRAY : JSON_OBJECT))
        return false;
    JSON_EACH(item, v)
    {
        if (!is_done_value(f, item))
            return false;
    }
    JSON_MEMBERS(name, value, v)
    {
        if (name && !is_done_value(f, value))
            return false;
    }
    return true;
}

/* apiVersion and kind, which are no fields. */
static bool is_type_meta(const struct schema_type *t, struct span name)
{
    return t->has_type_meta && (span_is(name, "apiVersion") || span_is(name, "kind"));
}

bool default_is_dropped(const struct schema_type *t, const struct schema_field *f, struct span name,
                        bool is_null, bool is_without)
{
    if (!f)
        return !is_type_meta(t, name);
    if (!(f->flags & SCHEMA_ALWAYS))
        return is_without;
    /* A null that would be put back stays where it is: what is stored must not change its order. */
    return is_null && !default_is_zero_null(f);
}

bool default_is_done(const struct schema_type *t, const struct json *v)
{
    JSON_MEMBERS(name, value, v)
    {
        const struct schema_field *f = schema_field(t, json_str(name));

        if (default_is_dropped(t, f, json_str(name), json_is_null(value), f && is_empty(f, value)))
            return false;
        if (f && !json_is_null(value) && !default_is_done_field(f, value))
            return false;
    }
    for (size_t i = 0; i < t->field_count; i++) {
        const struct schema_field *f = &t->fields[i];
        bool has_preset = default_preset(f);
        const struct json *value;

        if (!has_preset && !(f->flags & SCHEMA_ALWAYS))
            continue;
        value = json_get_span(v, span_of(f->name, f->name_n));
        if (!value || (has_preset && is_empty(f, value)))
            return false;
    }
    return true;
}

bool default_is_custom_done_field(const struct schema_field *f, const struct json *v)
{
    if (f->value != SCHEMA_OBJECT)
        return true;
    if (f->shape == SCHEMA_SINGLE)
        return json_type(v) != JSON_OBJECT || default_is_custom_done(f->ref, v);
    if (json_type(v) != (f->shape == SCHEMA_LIST ? JSON_ARRAY : JSON_OBJECT))
        return true;
    JSON_EACH(item, v)
    {
        if (json_type(item) == JSON_OBJECT && !default_is_custom_done(f->ref, item))
            return false;
    }
    JSON_MEMBERS(name, value, v)
    {
        if (name && json_type(value) == JSON_OBJECT && !default_is_custom_done(f->ref, value))
            return false;
    }
    return true;
}

bool default_is_custom_done(const struct schema_type *t, const struct json *v)
{
    JSON_MEMBERS(name, value, v)
    {
        const struct schema_field *f = schema_field(t, json_str(name));

        if (!f || json_is_null(value) || !default_is_custom_done_field(f, value))
            return false;
    }
    for (size_t i = 0; i < t->field_count; i++)
        if (t->fields[i].preset &&
            !json_get_span(v, span_of(t->fields[i].name, t->fields[i].name_n)))
            return false;
    return true;
}
