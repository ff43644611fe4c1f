/* candidates: the members of pools that a claim may take, each at most once.
 *
 * Owns:     one entry for each sandbox that a pool owns and nobody has claimed. Fed by what is seen of sandboxes; rebuilt from
 *           the copy at a start.
 * Order:    ready ones first, then those with an address; among them one of the node that has most, so that nodes wear evenly,
 *           and on it the one that waits longest.
 * Taken:    an entry that was taken is nobody else's until it is released, or seen to be no candidate any more.
 * Costs:    O(1) for each sandbox that is seen; a take is linear in the nodes of the pool.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_CANDIDATES_H
#define SILICA_CONTROLLER_CANDIDATES_H

#include "kube/object.h"

struct candidates;

/* wake: a claim that waits may find one now; it waits no longer. May come from within candidates_see and _release. */
typedef void (*candidates_wake_fn)(void *ctx, const char *namespace, const char *claim);

struct candidates *candidates_new(candidates_wake_fn wake, void *ctx);
void candidates_free(struct candidates *c);

/* Owned by a pool, labelled as one of its own, and not on its way out. */
bool candidate_is_adoptable(const struct object *sandbox);

/* The sandbox is as this; or it is gone. */
void candidates_see(struct candidates *c, const struct object *sandbox);
void candidates_forget(struct candidates *c, const char *namespace, const char *name);

/* The best one of a pool; NULL: there is none. The name lives until the entry is forgotten or released. */
const char *candidates_take(struct candidates *c, const char *namespace, const char *pool);
/* Gives it back: `sandbox` as it is now, NULL when it is gone. */
void candidates_release(struct candidates *c, const char *namespace, const char *name,
                        const struct object *sandbox);
/* The claim is woken when a member of the pool can be taken, or when none is left that could become one; first come, first
 * served. There must be one that has no address yet. */
void candidates_wait(struct candidates *c, const char *namespace, const char *pool,
                     const char *claim);
/* It does not wait (any more). */
void candidates_unwait(struct candidates *c, const char *namespace, const char *claim);
/* Members of the pool that have no address yet. */
size_t candidates_pending(const struct candidates *c, const char *namespace, const char *pool);

#endif
