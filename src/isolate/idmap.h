/* idmap: root's trees shown with the sandbox's ids: what belongs to id 1000 on disk belongs to id 1000 inside, and what
 * is made inside by 1000 is 1000's on disk, though the sandbox's 1000 is another id on the host. As other container
 * programs have it, so a volume can be shared with them.
 *
 * Owns:     the trees it took hold of, until idmap_done.
 * Used by:  box.c before the clone, where the caller is root of the host: mapping a mount needs rights over the file
 *           system it is of, which the sandbox's first process does not have.
 */
#ifndef SILICA_ISOLATE_IDMAP_H
#define SILICA_ISOLATE_IDMAP_H

#include "isolate/plan.h"

struct idmap {
    int tree_fds[PLAN_ROWS_MAX]; /* -1: the child takes the tree as it is */
    size_t n;
};

/* Holds the plan's rows that are PLAN_IDMAP. One whose file system cannot be mapped, or that is not there, is left to the
 * child. */
int idmap_hold(struct idmap *m, const struct plan *plan, struct err *e);
void idmap_done(struct idmap *m);

#endif
