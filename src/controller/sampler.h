/* sampler: where this process spends its time: stacks, taken a hundred times a second by a signal while somebody asks.
 *
 *     sampler_start(SAMPLER_CPU, e) ... sampler_stop(&samples); SAMPLES: samples.stacks[i].addresses
 *
 * Owns:     the signal's handler and the table of stacks, from start to stop; one at a time in a process. Nothing runs and
 *           nothing is held otherwise.
 * Signals:  the handler unwinds and counts in a table that was made before; it allocates nothing. A sample that finds the table
 *           in use by another thread, or full, is only counted as lost.
 * Used by:  the diagnostics of `silica controller`.
 */
#ifndef SILICA_CONTROLLER_SAMPLER_H
#define SILICA_CONTROLLER_SAMPLER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define SAMPLER_HZ     100
#define SAMPLER_DEPTH  48
#define SAMPLER_STACKS 4096 /* different ones; 1.6 MiB while it runs */

enum sampler_clock {
    SAMPLER_CPU,  /* of all threads */
    SAMPLER_WALL, /* also while it waits */
};

struct sampler_stack {
    uint32_t count, depth;
    uintptr_t addresses[SAMPLER_DEPTH]; /* innermost first; of callers: behind the call */
};

struct samples {
    struct sampler_stack *stacks; /* the caller's to free; those with count 0 are empty */
    uint64_t lost;
};

/* ERR_BUSY: one runs already. */
int sampler_start(enum sampler_clock clock, struct err *e);
void sampler_stop(struct samples *ret);

#endif
