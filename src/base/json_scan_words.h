/* json_scan_words: 8 bytes at a time, for machines without SSE2. Private to json_scan.h. */
#ifndef SILICA_BASE_JSON_SCAN_WORDS_H
#define SILICA_BASE_JSON_SCAN_WORDS_H

#include "base/buf.h"

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
    return (((x & ~JSON_HIGHS) + ~JSON_HIGHS) | x) & JSON_HIGHS; /* exact: no carry crosses */
}

static inline size_t json_scan_index(uint64_t mask)
{
    return (size_t)__builtin_ctzll(mask) / 8;
}

#endif
