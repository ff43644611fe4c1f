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
#include "base/json_scan_sse2.h"
#else
#include "base/json_scan_words.h"
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
