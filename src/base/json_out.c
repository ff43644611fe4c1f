#include "base/json_doc.h"
#include "base/json_num.h"

#include <math.h>

void json_out_init(struct json_out *o, struct buf *out, unsigned flags)
{
    *o = (struct json_out){
        .out = out, .start = out->n, .flags = flags & ~(unsigned)JSON_PRETTY, .is_first = true
    };
}

int json_out_end(struct json_out *o, struct err *e)
{
    if (!o->failed) {
        assert(o->depth == 0 && !o->is_first);
        return 0;
    }
    buf_truncate(o->out, o->start);
    if (o->failed == ERR_LIMIT)
        return err_set(e, ERR_LIMIT, "JSON text of more than %zu bytes", o->out->max - o->start);
    return err_set(e, o->failed, "JSON has no form for a number that is not finite");
}

static bool is_in_object(const struct json_out *o)
{
    uint32_t top = o->depth - 1;

    return o->depth && o->is_object[top / 64] >> (top % 64) & 1;
}

/* n bytes at the end of the buf, where there is room for them already; else NULL. */
static inline uint8_t *here(struct json_out *o, size_t n)
{
    struct buf *b = o->out;

    return !o->failed && b->cap > b->n && b->cap - b->n > n ? b->p + b->n : NULL;
}

static inline void add(struct json_out *o, struct span s)
{
    uint8_t *p = here(o, s.n);
    struct err e;

    if (p) {
        if (s.n)
            memcpy(p, s.p, s.n);
        buf_grown(o->out, s.n);
    } else if (!o->failed && buf_add(o->out, s, &e) < 0) {
        o->failed = e.code;
    }
}

/* A text that needs no escape: most names. */
static inline bool add_plain(struct json_out *o, struct span s, const char *after)
{
    size_t more = strlen(after);
    uint8_t *p = here(o, s.n + 2 + more);

    if (!p || o->flags & JSON_HTML_SAFE || json_scan_span(s) < s.n)
        return false;
    *p++ = '"';
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '"';
    memcpy(p + s.n + 1, after, more);
    buf_grown(o->out, s.n + 2 + more);
    return true;
}

static void add_str(struct json_out *o, struct span s)
{
    struct err e;

    if (!o->failed && !add_plain(o, s, "") && json_write_str(s, o->flags, o->out, &e) < 0)
        o->failed = e.code;
}

/* Before every value: the comma, and whether a value may stand here. */
static void begin_value(struct json_out *o)
{
    assert(o->depth > 0 || o->is_first); /* one value at the top */
    assert(!is_in_object(o) || o->has_name);
    if (!o->is_first)
        add(o, SPAN(","));
    o->is_first = o->has_name = false;
}

static void open_container(struct json_out *o, bool is_object)
{
    uint64_t bit = 1ull << (o->depth % 64);

    assert(o->depth < JSON_DEPTH_MAX);
    begin_value(o);
    add(o, is_object ? SPAN("{") : SPAN("["));
    o->is_object[o->depth / 64] =
        is_object ? o->is_object[o->depth / 64] | bit : o->is_object[o->depth / 64] & ~bit;
    o->depth++;
    o->is_first = true;
}

static void close_container(struct json_out *o, bool is_object)
{
    assert(o->depth > 0 && is_in_object(o) == is_object && !o->has_name);
    add(o, is_object ? SPAN("}") : SPAN("]"));
    o->depth--;
    o->is_first = false;
}

void json_out_object_begin(struct json_out *o)
{
    open_container(o, true);
}

void json_out_object_end(struct json_out *o)
{
    close_container(o, true);
}

void json_out_array_begin(struct json_out *o)
{
    open_container(o, false);
}

void json_out_array_end(struct json_out *o)
{
    close_container(o, false);
}

void json_out_key_span(struct json_out *o, struct span name)
{
    assert(is_in_object(o) && !o->has_name);
    if (!o->is_first)
        add(o, SPAN(","));
    if (!add_plain(o, name, ":")) {
        add_str(o, name);
        add(o, SPAN(":"));
    }
    o->is_first = o->has_name = true;
}

void json_out_key(struct json_out *o, const char *name)
{
    json_out_key_span(o, span_cstr(name));
}

void json_out_str(struct json_out *o, struct span s)
{
    begin_value(o);
    add_str(o, s);
}

void json_out_cstr(struct json_out *o, const char *s)
{
    if (s)
        json_out_str(o, span_cstr(s));
    else
        json_out_null(o);
}

void json_out_raw(struct json_out *o, struct span json)
{
    begin_value(o);
    add(o, json);
}

void json_out_i64(struct json_out *o, int64_t v)
{
    char text[JSON_NUM_TEXT_BYTES];

    json_out_raw(o, span_of(text, json_num_write_i64(v, text)));
}

void json_out_u64(struct json_out *o, uint64_t v)
{
    char text[JSON_NUM_TEXT_BYTES];

    json_out_raw(o, span_of(text, json_num_write_u64(v, text)));
}

void json_out_double(struct json_out *o, double v)
{
    char text[JSON_NUM_TEXT_BYTES];

    if (isfinite(v)) {
        json_out_raw(o, span_of(text, json_num_write(v, text)));
        return;
    }
    begin_value(o);
    if (!o->failed)
        o->failed = ERR_INVALID;
}

void json_out_bool(struct json_out *o, bool v)
{
    json_out_raw(o, v ? SPAN("true") : SPAN("false"));
}

void json_out_null(struct json_out *o)
{
    json_out_raw(o, SPAN("null"));
}

void json_out_value(struct json_out *o, const struct json *v)
{
    struct err e;

    if (!v) {
        json_out_null(o);
        return;
    }
    begin_value(o);
    if (!o->failed && json_write_as(v, o->flags, o->out, &e) < 0)
        o->failed = e.code;
}
