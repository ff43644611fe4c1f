/* The lines of a head that are there whole and have nothing unusual, which nearly all have not: copied at once, cut and
 * folded where they then stand. Bytes at a time where the processor has such registers (x86 always). */
#include "http/http1_head.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define STEP     16         /* bytes that a register holds */
#define COPY_MAX (2 * 1024) /* at once: what is behind the head is copied in vain */

/* So many letters, digits and dashes, in lower case now. */
static size_t fold_plain(uint8_t *p)
{
    size_t n = 0;

#ifdef __SSE2__
    static const uint8_t ramp[2 * STEP] = { 255, 255, 255, 255, 255, 255, 255, 255,
                                            255, 255, 255, 255, 255, 255, 255, 255 };
    unsigned plain;

    do {
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + n));
        const __m128i low = _mm_or_si128(v, _mm_set1_epi8(0x20));
        const __m128i letter = _mm_and_si128(_mm_cmpgt_epi8(low, _mm_set1_epi8('a' - 1)),
                                             _mm_cmplt_epi8(low, _mm_set1_epi8('z' + 1)));
        const __m128i digit = _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8('0' - 1)),
                                            _mm_cmplt_epi8(v, _mm_set1_epi8('9' + 1)));
        const __m128i dash = _mm_cmpeq_epi8(v, _mm_set1_epi8('-'));
        __m128i fold, mask;
        unsigned count;

        plain = (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letter, digit), dash));
        count = (unsigned)__builtin_ctz(~plain);
        mask = _mm_loadu_si128((const __m128i *)(const void *)(ramp + STEP - count));
        fold = _mm_and_si128(_mm_and_si128(letter, _mm_set1_epi8(0x20)), mask);
        _mm_storeu_si128((__m128i *)(void *)(p + n), _mm_or_si128(v, fold));
        n += count;
    } while (plain == 0xffff);
#endif
    (void)p;
    return n;
}

/* So many bytes before the first that no value holds. */
static size_t value_bytes(const uint8_t *p)
{
    size_t n = 0;

#ifdef __SSE2__
    unsigned control;

    for (;; n++) {
        do {
            const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + n));
            const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
            const __m128i del = _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f));

            control = (unsigned)_mm_movemask_epi8(_mm_or_si128(low, del));
            n += control ? (unsigned)__builtin_ctz(control) : STEP;
        } while (!control);
        if (p[n] != '\t')
            return n;
    }
#else
    while ((p[n] >= 0x20 && p[n] != 0x7f) || p[n] == '\t')
        n++;
    return n;
#endif
}

/* 0: the line is not whole, or not as it should be. Bytes behind it are there, and end any value. */
static size_t cut_line(uint8_t *p, struct span *ret_name, struct span *ret_value)
{
    size_t n = fold_plain(p), at;
    struct span value;

    for (; http_token_fold[p[n]]; n++)
        p[n] = http_token_fold[p[n]];
    if (n == 0 || p[n] != ':')
        return 0;
    at = n + 1;
    value = span_of(p + at, value_bytes(p + at));
    at += value.n;
    if (p[at] != '\r' || p[at + 1] != '\n')
        return 0;
    *ret_name = span_of(p, n);
    while (value.n && (value.p[0] == ' ' || value.p[0] == '\t'))
        value.p++, value.n--;
    while (value.n && (value.p[value.n - 1] == ' ' || value.p[value.n - 1] == '\t'))
        value.n--;
    *ret_value = value;
    return at + 2;
}

int http1_head_lines(struct http1 *p, struct span in, size_t *ret_used, struct err *e)
{
    struct http_head *h = &p->head;
    size_t room = MIN(buf_room(&h->text), h->text.max - h->text.n);
    size_t have = MIN(in.n, (size_t)COPY_MAX), used = 0, n;
    uint8_t *text = h->text.p + h->text.n;
    struct span name, value;
    int r = 0;

    if (room <= STEP)
        return 0;
    have = MIN(have, room - STEP);
    memcpy(text, in.p, have);
    memset(text + have, 0, STEP);
    while (r == 0 && h->field_count < h->field_max &&
           (n = cut_line(text + used, &name, &value)) != 0 && n <= p->limits->line_bytes) {
        used += n;
        h->text.n += n;
        (void)http_head_add_piece(
            h, (struct http_piece){ (uint32_t)(name.p - h->text.p), (uint32_t)name.n },
            (struct http_piece){ (uint32_t)(value.p - h->text.p), (uint32_t)value.n }, e);
        r = http1_head_field(p, e);
    }
    text[used] = '\0';
    *ret_used = used;
    return r;
}
