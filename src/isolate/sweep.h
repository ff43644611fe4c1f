/* sweep: what a killed keeper leaves: sandboxes that are ending or have ended, their cgroups, sockets and directories.
 *
 * Owns:     nothing. The caller holds the lock of the directory: nobody else makes sandboxes in it meanwhile.
 * Used by:  keeper.c when it starts; `silica doctor --clean`.
 */
#ifndef SILICA_ISOLATE_SWEEP_H
#define SILICA_ISOLATE_SWEEP_H

#include "isolate/dir.h"

struct sweep_count {
    size_t killed;  /* were still alive */
    size_t lost;    /* kept ones whose end is now on record */
    size_t removed; /* the others: nothing of them is left */
};

void sweep(const struct dir *d, struct sweep_count *ret);

#endif
