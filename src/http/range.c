#include "http/range.h"

#include "base/str.h"

#define NUMBER_MAX ((uint64_t)INT64_MAX) /* what both servers can count to */

enum piece { PIECE_GOOD, PIECE_EMPTY, PIECE_BAD };

/* One range as written: "a-b", "a-" or "-n". */
struct spec {
    uint64_t first,
        last; /* last is NUMBER_MAX when open; of a suffix, `last` is the number of bytes */
    bool is_suffix;
};

static enum piece parse_piece(struct span piece, struct spec *ret)
{
    size_t dash = span_find(piece, '-');
    struct span a = span_trim(span_slice(piece, 0, dash)),
                b = span_trim(span_skip(piece, dash + 1));

    if (!piece.n)
        return PIECE_EMPTY;
    if (dash == SIZE_MAX || (!a.n && !b.n))
        return PIECE_BAD;
    *ret = (struct spec){ 0, NUMBER_MAX, !a.n };
    if (a.n && !str_u64(a, NUMBER_MAX, &ret->first))
        return PIECE_BAD;
    return b.n && !str_u64(b, NUMBER_MAX, &ret->last) ? PIECE_BAD : PIECE_GOOD;
}

/* The bytes of it that exist; false when there are none. */
static bool clip(const struct spec *s, uint64_t size, struct http_range *ret)
{
    uint64_t first = s->is_suffix ? size - MIN(s->last, size) : s->first;
    uint64_t end = s->is_suffix || s->last >= size ? size : s->last + 1;

    if (first >= end)
        return false;
    *ret = (struct http_range){ first, end - first };
    return true;
}

static enum http_range_verdict parse_go(struct span list, uint64_t size, struct http_ranges *ret)
{
    bool has_outside = false, has_many = false;
    struct span piece;
    uint64_t sum = 0;

    while (span_cut(&list, ',', &piece)) {
        struct http_range r;
        struct spec s = { 0 };
        enum piece kind = parse_piece(span_trim(piece), &s);

        if (kind == PIECE_EMPTY)
            continue;
        if (kind == PIECE_BAD || (!s.is_suffix && s.first < size && s.last < s.first))
            return HTTP_RANGE_MALFORMED;
        if (!clip(&s, size, &r)) {
            has_outside = true;
            continue;
        }
        has_many |= ret->n == HTTP_RANGES_MAX;
        if (has_many) /* what follows may still be malformed */
            continue;
        ret->v[ret->n++] = r;
        sum += r.length;
        has_many |= sum > size;
    }
    if (!ret->n && has_outside)
        return size ? HTTP_RANGE_UNSATISFIABLE : HTTP_RANGE_WHOLE;
    return ret->n && !has_many ? HTTP_RANGE_PARTIAL : HTTP_RANGE_WHOLE;
}

static void sort_and_merge(struct http_ranges *r)
{
    size_t kept = 0;

    for (size_t i = 1; i < r->n; i++) /* few enough to insert */
        for (size_t k = i; k > 0 && r->v[k].start < r->v[k - 1].start; k--) {
            struct http_range swap = r->v[k];

            r->v[k] = r->v[k - 1];
            r->v[k - 1] = swap;
        }
    for (size_t i = 1; i < r->n; i++) {
        struct http_range *last = &r->v[kept];
        uint64_t end = r->v[i].start + r->v[i].length;

        if (r->v[i].start <= last->start + last->length)
            last->length = MAX(last->start + last->length, end) - last->start;
        else
            r->v[++kept] = r->v[i];
    }
    r->n = kept + 1;
}

static enum http_range_verdict parse_starlette(struct span list, uint64_t size,
                                               struct http_ranges *ret)
{
    bool has_outside = false, has_backward = false;
    struct span piece;
    size_t count = 0;

    while (span_cut(&list, ',', &piece)) {
        struct http_range r;
        struct spec s = { 0 };

        if (parse_piece(span_trim(piece), &s) != PIECE_GOOD)
            continue;
        count++;
        if (!s.is_suffix && s.first < size && s.last < s.first)
            has_backward = true;
        else if (!clip(&s, size, &r))
            has_outside = true;
        else if (ret->n < HTTP_RANGES_MAX)
            ret->v[ret->n++] = r;
    }
    if (count == 0)
        return HTTP_RANGE_MALFORMED;
    if (has_outside)
        return HTTP_RANGE_UNSATISFIABLE;
    if (has_backward)
        return HTTP_RANGE_MALFORMED;
    if (count > HTTP_RANGES_MAX)
        return HTTP_RANGE_WHOLE;
    sort_and_merge(ret);
    return HTTP_RANGE_PARTIAL;
}

enum http_range_verdict http_range_parse(struct span header, uint64_t size,
                                         enum http_range_rules rules, struct http_ranges *ret)
{
    size_t equals = span_find(header, '=');
    struct http_ranges list = { 0 };
    enum http_range_verdict verdict;

    if (!header.n && (!header.p || rules == HTTP_RANGE_GO))
        return HTTP_RANGE_WHOLE;
    size = MIN(size, NUMBER_MAX);
    if (rules == HTTP_RANGE_GO) {
        if (!span_starts(header, "bytes="))
            return HTTP_RANGE_MALFORMED;
        verdict = parse_go(span_skip(header, equals + 1), size, &list);
    } else {
        if (equals == SIZE_MAX ||
            !span_is_nocase(span_trim(span_slice(header, 0, equals)), "bytes"))
            return HTTP_RANGE_MALFORMED;
        verdict = parse_starlette(span_skip(header, equals + 1), size, &list);
    }
    if (verdict == HTTP_RANGE_PARTIAL)
        *ret = list;
    return verdict;
}

int http_range_write(struct buf *out, struct http_range r, uint64_t size, struct err *e)
{
    return buf_addf(out, e, "bytes %llu-%llu/%llu", (unsigned long long)r.start,
                    (unsigned long long)(r.start + r.length - 1), (unsigned long long)size);
}

int http_range_write_none(struct buf *out, uint64_t size, struct err *e)
{
    return buf_addf(out, e, "bytes */%llu", (unsigned long long)size);
}

int http_range_write_part(struct buf *out, const struct http_byteranges *b, struct http_range r,
                          struct err *e)
{
    return buf_addf(out, e,
                    "--%s\r\ncontent-type: %s\r\ncontent-range: bytes %llu-%llu/%llu\r\n\r\n",
                    b->boundary, b->content_type, (unsigned long long)r.start,
                    (unsigned long long)(r.start + r.length - 1), (unsigned long long)b->size);
}

int http_range_write_end(struct buf *out, const struct http_byteranges *b, struct err *e)
{
    return buf_addf(out, e, "--%s--\r\n", b->boundary);
}
