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
    if (doc->bytes)
        buf_done(doc->bytes);
    free(doc->bytes);
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
    return doc ? doc->nodes : NULL;
}

struct span json_doc_bytes(struct json_doc *doc)
{
    struct buf *made, *there = __atomic_load_n(&doc->bytes, __ATOMIC_ACQUIRE);
    struct err e;

    if (there)
        return buf_span(there);
    made = NEW(struct buf);
    /* The compact form is never longer: no escape is written longer than it was read. What is lean was parsed once. */
    made->max = doc->is_lean ? JSON_COMPACT_MAX_BYTES : doc->text_n;
    if (buf_reserve(made, doc->text_n, &e) < 0 || json_write(doc->nodes, made, &e) < 0)
        abort();
    made->p = own_resize(made->p, made->n + 1, 1);
    made->cap = made->n + 1;
    if (__atomic_compare_exchange_n(&doc->bytes, &there, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return buf_span(made);
    buf_done(made); /* another thread was first */
    free(made);
    return buf_span(there);
}

size_t json_doc_memory(const struct json_doc *doc)
{
    const struct buf *bytes = __atomic_load_n(&doc->bytes, __ATOMIC_ACQUIRE);

    return sizeof *doc + doc->text_n + (doc->is_lean ? 0 : JSON_PAD_BYTES) +
           doc->node_count * sizeof *doc->nodes + (bytes ? sizeof *bytes + bytes->cap : 0);
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
