#include "base/buf.h"

#include <strings.h>

bool span_eq(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool span_is_nocase(struct span a, const char *s)
{
    return a.n == strlen(s) && (a.n == 0 || strncasecmp((const char *)a.p, s, a.n) == 0);
}

bool span_starts(struct span a, const char *prefix)
{
    size_t n = strlen(prefix);

    return a.n >= n && (n == 0 || memcmp(a.p, prefix, n) == 0);
}

bool span_ends(struct span a, const char *suffix)
{
    size_t n = strlen(suffix);

    return a.n >= n && (n == 0 || memcmp(a.p + a.n - n, suffix, n) == 0);
}

size_t span_find(struct span a, uint8_t byte)
{
    const uint8_t *hit = a.n ? memchr(a.p, byte, a.n) : NULL;

    return hit ? (size_t)(hit - a.p) : SIZE_MAX;
}

size_t span_find_str(struct span a, struct span needle)
{
    const uint8_t *hit;

    if (needle.n == 0)
        return 0;
    hit = a.n ? memmem(a.p, a.n, needle.p, needle.n) : NULL;
    return hit ? (size_t)(hit - a.p) : SIZE_MAX;
}

struct span span_trim(struct span a)
{
    while (a.n && (a.p[0] == ' ' || a.p[0] == '\t'))
        a.p++, a.n--;
    while (a.n && (a.p[a.n - 1] == ' ' || a.p[a.n - 1] == '\t'))
        a.n--;
    return a;
}

bool span_cut(struct span *rest, uint8_t sep, struct span *ret_piece)
{
    size_t at;

    if (rest->n == 0)
        return false;
    at = span_find(*rest, sep);
    if (at == SIZE_MAX) {
        *ret_piece = *rest;
        *rest = SPAN_NONE;
        return true;
    }
    *ret_piece = span_slice(*rest, 0, at);
    *rest = span_skip(*rest, at + 1);
    return true;
}

char *span_dup(struct span a)
{
    char *s = own_new(a.n + 1);

    if (a.n)
        memcpy(s, a.p, a.n);
    return s;
}

int buf_enlarge(struct buf *b, size_t n, struct err *e)
{
    size_t need, cap;

    if (n > b->max || b->n > b->max - n)
        return err_set(e, ERR_LIMIT, "more than %zu bytes", b->max);
    need = b->n + n + 1;
    if (need <= b->cap)
        return 0;
    cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap *= 2;
    cap = MAX(MIN(cap, b->max + 1), need);
    b->p = own_resize(b->p, cap, 1);
    b->cap = cap;
    b->p[b->n] = '\0';
    return 0;
}

int buf_add(struct buf *b, struct span s, struct err *e)
{
    if (s.n == 0)
        return 0;
    if (buf_reserve(b, s.n, e) < 0)
        return -1;
    memcpy(b->p + b->n, s.p, s.n);
    b->n += s.n;
    b->p[b->n] = '\0';
    return 0;
}

int buf_addc(struct buf *b, uint8_t byte, struct err *e)
{
    if (buf_reserve(b, 1, e) < 0)
        return -1;
    b->p[b->n] = byte;
    buf_grown(b, 1);
    return 0;
}

size_t buf_add_capped(struct buf *b, struct span s)
{
    size_t fits = b->n < b->max ? MIN(s.n, b->max - b->n) : 0;
    struct err e;

    (void)buf_add(b, span_slice(s, 0, fits), &e); /* it fits by construction */
    return s.n - fits;
}

int buf_vaddf(struct buf *b, struct err *e, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(b->p ? (char *)b->p + b->n : NULL, b->p ? b->cap - b->n : 0, fmt, again);
    va_end(again);
    assert(n >= 0);
    if (buf_has_room(b, (size_t)n)) {
        b->n += (size_t)n;
        return 0;
    }
    if (b->p)
        b->p[b->n] = '\0'; /* undo the cut-off attempt */
    if (buf_reserve(b, (size_t)n, e) < 0)
        return -1;
    (void)vsnprintf((char *)b->p + b->n, b->cap - b->n, fmt, ap);
    b->n += (size_t)n;
    return 0;
}

int buf_addf(struct buf *b, struct err *e, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vaddf(b, e, fmt, ap);
    va_end(ap);
    return r;
}

void buf_vaddf_capped(struct buf *b, const char *fmt, va_list ap)
{
    size_t room = b->n < b->max ? b->max - b->n : 0;
    va_list again;
    struct err e;

    va_copy(again, ap);
    if (buf_vaddf(b, &e, fmt, ap) < 0 && buf_reserve(b, room, &e) == 0 && room > 0) {
        (void)vsnprintf((char *)b->p + b->n, room + 1, fmt, again);
        b->n += room; /* it is longer than that */
    }
    va_end(again);
}

void buf_addf_capped(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf_capped(b, fmt, ap);
    va_end(ap);
}

const char *buf_cstr(const struct buf *b)
{
    return b->p ? (const char *)b->p : "";
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->n);
    if (n == 0)
        return;
    b->n -= n;
    memmove(b->p, b->p + n, b->n + 1);
}

void buf_truncate(struct buf *b, size_t n)
{
    assert(n <= b->n);
    b->n = n;
    if (b->p)
        b->p[n] = '\0';
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    if (b->p)
        b->p[0] = '\0';
}

void buf_done(struct buf *b)
{
    free(b->p);
    b->p = NULL;
    b->n = b->cap = 0;
}

void buf_move(struct buf *to, struct buf *from)
{
    buf_done(to);
    *to = *from;
    from->p = NULL;
    from->n = from->cap = 0;
}
