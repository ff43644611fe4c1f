#include "base/sha1.h"

#include <string.h>

#define BLOCK_BYTES 64

static uint32_t rotate(uint32_t v, unsigned n)
{
    return v << n | v >> (32 - n);
}

/* FIPS 180-4 section 6.1.2. */
static void add_block(uint32_t h[5], const uint8_t *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (unsigned i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (unsigned i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999u
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1u
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu
                              : (b ^ c ^ d) + 0xca62c1d6u;
        uint32_t next = rotate(a, 5) + f + e + w[i];

        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void sha1(struct span text, uint8_t ret_digest[SHA1_BYTES])
{
    uint32_t h[5] = { 0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u };
    uint64_t bits = (uint64_t)text.n * 8;
    uint8_t last[2 * BLOCK_BYTES] = { 0 };
    size_t n;

    for (; text.n >= BLOCK_BYTES; text = span_skip(text, BLOCK_BYTES))
        add_block(h, text.p);
    if (text.n)
        memcpy(last, text.p, text.n);
    last[text.n] = 0x80;
    n = text.n < BLOCK_BYTES - 8 ? BLOCK_BYTES
                                 : 2 * BLOCK_BYTES; /* room for the length behind it */
    for (unsigned i = 0; i < 8; i++)
        last[n - 1 - i] = (uint8_t)(bits >> (8 * i));
    for (size_t at = 0; at < n; at += BLOCK_BYTES)
        add_block(h, last + at);
    for (unsigned i = 0; i < SHA1_BYTES; i++)
        ret_digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
