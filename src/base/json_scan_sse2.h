/* json_scan_sse2: 16 bytes at a time. Private to json_scan.h. */
#ifndef SILICA_BASE_JSON_SCAN_SSE2_H
#define SILICA_BASE_JSON_SCAN_SSE2_H

#include "base/buf.h"

#include <emmintrin.h>

#define JSON_SCAN_STEP 16

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

#endif
