/* Any bytes are parsed or refused with a place inside them. What was parsed and written is a fixed point of
 * parse and write, in every form; and any bytes make a string that reads back as their lossy UTF-8 form. */
#include "base/json.h"
#include "base/json_num.h"
#include "base/str.h"

#define OUT_MAX_BYTES (64 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The nodes of a container add up to its skip, and its children to its count. */
static void check_shape(const struct json *v)
{
    const struct json *end = v + json_skip(v), *at = v + 1;
    size_t count = 0;
    double d;

    if (json_type(v) == JSON_NUMBER && json_double(v, &d)) {
        char text[JSON_NUM_TEXT_BYTES];
        double back = 0;

        assert(json_num_read(span_of(text, json_num_write(d, text)), &back) && back == d);
    }
    if (json_type(v) == JSON_STRING)
        assert(str_utf8_valid(json_str(v)) && json_str(v).p[json_str(v).n] == '\0');
    if (json_type(v) != JSON_ARRAY && json_type(v) != JSON_OBJECT)
        return;
    for (; at < end; count++) {
        if (json_type(v) == JSON_OBJECT) {
            assert(json_type(at) == JSON_STRING);
            check_shape(at++);
        }
        check_shape(at);
        at += json_skip(at);
    }
    assert(at == end && count == json_count(v));
}

static void check_fault(struct span text, const struct json_error *where, const struct err *e)
{
    assert(e->code == ERR_INVALID || e->code == ERR_LIMIT);
    if (e->code == ERR_LIMIT)
        return;
    assert(where->what && where->byte_at <= text.n && where->char_at <= where->byte_at);
    assert(where->is_encoding == !str_utf8_valid(text));
    assert(where->line >= 1 && where->column >= 1 && where->column <= where->char_at + 1);
}

/* Whatever form it is written in, it says the same. */
static void check_form(const struct json *root, unsigned flags, struct span compact)
{
    OWN(buf_done) struct buf out = BUF_INIT(OUT_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *again = NULL;
    struct err e;

    assert(json_write_as(root, flags, &out, &e) == 0);
    assert(json_parse(buf_span(&out), &(struct json_limits){ .max_bytes = OUT_MAX_BYTES }, &again,
                      &e) == 0);
    assert(span_eq(json_doc_bytes(again), compact));
}

static void check_lean(struct json_doc *doc, struct span compact)
{
    OWN(json_doc_done) struct json_doc *lean = json_doc_lean(doc);

    check_shape(json_doc_root(lean));
    assert(span_eq(json_doc_bytes(lean), compact));
}

static void check_packed(struct json_doc *doc, struct span compact)
{
    OWN(json_doc_done) struct json_doc *packed = json_doc_packed(doc), *again = NULL;

    check_shape(json_doc_root(packed));
    assert(span_eq(json_doc_bytes(packed), compact));
    again = json_doc_packed(packed);
    assert(json_doc_is_packed(again) && span_eq(json_doc_bytes(again), compact));
}

static void check_accepted(struct span text, struct json_doc *doc)
{
    const struct json *root = json_doc_root(doc);
    struct span compact = json_doc_bytes(doc);
    struct json_doc *cut = NULL;
    struct json_error where = { 0 };
    struct err e;

    check_shape(root);
    assert(compact.n <= text.n);
    check_lean(doc, compact);
    check_packed(doc, compact);
    check_form(root, 0, compact);
    check_form(root, JSON_PRETTY, compact);
    check_form(root, JSON_HTML_SAFE, compact);
    /* A text that ends in a bracket or quote has no proper prefix that is a text. */
    if (json_type(root) >= JSON_STRING)
        for (size_t n = compact.n > 64 ? compact.n - 64 : 0; n < compact.n; n++) {
            assert(json_parse_at(span_slice(compact, 0, n), NULL, &where, &cut, &e) < 0);
            check_fault(span_slice(compact, 0, n), &where, &e);
        }
}

static void check_string(struct span bytes)
{
    OWN(buf_done) struct buf lossy = BUF_INIT(OUT_MAX_BYTES), out = BUF_INIT(OUT_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_out o;
    struct err e;

    assert(str_utf8_lossy(bytes, &lossy, &e) == 0);
    json_out_init(&o, &out, 0);
    json_out_str(&o, bytes);
    assert(json_out_end(&o, &e) == 0);
    assert(json_parse(buf_span(&out), &(struct json_limits){ .max_bytes = OUT_MAX_BYTES }, &doc,
                      &e) == 0);
    assert(span_eq(json_str(json_doc_root(doc)), buf_span(&lossy)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(json_doc_done) struct json_doc *doc = NULL, *unique = NULL;
    const struct json_limits refuse = { .flags = JSON_REFUSE_DUPLICATES };
    struct span text = span_of(data, size);
    struct json_error where = { 0 };
    struct err e = { 0 };

    if (json_parse_at(text, NULL, &where, &doc, &e) == 0)
        check_accepted(text, doc);
    else
        check_fault(text, &where, &e);
    if (json_parse_at(text, &refuse, &where, &unique, &e) == 0)
        assert(span_eq(json_doc_bytes(unique), json_doc_bytes(doc)));
    check_string(text);
    return 0;
}
