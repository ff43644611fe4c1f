/* cellar: volumes that are memory: a tmpfs of its own size for each, in a mount namespace that holds nothing else.
 *
 * Nobody is in that namespace, and no path of the host leads there. It lives as long as its descriptor, which is the
 * keeper's: a volume outlives the sandboxes that use it, the spawner and whoever asked for it, and goes with the keeper,
 * as they all do. An account makes it in its engine's user namespace, so it needs no rights on the host.
 *
 *     cellar_open -> cellar_make each volume -> cellar_hold for each sandbox -> cellar_drop
 *
 * Owns:     nothing but what is mounted there. Pages are charged to the cgroup of the sandbox that writes them.
 * Used by:  keeper.c, which opens it; engine.c, which makes and drops; box.c, which holds. Each goes in by a process that
 *           runs in its maker's memory and comes back with nothing but descriptors; so from any thread, and it blocks.
 */
#ifndef SILICA_ISOLATE_CELLAR_H
#define SILICA_ISOLATE_CELLAR_H

#include "isolate/plan.h"

#define CELLAR_NAME_MAX_BYTES 200

struct cellar_volume {
    const char *name; /* one part of a path */
    uint64_t bytes;
    bool has_group;
    gid_t group; /* for root: what is made in it is this group's, too */
};

/* engine_fd: an account's user namespace, or -1 for root. The namespace's descriptor; the caller's. */
int cellar_open(int engine_fd, struct err *e);
/* One that is there stays as it is. */
int cellar_make(int cellar_fd, const struct cellar_volume *v, struct err *e);
/* The trees of the plan's rows that are memory, in tree_fds, one for each row. ERR_NOT_FOUND: there is no such volume. */
int cellar_hold(int cellar_fd, const struct plan *plan, int *tree_fds, struct err *e);
/* All whose name begins so. What a sandbox still has of one goes with that sandbox. */
int cellar_drop(int cellar_fd, const char *prefix, struct err *e);
/* How many there are. */
int cellar_count(int cellar_fd, size_t *ret, struct err *e);

#endif
