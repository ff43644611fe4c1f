/* backoff: how long to wait before trying again, and how often something may happen at all.
 *
 * Owns:     nothing but its numbers. Reads no clock: `now_ms` is the caller's, of a clock that never goes back.
 * Used by:  queues, informers and leases of this room; clients over the network.
 * Threads:  a value belongs to one loop.
 */
#ifndef SILICA_KUBE_BACKOFF_H
#define SILICA_KUBE_BACKOFF_H

#include "base/own.h"

/* Doubles from first_ms up to most_ms. */
struct backoff {
    uint64_t first_ms, most_ms;
    double
        jitter; /* a wait of w is drawn from [w, w * (1 + jitter)), so that many do not come back together */
    unsigned failures;
};

/* The wait after one more failure. */
uint64_t backoff_next_ms(struct backoff *b);
/* It worked: the next wait is the first again. */
void backoff_reset(struct backoff *b);
/* The wait after `failures` of them, one or more, without jitter. */
uint64_t backoff_ms(uint64_t first_ms, uint64_t most_ms, unsigned failures);
/* Drawn from [ms, ms * (1 + jitter)). */
uint64_t backoff_jitter_ms(uint64_t ms, double jitter);

/* A token bucket: `burst` at once, then per_second. */
struct bucket {
    double per_second; /* 0: everything may happen at once */
    double burst;
    double tokens; /* below zero: that many are promised already */
    uint64_t at_ms;
};

/* A full one. */
void bucket_init(struct bucket *b, double per_second, double burst, uint64_t now_ms);
/* Takes a token, also one that is yet to come; the answer says in how many ms that will be. */
uint64_t bucket_reserve_ms(struct bucket *b, uint64_t now_ms);
/* Takes a token only if one is there. */
bool bucket_take(struct bucket *b, uint64_t now_ms);

#endif
