/* pace: how long to wait: between tries of what failed, and between calls that are too many.
 *
 * Owns:     nothing; both are values in their owners. Read no clock: `now` is the caller's.
 * Used by:  rest and watch.
 */
#ifndef SILICA_KUBECLIENT_PACE_H
#define SILICA_KUBECLIENT_PACE_H

#include "base/buf.h"

/* Pauses that double, each with a random part, so that a thousand clients of a server that fell do not come back in the
 * same millisecond. Zeroed is ready. */
struct backoff {
    unsigned tries; /* failures in a row */
};
/* The pause after one more failure: between half of first_ms doubled so often and all of it, at most max_ms. */
uint64_t backoff_next_ms(struct backoff *b, uint64_t first_ms, uint64_t max_ms);

/* Retry-After: seconds, or an HTTP date. False: neither. At most max_s. */
bool retry_after_ms(struct span value, time_t now, unsigned max_s, uint64_t *ret_ms);

/* A token bucket: `qps` a second, `burst` at once. qps 0: no limit. */
struct bucket {
    double qps, burst, tokens;
    uint64_t at_ms;
};
void bucket_init(struct bucket *b, double qps, unsigned burst, uint64_t now_ms);
/* Takes a token, also one that is still to come: how long until it is there. */
uint64_t bucket_take_ms(struct bucket *b, uint64_t now_ms);

#endif
