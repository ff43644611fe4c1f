#include "base/json.h"

#include "base/json_doc.h"
#include "base/json_num.h"
#include "base/str.h"

struct json_doc *json_doc_ref(struct json_doc *doc)
{
    if (doc)
        (void)__atomic_fetch_add(&doc->refs, 1, __ATOMIC_RELAXED);
    return doc;
}

void json_doc_unref(struct json_doc *doc)
{
    if (!doc || __atomic_fetch_sub(&doc->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    json_doc_unref(doc->other);
    if (!doc->is_lean) /* there they are in the same block */
        free(doc->nodes);
    free(doc);
}

void json_doc_done(struct json_doc **doc)
{
    json_doc_unref(*doc);
    *doc = NULL;
}

const struct json *json_doc_root(const struct json_doc *doc)
{
    if (!doc)
        return NULL;
    return doc->is_packed ? json_unpack(doc)->nodes : doc->nodes;
}

const char *json_type_name(const struct json *v)
{
    static const char *const names[] = { "nothing", "null",  "boolean", "number",
                                         "string",  "array", "object" };

    return names[json_type(v)];
}

bool json_bool(const struct json *v, bool *ret)
{
    if (json_type(v) != JSON_BOOL)
        return false;
    *ret = v->n != 0;
    return true;
}

struct span json_str(const struct json *v)
{
    return json_type(v) == JSON_STRING ? span_of(v->u.text, v->n) : SPAN_NONE;
}

const char *json_cstr(const struct json *v)
{
    struct span s = json_str(v);

    return s.p && !memchr(s.p, '\0', s.n) ? (const char *)s.p : NULL;
}

struct span json_number(const struct json *v)
{
    return json_type(v) == JSON_NUMBER ? span_of(v->u.text, v->n) : SPAN_NONE;
}

bool json_i64(const struct json *v, int64_t *ret)
{
    return json_type(v) == JSON_NUMBER && v->flags & JSON_FLAG_INT &&
           str_i64(span_of(v->u.text, v->n), INT64_MIN, INT64_MAX, ret);
}

bool json_u64(const struct json *v, uint64_t *ret)
{
    return json_type(v) == JSON_NUMBER && v->flags & JSON_FLAG_INT &&
           str_u64(span_of(v->u.text, v->n), UINT64_MAX, ret);
}

bool json_double(const struct json *v, double *ret)
{
    return json_type(v) == JSON_NUMBER && json_num_read(span_of(v->u.text, v->n), ret);
}

const struct json *json_get_span(const struct json *object, struct span name)
{
    const struct json *hit = NULL;

    JSON_MEMBERS(key, value, object)
    {
        if (key->n != name.n || memcmp(key->u.text, name.p, name.n) != 0)
            continue;
        hit = value;
        if (object->flags & JSON_FLAG_UNIQUE)
            break;
    }
    return hit;
}

const struct json *json_at(const struct json *array, size_t i)
{
    JSON_EACH(v, array)
    {
        if (i-- == 0)
            return v;
    }
    return NULL;
}
