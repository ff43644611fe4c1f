/* gate: how fast a pool may be filled again: not before its members have stopped leaving, and not more than so many a second.
 *
 * Owns:     its numbers; one for each pool. Both rules are off unless the operator asks for them.
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
};

/* Of `want` new members, how many may be made now; `active` there are, `wish` there should be. *ret_wait_ms: when to ask again,
 * 0: not by the clock. */
size_t gate_open(struct gate *g, const struct gate_rules *rules, size_t active, size_t wish,
                 size_t want, uint64_t now_ms, uint64_t *ret_wait_ms);
/* So many of them were not made after all, and were not tried. */
void gate_refund(struct gate *g, const struct gate_rules *rules, size_t n);

#endif
