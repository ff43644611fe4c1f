/* json: the one JSON of the project: strict RFC 8259, UTF-8 validated, fast.
 *
 *     OWN(json_doc_done) struct json_doc *doc = NULL;
 *     if (json_parse(body, NULL, &doc, e) < 0)
 *         return -1;
 *     name = json_str(json_get(json_get(json_doc_root(doc), "metadata"), "name"));
 *
 * Owns:     a document is one reference-counted arena: a copy of the text, and 16-byte nodes in
 *           pre-order. A value's descendants follow it directly and `skip` counts them, so any subtree
 *           is one run of nodes. Values and spans borrow from the document.
 * Changes:  nothing in a document after the parse, only its cached bytes come to it. An edit makes a
 *           new document.
 * Threads:  reference count and cached bytes are atomic (one locked add each, cheap unless contended),
 *           so a document may be read and released on any thread. A json_out belongs to one.
 * Names:    duplicates are kept in order and written back; json_get answers the last, as Go and Python
 *           do. JSON_REFUSE_DUPLICATES makes them an error.
 * Numbers:  are kept and written back as they were spelled; the accessors convert.
 * Refused:  byte order marks, NaN, Infinity, comments, trailing commas, raw control characters in
 *           strings, ill-formed UTF-8, and escapes of lone surrogates, which UTF-8 has no form for.
 */
#ifndef SILICA_BASE_JSON_H
#define SILICA_BASE_JSON_H

#include "base/buf.h"

/* Open containers; deeper is ERR_LIMIT. Kubernetes objects need about 20. */
#define JSON_DEPTH_MAX 256
/* Unless the caller's limits say otherwise. A hostile text has one 16-byte node per two bytes. */
#define JSON_TEXT_MAX_BYTES (16 * 1024 * 1024)
#define JSON_NODES_MAX      (2 * 1024 * 1024)

enum json_type {
    JSON_NONE, /* of a NULL value: an absent member */
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

/* A value. Read it through the verbs below; the layout is here so that they can be inlined. */
struct json {
    uint8_t type;
    uint8_t flags;
    uint16_t spare;
    uint32_t n; /* string, number: bytes; array: elements; object: members; bool: its value */
    union {
        const uint8_t *text; /* string (unescaped, a NUL follows) or number (as spelled) */
        uint64_t skip;       /* array, object: nodes of the whole subtree, itself included */
    } u;
};

struct json_doc;

enum json_parse_flags {
    JSON_REFUSE_DUPLICATES = 1, /* a second member of one name is ERR_INVALID */
};

/* What the caller allows. A zero takes the default above; max_depth can only lower it. */
struct json_limits {
    size_t max_bytes; /* at most INT32_MAX */
    uint32_t max_nodes;
    uint32_t max_depth;
    unsigned flags;
};

/* Where and why a text is not JSON, in the terms of Python's decoder, which some contracts quote.
 * */
struct json_error {
    const char *what; /* "Expecting value", ...: static */
    size_t char_at;   /* code points before the place */
    size_t byte_at;   /* bytes before it */
    size_t line;      /* from 1 */
    size_t column;    /* from 1, in code points */
    bool is_encoding; /* the text is not UTF-8; found before any other fault, wherever that is */
};

/* Parses a whole text. ERR_INVALID: not JSON, the message says where. ERR_LIMIT: too long, too
 * deep, too many values. *ret is the caller's to unref; the text is copied and may go. */
int json_parse(struct span text, const struct json_limits *limits, struct json_doc **ret,
               struct err *e);
/* The same; on ERR_INVALID *where (or NULL) is filled. */
int json_parse_at(struct span text, const struct json_limits *limits, struct json_error *where,
                  struct json_doc **ret, struct err *e);

struct json_doc *json_doc_ref(struct json_doc *doc);
void json_doc_unref(struct json_doc *doc);
/* For OWN(): unrefs *doc. */
void json_doc_done(struct json_doc **doc);
const struct json *json_doc_root(const struct json_doc *doc);
/* The compact form; made at the first call and kept as long as the document. */
struct span json_doc_bytes(struct json_doc *doc);
/* A document of its own that says the same in about half the memory: for those who keep many and write few. Texts that are
 * alike are kept once, those that many lean documents hold once for all of them (a bounded number, for good), documents
 * that hold nothing else are often one, and the compact form is made when it is asked for. */
struct json_doc *json_doc_lean(const struct json_doc *doc);
/* A reference to a document that says the same and is the compact form alone, in one block: for those who keep many and write
 * them. The tree is made when somebody asks for the root, and kept as long as the document. One that was given before is given
 * again, unless it has a tree by now. */
struct json_doc *json_doc_packed(struct json_doc *doc);
/* It is such a one, and has no tree. */
bool json_doc_is_packed(const struct json_doc *doc);
/* How often a packed document got a tree, in this process. */
uint64_t json_unpack_count(void);
/* Heap bytes the document holds, cached form included. */
size_t json_doc_memory(const struct json_doc *doc);

/* Every accessor takes NULL (an absent value) and values of another type: it then answers that
 * there is nothing. */
static inline enum json_type json_type(const struct json *v)
{
    return v ? (enum json_type)v->type : JSON_NONE;
}
static inline bool json_is_null(const struct json *v)
{
    return json_type(v) == JSON_NULL;
}
/* "null", "string", ... for messages; "nothing" for NULL. */
const char *json_type_name(const struct json *v);
/* True when v is a boolean. */
bool json_bool(const struct json *v, bool *ret);
/* The unescaped text with a NUL behind it; SPAN_NONE when v is no string. It may hold NULs. */
struct span json_str(const struct json *v);
/* The text, or NULL when v is no string or holds a NUL, which a C string would silently cut at. */
const char *json_cstr(const struct json *v);
/* The number as it was spelled, or SPAN_NONE. */
struct span json_number(const struct json *v);
/* True when v is a number without fraction or exponent that fits. */
bool json_i64(const struct json *v, int64_t *ret);
bool json_u64(const struct json *v, uint64_t *ret);
/* True when v is a number whose nearest double is finite. */
bool json_double(const struct json *v, double *ret);

/* Elements or members. */
static inline size_t json_count(const struct json *v)
{
    return v && v->type >= JSON_ARRAY ? v->n : 0;
}
/* The member of that name (the last of several), or NULL. */
const struct json *json_get_span(const struct json *object, struct span name);
static inline const struct json *json_get(const struct json *object, const char *name)
{
    return json_get_span(object, span_of(name, strlen(name)));
}
/* Element i, or NULL. Walks: use JSON_EACH for all of them. */
const struct json *json_at(const struct json *array, size_t i);

/* Nodes of v's subtree, itself included. */
static inline size_t json_skip(const struct json *v)
{
    return v->type >= JSON_ARRAY ? v->u.skip : 1;
}
/* The first element (array) or the first name (object; its value is the node after it), or NULL. */
static inline const struct json *json_first(const struct json *v)
{
    return json_count(v) ? v + 1 : NULL;
}
/* What follows the child `at` in `v`, or NULL at the end. */
static inline const struct json *json_next(const struct json *v, const struct json *at)
{
    const struct json *next = at + json_skip(at);

    return next < v + v->u.skip ? next : NULL;
}
/* JSON_EACH(item, array) { ... } */
#define JSON_EACH(item, array)                                                                     \
    for (const struct json *item = json_first(json_type(array) == JSON_ARRAY ? (array) : NULL);    \
         item; item = json_next((array), item))
/* JSON_MEMBERS(name, value, object) { use(json_str(name), value); } */
#define JSON_MEMBERS(name, value, object)                                                          \
    for (const struct json *name = json_first(json_type(object) == JSON_OBJECT ? (object) : NULL), \
                           *value = name ? name + 1 : NULL;                                        \
         name; name = json_next((object), value), value = name ? name + 1 : NULL)

enum json_write_flags {
    JSON_PRETTY = 1,    /* two spaces per level, a space after the colon */
    JSON_HTML_SAFE = 2, /* < > & and U+2028, U+2029 as \u escapes, as Go writes */
};

/* Appends the compact form. ERR_LIMIT when it does not fit; out is then as it was. Non-ASCII is
 * never escaped. */
int json_write(const struct json *v, struct buf *out, struct err *e);
int json_write_as(const struct json *v, unsigned flags, struct buf *out, struct err *e);

/* json_out: makes a text piece by piece. Commas and colons come by themselves; wrong nesting is our
 * bug and asserts. The first failure sticks, the verbs then do nothing, and json_out_end reports it.
 *
 *     struct json_out o;
 *     json_out_init(&o, &answer, 0);
 *     json_out_object_begin(&o);
 *     json_out_key(&o, "exit_code"), json_out_i64(&o, code);
 *     json_out_object_end(&o);
 *     return json_out_end(&o, e);
 */
struct json_out {
    struct buf *out; /* borrowed */
    size_t start;    /* where this text begins in it */
    unsigned flags;  /* json_write_flags without JSON_PRETTY */
    enum err_code failed;
    uint32_t depth;
    bool
        is_first; /* nothing yet in the innermost container, or a name was just written: no comma */
    bool has_name;                           /* a name waits for its value */
    uint64_t is_object[JSON_DEPTH_MAX / 64]; /* one bit per open container */
};

void json_out_init(struct json_out *o, struct buf *out, unsigned flags);
/* 0 when exactly one whole value was written; else -1 (ERR_LIMIT: the buf's ceiling, ERR_INVALID: a
 * double that is not finite) and the buf is as it was at json_out_init. */
int json_out_end(struct json_out *o, struct err *e);

void json_out_object_begin(struct json_out *o);
void json_out_object_end(struct json_out *o);
void json_out_array_begin(struct json_out *o);
void json_out_array_end(struct json_out *o);
void json_out_key(struct json_out *o, const char *name);
void json_out_key_span(struct json_out *o, struct span name);
/* Any bytes: each ill-formed run of UTF-8 becomes one U+FFFD. */
void json_out_str(struct json_out *o, struct span s);
void json_out_cstr(struct json_out *o, const char *s); /* NULL writes null */
void json_out_i64(struct json_out *o, int64_t v);
void json_out_u64(struct json_out *o, uint64_t v);
/* The shortest digits that read back equal, always with a fraction or an exponent: 5.0, 0.1, 1e+16.
 * */
void json_out_double(struct json_out *o, double v);
void json_out_bool(struct json_out *o, bool v);
void json_out_null(struct json_out *o);
/* A value that is JSON already; not checked. */
void json_out_raw(struct json_out *o, struct span json);
void json_out_value(struct json_out *o, const struct json *v); /* NULL writes null */

#endif
