/* ranged: work on files that belong to ids of an account's range: the account itself may neither remove nor give away what
 * its sandboxes left under another id than its own.
 *
 * Owns:     the namespace that ranged_check made, until the process ends.
 * Used by:  the node, for volumes of Pods. `silica doctor` and `silica node` ask whether there is a range.
 * Threads:  any, of a process with many too: the job is done by a copy of the process (fork) that has the calling thread only,
 *           so it may allocate, but must not wait for another thread. Blocks until it is done.
 */
#ifndef SILICA_ISOLATE_RANGED_H
#define SILICA_ISOLATE_RANGED_H

#include "base/err.h"

struct ranged_job {
    int (*fn)(void *ctx, struct err *e); /* 0, or -1 with *e */
    void *ctx;
    /* What of the caller's memory fn changes for the caller to see: this much comes back. NULL: nothing. */
    void *result;
    size_t result_n;
};

#define RANGED_RESULT_MAX_BYTES 4096

/* fn runs as id 0 of a user namespace with the account's range (userns.h), with every right over files of ids in it: it names
 * owners by their number inside. -1: what it says; or ERR_UNSUPPORTED, ERR_NOT_FOUND or ERR_DENIED and a hint where this
 * account has no range that can be had. */
int ranged_run(const struct ranged_job *job, struct err *e);
/* Can it be had? Tried, not guessed: newuidmap and newgidmap are run, and what they made is kept, so that ranged_run need not
 * run them again. Waits for children: while nobody else in this process does. */
int ranged_check(struct err *e);

#endif
