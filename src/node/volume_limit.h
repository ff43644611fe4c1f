/* volume_limit: when a volume that was measured holds more than it may.
 *
 *     volume_limit_start (what it holds before its Pod runs) -> volume_limit_judge, each time it was measured
 *
 * Owns:     nothing. No I/O and no clock.
 * Used by:  disk_watch.c.
 * Rules:    a tenth more than its size is let pass: what is measured are blocks, directories too. What is more for a second, or
 *           twice the size at any time, is too much: a file that is written anew beside the old one is gone by then. A volume
 *           that holds more than its size when its Pod starts may shrink and may not grow.
 */
#ifndef SILICA_NODE_VOLUME_LIMIT_H
#define SILICA_NODE_VOLUME_LIMIT_H

#include "base/own.h"

#define VOLUME_NO_LIMIT UINT64_MAX

struct volume_limit {
    uint64_t limit; /* VOLUME_NO_LIMIT: any size is well */
    uint64_t
        allowed; /* the limit; or what it held at the start, less what went since, if that is more */
    uint64_t used;
    uint64_t over_ms; /* since when it holds too much; 0: it does not */
};

void volume_limit_start(struct volume_limit *v, uint64_t limit, uint64_t used);
/* True: its Pod is to end. now_ms is not 0. */
bool volume_limit_judge(struct volume_limit *v, uint64_t used, uint64_t now_ms);
/* So much can be written before it may be too much; UINT64_MAX: any. */
uint64_t volume_limit_room(const struct volume_limit *v);

#endif
