/* json_scan: the inner loops of base/json: 16 bytes at a time with SSE2, 8 with plain words
 * elsewhere.
 *
 * Private to base/json*.c. The padded verbs read up to JSON_PAD_BYTES past the place they answer:
 * the text of a document ends in that many NULs, and a NUL stops every one of them. */
#ifndef SILICA_BASE_JSON_SCAN_H
#define SILICA_BASE_JSON_SCAN_H

#include "base/buf.h"

#define JSON_PAD_BYTES 32

#if defined(__SSE2__) && !defined(JSON_NO_SSE2)
#define JSON_SCAN_STEP 16
#include <emmintrin.h>

/* One bit per byte of the next 16 that a string cannot take as it is: quote, backslash, control,
 * non-ASCII. */
static inline unsigned json_scan_special(const uint8_t *p)
{
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i quote = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\'));
    __m128i low = _mm_cmplt_epi8(
        x, _mm_set1_epi8(0x20)); /* signed: control characters and all of 0x80-0xff */

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), low));
}

static inline unsigned json_scan_nonblank(const uint8_t *p)
{
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);

    return 0xffff ^ (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8(' ')));
}

static inline size_t json_scan_index(unsigned mask)
{
    return (size_t)__builtin_ctz(mask);
}
#else
#define JSON_SCAN_STEP 8
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "json_scan_index takes the lowest set bit for the first byte"
#endif

#define JSON_ONES  0x0101010101010101u
#define JSON_HIGHS 0x8080808080808080u

/* The high bit of each byte that is zero. A borrow can mark a byte above a true hit, never one
 * below it, and only the lowest mark is used. */
static inline uint64_t json_scan_zero(uint64_t x)
{
    return (x - JSON_ONES) & ~x & JSON_HIGHS;
}

static inline uint64_t json_scan_special(const uint8_t *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof x);
    return json_scan_zero(x ^ JSON_ONES * '"') | json_scan_zero(x ^ JSON_ONES * '\\') |
           ((x - JSON_ONES * 0x20) & ~x & JSON_HIGHS) | (x & JSON_HIGHS);
}

static inline uint64_t json_scan_nonblank(const uint8_t *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof x);
    x ^= JSON_ONES * ' ';
    return (((x & ~JSON_HIGHS) + ~JSON_HIGHS) | x) &
           JSON_HIGHS; /* exact: no carry leaves its byte */
}

static inline size_t json_scan_index(uint64_t mask)
{
    return (size_t)__builtin_ctzll(mask) / 8;
}
#endif

/* Padded. The first byte from p on that a string cannot take as it is. */
static inline uint8_t *json_scan_padded(uint8_t *p)
{
    for (;;) {
        __typeof__(json_scan_special(p)) mask = json_scan_special(p);

        if (mask)
            return p + json_scan_index(mask);
        p += JSON_SCAN_STEP;
    }
}

/* Bytes at the start of s that a string takes as they are. Reads nothing outside s. */
static inline size_t json_scan_span(struct span s)
{
    size_t i = 0;

    for (; i + JSON_SCAN_STEP <= s.n; i += JSON_SCAN_STEP) {
        __typeof__(json_scan_special(s.p)) mask = json_scan_special(s.p + i);

        if (mask)
            return i + json_scan_index(mask);
    }
    while (i < s.n && s.p[i] >= 0x20 && s.p[i] < 0x80 && s.p[i] != '"' && s.p[i] != '\\')
        i++;
    return i;
}

/* Padded. The first byte from p on that is no blank of JSON. */
static inline uint8_t *json_skip_blanks(uint8_t *p)
{
    for (;;) {
        if (*p > ' ')
            return p;
        if (*p != ' ' && *p != '\n' && *p != '\r' && *p != '\t')
            return p;
        p++;
        if (*p == ' ') { /* indentation: mostly spaces in a row */
            __typeof__(json_scan_nonblank(p)) mask = json_scan_nonblank(p);

            p += mask ? json_scan_index(mask) : JSON_SCAN_STEP;
        }
    }
}

/* Padded. Length of the well-formed UTF-8 sequence of two or more bytes at p, or 0. */
static inline size_t json_utf8_padded(const uint8_t *p)
{
    uint8_t c = p[0];

    if (c < 0xc2 || (p[1] & 0xc0) != 0x80)
        return 0;
    if (c < 0xe0)
        return 2;
    if ((p[2] & 0xc0) != 0x80)
        return 0;
    if (c < 0xf0)
        return (c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) ? 0 : 3;
    if ((p[3] & 0xc0) != 0x80 || c > 0xf4)
        return 0;
    return (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f) ? 0 : 4;
}

#endif
