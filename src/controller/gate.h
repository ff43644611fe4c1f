/* gate: how fast a pool may be filled again: not before its members have stopped leaving, and not more than so many a second;
 * both if the operator asks for it. And on a cluster not while claims wait that have members to take.
 *
 * Owns:     its numbers; one for each pool.
 * Clock:    the caller's, one that never goes back.
 */
#ifndef SILICA_CONTROLLER_GATE_H
#define SILICA_CONTROLLER_GATE_H

#include "base/own.h"

struct gate_rules {
    uint64_t delay_ms; /* after the last member left; 0: none */
    double per_second; /* 0: as many as are missing */
};

struct gate {
    bool has_seen;
    size_t seen;      /* members when it was last looked at, and those made since */
    uint64_t held_ms; /* nothing is made before; 0: no hold */
    bool has_tokens;
    double tokens;
    uint64_t tokens_at_ms;
    uint64_t yields_since_ms; /* 0: it does not */
};

/* Who waits, and what there is for them. */
struct gate_demand {
    size_t claims;      /* that wait, for members of any pool */
    size_t ready, wish; /* members of this one, and how many there should be */
};

/* Of `want` new members, how many may be made now; `active` there are, `wish` there should be. *ret_wait_ms: when to ask again,
 * 0: not by the clock. */
size_t gate_open(struct gate *g, const struct gate_rules *rules, size_t active, size_t wish,
                 size_t want, uint64_t now_ms, uint64_t *ret_wait_ms);
/* So many of them were not made after all, and were not tried. */
void gate_refund(struct gate *g, const struct gate_rules *rules, size_t n);
/* Everybody who waits has a member to take, and some are left for those who come next: to make more of them would only take the
 * API server's time from the claims. For at most GATE_YIELD_MAX_MS without a moment in which nobody waited. */
bool gate_yields(struct gate *g, const struct gate_demand *d, uint64_t now_ms);

#endif
