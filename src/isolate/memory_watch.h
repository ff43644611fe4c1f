/* memory_watch: where no cgroup limits the memory of sandboxes: when the machine has less left than they are to leave it, the
 * one that is most over its share is chosen, and ends before the machine runs out.
 *
 *     available (MemAvailable) < floor  ->  each one's memory  ->  who ends
 *
 * Owns:     nothing. Decisions are functions of figures.
 * Used by:  keeper_memory.c.
 */
#ifndef SILICA_ISOLATE_MEMORY_WATCH_H
#define SILICA_ISOLATE_MEMORY_WATCH_H

#include "base/buf.h"

#include <sys/types.h>

/* What one sandbox has, and may have. */
struct memory_use {
    uint64_t bytes, share;
};

/* Until the next look: before all that is left above the floor can be taken. */
uint64_t memory_watch_wait_ms(uint64_t available, uint64_t floor);
/* The one that is most over its share; when half of the floor is gone too, else the largest for its share. SIZE_MAX: none. */
size_t memory_watch_choose(const struct memory_use *v, size_t n, uint64_t available,
                           uint64_t floor);
/* MemAvailable out of /proc/meminfo. */
bool memory_watch_parse(struct span meminfo, uint64_t *ret_bytes);

/* What the processes below PID 1 and its writable root have in memory; pages that they share count once where the kernel lets us
 * see it. Walks all of them. */
uint64_t memory_watch_measure(pid_t pid);

#endif
