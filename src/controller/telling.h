/* telling: when a pool's numbers are told. Each claim takes a member away and each refill brings one back, so that the numbers of a busy
 * pool are old when they are read; mostly they are again what was told before.
 *
 * Rules:    a pool that has what it wishes, or whose wish is new, tells so at once, but for a short pause between two writes.
 *           Numbers that are far from what was told wait for POOL_UNEVEN_MS. Those that are near wait until they have stood still
 *           for so long, or have moved for POOL_MOVING_MS.
 * Owns:     its numbers; one for each pool. Does no I/O.
 * Clock:    the caller's, one that never goes back.
 */
#ifndef SILICA_CONTROLLER_TELLING_H
#define SILICA_CONTROLLER_TELLING_H

#include "base/own.h"

struct telling {
    uint64_t told_ms;     /* when they were told last; 0: never */
    uint64_t differs_ms;  /* since when they are not what was told; 0: they are */
    uint64_t moved_ms;    /* when they were last seen to be others than before */
    size_t active, ready; /* as they were seen then */
};

/* A pool's members now, and as its status says. */
struct telling_view {
    size_t active, ready, wish;
    size_t told_active, told_ready;
    bool is_wish_new; /* the status is of an older one, or there is none */
};

/* At each look at the pool. differs: the status is not as it should be. */
void telling_see(struct telling *t, const struct telling_view *v, bool differs, uint64_t now_ms);
/* How long a status that differs waits from now on; 0: not at all. */
uint64_t telling_wait_ms(const struct telling *t, const struct telling_view *v, uint64_t now_ms);
/* It is being written. */
void telling_done(struct telling *t, uint64_t now_ms);

#endif
