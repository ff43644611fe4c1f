/* ground: an empty mount namespace in which root's sandboxes are born, made once for all of them.
 *
 * A clone copies all that its maker has mounted, and a sandbox has to get rid of it again. pivot_root, which does that,
 * looks at every task of the machine: with 5,000 sandboxes it takes as long as all the rest of one. On the ground there is
 * nothing to get rid of. The new root is mounted over the ground's and entered, as a machine's root is over its first one
 * when it starts; what is below is one empty directory, read-only, of nobody inside, and no path leads there: the root that
 * a process has is the uppermost one of its namespace, as after pivot_root.
 *
 * The kernel gives a user namespace its own proc only where one is seen in full already. So each sandbox is handed a copy of
 * a lens, a proc to put on the ground, and takes it away again before a stranger's code runs.
 *
 * Owns:     the namespace and the lens.
 * Used by:  yard.c, which makes it and hands it out; box.c, which has a sandbox born there; mounts.c, which builds on it.
 * Rights:   of one who may enter the mount namespace it left. Others, and on older kernels, go by pivot_root.
 */
#ifndef SILICA_ISOLATE_GROUND_H
#define SILICA_ISOLATE_GROUND_H

#include "base/err.h"
#include "isolate/plan.h"

#define GROUND_LENS "/proc" /* where a sandbox puts it, on the ground */

struct ground {
    int mounts_fd; /* of the namespace */
    int lens_fd;   /* both, or both -1 */
};

/* clang-format off */
#define GROUND_INIT { -1, -1 }
/* clang-format on */

/* The mount namespace we are in, for ground_go_home: the caller's to close. -1: there is no way back to it as we are, with
 * the root that we have. */
int ground_find_home(void);
/* The working directory is the root then. */
void ground_go_home(int home_fd);

/* From a process with one thread; it comes back. ret is the caller's to be done with. */
int ground_make(struct ground *ret, struct err *e);
void ground_done(struct ground *g);
struct mounts;
/* From a process that is in a mount namespace of its own and may not come back: m->root_fd becomes all that is in it.
 * *ret_fd is the namespace, the caller's to close. */
int ground_clear(struct mounts *m, int *ret_fd, struct err *e);
/* What of the plan's trees nobody holds yet, in tree_fds, one for each row: on the ground there are no paths of the host's.
 * False: one cannot be held; the child will say why. */
bool ground_hold(const struct plan *plan, int *tree_fds);

#endif
