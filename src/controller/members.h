/* members: how many sandboxes of a pool are in which state, without a look at each of them.
 *
 * Owns:     nothing: the states are keys of an index of the sandboxes' copy, which counts what stands under a key.
 * Used by:  shared.c for the index; the reconciler of pools, which is woken by every claim.
 * Costs:    four look-ups, however large the pool is.
 */
#ifndef SILICA_CONTROLLER_MEMBERS_H
#define SILICA_CONTROLLER_MEMBERS_H

#include "kube/informer.h"

struct member_counts {
    size_t ready, unready; /* owned by the pool */
    size_t going;          /* owned by it, and on their way out */
    size_t
        odd; /* to be taken in: owned by nobody, or not saying how they were started; or ended. May count above too */
};

/* The keys of a sandbox that carries the label of a pool. */
void members_keys(struct informer_keys *out, const struct object *sandbox, const void *arg);
/* The pool that owns it; false: none does, or there is no sandbox. */
bool member_owner(const struct object *sandbox, struct object_owner *ret);
/* A sandbox changed in a way that pools count; NULL: it is new, or gone. */
bool members_differ(const struct object *was, const struct object *now);
struct member_counts members_count(const struct informer *sandboxes, size_t index,
                                   const struct object *pool);

#endif
