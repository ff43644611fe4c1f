/* buf: the two types for bytes. A span borrows, a buf owns.
 *
 * Owns:     a buf owns its heap block, is always NUL-terminated, and has a ceiling from birth: reaching it
 *           is ERR_LIMIT, never a larger allocation. Nothing else in the project grows.
 * Used by:  everyone. A span lives as long as what it points into; who returns one says how long.
 */
#ifndef SILICA_BASE_BUF_H
#define SILICA_BASE_BUF_H

#include "base/err.h"

#include <stdarg.h>
#include <string.h>

struct span {
    const uint8_t *p;
    size_t n;
};

struct buf {
    uint8_t *p; /* NULL until the first byte; use buf_cstr() for a string that is never NULL */
    size_t n;   /* bytes held, without the terminator */
    size_t cap; /* bytes allocated, terminator included */
    size_t max; /* the ceiling for n */
};

/* clang-format off */
#define SPAN(literal)  ((struct span){ (const uint8_t *)(literal), sizeof(literal) - 1 })
/* The same as an initialiser of static tables. */
#define BYTES(literal) { (const uint8_t *)(literal), sizeof(literal) - 1 }
#define SPAN_NONE      ((struct span){ NULL, 0 })
#define BUF_INIT(max_bytes) { NULL, 0, 0, (max_bytes) }
/* For printf: printf("%.*s", SPAN_ARG(s)) */
#define SPAN_ARG(s)    (int)MIN((s).n, (size_t)INT32_MAX), (const char *)(s).p
/* clang-format on */

static inline struct span span_of(const void *p, size_t n)
{
    return (struct span){ p, n };
}
/* NULL gives the empty span. Here, so that the length of a literal is known when it is compiled. */
static inline struct span span_cstr(const char *s)
{
    return s ? (struct span){ (const uint8_t *)s, strlen(s) } : SPAN_NONE;
}
bool span_eq(struct span a, struct span b);
static inline bool span_is(struct span a, const char *s)
{
    size_t n = strlen(
        s); /* of a literal: known already, and then most answers are one comparison of lengths */

    return a.n == n && (n == 0 || memcmp(a.p, s, n) == 0);
}
bool span_is_nocase(struct span a, const char *s); /* ASCII letters only */
bool span_starts(struct span a, const char *prefix);
bool span_ends(struct span a, const char *suffix);
/* Index of the byte or string, or SIZE_MAX. */
size_t span_find(struct span a, uint8_t byte);
size_t span_find_str(struct span a, struct span needle);
/* From..to, both clipped to the span. */
static inline struct span span_slice(struct span a, size_t from, size_t to)
{
    from = MIN(from, a.n);
    to = MAX(MIN(to, a.n), from);
    return a.p ? (struct span){ a.p + from, to - from } : SPAN_NONE;
}
static inline struct span span_skip(struct span a, size_t n)
{
    n = MIN(n, a.n);
    return a.p ? (struct span){ a.p + n, a.n - n } : SPAN_NONE;
}
/* Without spaces and tabs at both ends. */
struct span span_trim(struct span a);
/* Cuts the next piece up to `sep` off *rest (the separator goes too). False when nothing was left; a
 * trailing separator does not make an empty last piece. */
bool span_cut(struct span *rest, uint8_t sep, struct span *ret_piece);
/* A heap copy with a terminator, for the caller to free. NULs inside stay. */
char *span_dup(struct span a);

/* Adds bytes. -1 and ERR_LIMIT when the ceiling would be passed; then nothing was added. */
int buf_add(struct buf *b, struct span s, struct err *e);
int buf_addc(struct buf *b, uint8_t byte, struct err *e);
int buf_addf(struct buf *b, struct err *e, const char *fmt, ...) PRINTF(3, 4);
int buf_vaddf(struct buf *b, struct err *e, const char *fmt, va_list ap);
/* Adds what fits and drops the rest; returns how many bytes were dropped. */
size_t buf_add_capped(struct buf *b, struct span s);
/* For texts that people read: what is beyond the ceiling is cut. */
void buf_addf_capped(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_vaddf_capped(struct buf *b, const char *fmt, va_list ap);
static inline void buf_addc_capped(struct buf *b, uint8_t byte)
{
    (void)buf_add_capped(b, (struct span){ &byte, 1 });
}
/* Without another allocation, and within the ceiling: that may be lower than the block is large. */
static inline bool buf_has_room(const struct buf *b, size_t n)
{
    return n < b->cap && b->n + n < b->cap && b->n + n <= b->max;
}
int buf_enlarge(struct buf *b, size_t n, struct err *e);
/* Room for `n` more bytes at b->p + b->n; the caller then raises b->n itself with buf_grown(). */
static inline int buf_reserve(struct buf *b, size_t n, struct err *e)
{
    return buf_has_room(b, n) ? 0 : buf_enlarge(b, n, e);
}
/* Bytes that can be written behind the end without another allocation. */
static inline size_t buf_room(const struct buf *b)
{
    return b->cap ? b->cap - 1 - b->n : 0;
}
static inline void buf_grown(struct buf *b, size_t n)
{
    assert(n <= buf_room(b));
    b->n += n;
    if (b->p)
        b->p[b->n] = '\0';
}

static inline struct span buf_span(const struct buf *b)
{
    return (struct span){ b->p, b->n };
}
const char *buf_cstr(const struct buf *b);
/* Drops n bytes from the front. */
void buf_consume(struct buf *b, size_t n);
/* Drops what is behind the first n bytes. */
void buf_truncate(struct buf *b, size_t n);
void buf_clear(struct buf *b); /* keeps the block */
void buf_done(struct buf *b);  /* frees it; the buf may be used again */
/* Moves the block alone: *to, which has none, is empty with it and its own ceiling. */
static inline void buf_pass_block(struct buf *to, struct buf *from)
{
    assert(!to->p);
    to->p = from->p;
    to->cap = from->cap;
    to->n = 0;
    if (to->p)
        to->p[0] = '\0';
    from->p = NULL;
    from->n = from->cap = 0;
}
/* Moves the content out: *to takes the block, *from is empty with the same ceiling. */
void buf_move(struct buf *to, struct buf *from);

#endif
