#include "base/hash.h"

#include <string.h>
#include <sys/random.h>

static uint64_t secret(void)
{
    static uint64_t kept; /* atomic; 0 is not made yet */
    uint64_t there = __atomic_load_n(&kept, __ATOMIC_RELAXED), made = 0;

    if (there)
        return there;
    if (getrandom(&made, sizeof made, 0) != sizeof made)
        made = (uint64_t)(uintptr_t)&made;
    made |= 1;
    return __atomic_compare_exchange_n(&kept, &there, made, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED)
               ? made
               : there;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t wide = (__uint128_t)a * b;

    return (uint64_t)wide ^ (uint64_t)(wide >> 64);
}

uint64_t hash_add(uint64_t h, struct span text)
{
    const uint64_t key = 0x9e3779b97f4a7c15u ^ secret();
    const uint8_t *p = text.p;
    size_t n = text.n;
    uint64_t word;

    h ^= secret() ^ n;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        h = mix(h ^ word, key);
    }
    word = 0;
    if (n)
        memcpy(&word, p, n);
    h = mix(h ^ word, key);
    return h ^ h >> 32;
}
