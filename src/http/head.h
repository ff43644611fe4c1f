/* head: the head of one HTTP request or response, whatever version of HTTP carried it.
 *
 * Owns:     one text buffer and a list of offsets into it, so growing never moves a field out from under
 *           its reader. Both have ceilings from birth; reaching one is ERR_LIMIT.
 * Used by:  http1 and h2 to hand over what they parsed, servers, router and clients to say what to send.
 * Spans:    what the getters return points into the head and lives until the next call that adds, sets or
 *           clears. Spans given in are copied; they must not point into the same head.
 * Names:    field names are lower case inside (they are folded when added); order and repeats are kept.
 *           A name given to a getter must be lower case.
 */
#ifndef SILICA_HTTP_HEAD_H
#define SILICA_HTTP_HEAD_H

#include "base/buf.h"

/* A piece of the text. */
struct http_piece {
    uint32_t at;
    uint32_t n;
};

struct http_field {
    struct http_piece name;
    struct http_piece value;
};

struct http_head {
    struct buf text;
    struct http_field *fields;
    uint32_t field_count, field_cap, field_max;
    uint32_t
        sound; /* so many fields, from the first on, were found fit for the wire when they were read */
    uint32_t lengths;         /* a bit for each length that a name has: most lookups end there */
    struct http_piece method; /* empty in a response */
    struct http_piece target; /* raw, as on the wire; h2's :path */
    struct http_piece
        authority; /* h2's :authority; in HTTP/1 the absolute target's, else the Host field's */
    struct http_piece scheme;   /* h2's :scheme; in HTTP/1 only an absolute target has one */
    struct http_piece protocol; /* h2's :protocol (RFC 8441), else empty */
    uint16_t status;            /* 0 in a request */
    uint8_t minor;              /* of HTTP/1.x; h2 leaves 1 here */
};

/* Of http_head.lengths; the last one is of all longer names, too. */
static inline uint32_t http_head_length_bit(size_t n)
{
    return 1u << MIN(n, (size_t)31);
}

/* Ceilings: bytes of all text together (at most UINT32_MAX / 2), and fields. Allocates nothing yet. */
void http_head_init(struct http_head *h, size_t max_bytes, size_t max_fields);
/* Frees everything; the head may be used again with the same ceilings. */
void http_head_done(struct http_head *h);
/* Empties it and keeps the memory for the next message. */
void http_head_clear(struct http_head *h);
/* Empties *from and gives its memory to *to, which has none. */
void http_head_pass_memory(struct http_head *from, struct http_head *to);
/* Makes *to say what *from says, within to's own ceilings. */
int http_head_copy(struct http_head *to, const struct http_head *from, struct err *e);
/* Room for so many bytes of text in one allocation; a wish, within the ceiling. */
void http_head_reserve(struct http_head *h, size_t bytes);

/* The first line. */
int http_head_set_request(struct http_head *h, struct span method, struct span target,
                          struct err *e);
int http_head_set_authority(struct http_head *h, struct span authority, struct err *e);
int http_head_set_scheme(struct http_head *h, struct span scheme, struct err *e);
int http_head_set_protocol(struct http_head *h, struct span protocol, struct err *e);
void http_head_set_status(struct http_head *h, int status);
struct span http_head_method(const struct http_head *h);
struct span http_head_target(const struct http_head *h);
struct span http_head_authority(const struct http_head *h);
struct span http_head_scheme(const struct http_head *h);
struct span http_head_protocol(const struct http_head *h);

/* Adds a field at the end. ERR_LIMIT when a ceiling is reached, and then nothing was added. Contents are
 * not judged here: the writers refuse what must not go on the wire. */
int http_head_add(struct http_head *h, struct span name, struct span value, struct err *e);
int http_head_addf(struct http_head *h, const char *name, struct err *e, const char *fmt, ...)
    PRINTF(4, 5);
/* Adds a field of ours: the name is a token in lower case. What is fit for the wire is then known, and not looked at again. */
int http_head_add_ours(struct http_head *h, struct span name, struct span value, struct err *e);
/* Adds a field as another head has it. */
int http_head_add_from(struct http_head *h, const struct http_head *from, size_t i, struct err *e);
/* Adds a field whose text stands in h->text already, its name in lower case (http1 parses its head in place). */
int http_head_add_more(struct http_head *h, struct http_piece name, struct http_piece value,
                       struct err *e); /* where the list must grow, or may not */
static inline int http_head_add_piece(struct http_head *h, struct http_piece name,
                                      struct http_piece value, struct err *e)
{
    if (h->field_count == h->field_cap)
        return http_head_add_more(h, name, value, e);
    h->fields[h->field_count++] = (struct http_field){ name, value };
    h->lengths |= http_head_length_bit(name.n);
    return 0;
}
/* Removes every field of that name, then adds this one. */
int http_head_set(struct http_head *h, struct span name, struct span value, struct err *e);
/* Removes every field of that name; says how many there were. */
size_t http_head_remove(struct http_head *h, const char *name);

static inline size_t http_head_count(const struct http_head *h)
{
    return h->field_count;
}
/* The i-th field, i < http_head_count(). */
static inline void http_head_field(const struct http_head *h, size_t i, struct span *ret_name,
                                   struct span *ret_value)
{
    const struct http_field *f = &h->fields[i];

    assert(i < h->field_count);
    *ret_name = span_of(h->text.p + f->name.at, f->name.n);
    *ret_value = span_of(h->text.p + f->value.at, f->value.n);
}
/* Each value of a name in turn: start with *iter = 0; p is NULL after the last (and not NULL when it is empty). */
struct span http_head_walk(const struct http_head *h, struct span name, size_t *iter);
/* The same by a literal, whose length is then known when it is compiled. */
static inline struct span http_head_next(const struct http_head *h, const char *name, size_t *iter)
{
    struct span key = span_cstr(name);

    return h->lengths & http_head_length_bit(key.n) ? http_head_walk(h, key, iter) : SPAN_NONE;
}
/* The first value. */
static inline struct span http_head_get(const struct http_head *h, const char *name)
{
    size_t iter = 0;

    return http_head_next(h, name, &iter);
}
/* Is the token an element of the field's comma list? All occurrences, letters in any case. */
bool http_head_has_token(const struct http_head *h, const char *name, const char *token);
/* The same for names whose letters count (subprotocols). */
bool http_head_has_item(const struct http_head *h, const char *name, const char *item);

/* The target without scheme and authority: what a server routes by and a proxy sends on. "/" for an
 * absolute target that ends with its authority; "*" stays, CONNECT's target too. */
struct span http_head_path(const struct http_head *h);

/* A token's byte in lower case, 0 for a byte that no token holds. */
extern const uint8_t http_token_fold[256];
/* RFC 9110 5.6.2 and 5.5: what may stand on the wire as a name (any case), and as a value. A value may hold
 * spaces, tabs and bytes from 0x80 up, but no other control byte: no CR, LF or NUL. */
bool http_name_is_valid(struct span name);
bool http_value_is_valid(struct span value);

#endif
