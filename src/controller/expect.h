/* expect: what a pool has asked for and not yet seen: without it, a pass on a copy that lags would ask again.
 *
 * Owns:     the uids of what is to go. One for each pool, in its reconciler.
 * Rules:    a creation is expected before it is asked for, and lowered when it is seen or has failed. A deletion is expected
 *           by its uid. What has not been seen EXPECT_MAX_MS after the last wish is waited for no more.
 * Clock:    the caller's, one that never goes back.
 */
#ifndef SILICA_CONTROLLER_EXPECT_H
#define SILICA_CONTROLLER_EXPECT_H

#include "base/own.h"

#define EXPECT_MAX_MS                                                                              \
    (5 * 60 * 1000) /* as the public controller: a lost event must not stop a pool for ever */

struct expect {
    size_t creates;
    char **going; /* uids */
    size_t going_count, going_cap;
    uint64_t raised_ms;
};

void expect_done(struct expect *x);
/* All was seen, or it is too long ago. */
bool expect_is_met(const struct expect *x, uint64_t now_ms);
/* If all was seen, n creations are expected from now on. False: not so, or n is 0. */
bool expect_creates(struct expect *x, size_t n, uint64_t now_ms);
/* So many were seen, or failed. */
void expect_created(struct expect *x, size_t n);
/* An empty uid is none. */
void expect_delete(struct expect *x, const char *uid, uint64_t now_ms);
/* It was seen to go, or its delete failed. Others' uids are nothing. */
void expect_deleted(struct expect *x, const char *uid);
bool expect_is_going(const struct expect *x, const char *uid);

#endif
