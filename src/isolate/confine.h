/* confine: what a process gives up before it runs a stranger's code: groups and ids, capabilities, the right to gain
 * any, paths (Landlock), system calls (seccomp).
 *
 * Owns:     nothing.
 * Used by:  inside.c, which knows the order: each step needs a right that a later one drops. None can be undone.
 * Threads:  all but the limits are the calling thread's own, and become the process's with its exec.
 * Landlock: ABI 2 at least (Linux 5.19): before it renames between directories fail. Where the kernel has none, or it is
 *           off, the sandbox runs without: its mounts say the same. confine_landlock_abi tells.
 */
#ifndef SILICA_ISOLATE_CONFINE_H
#define SILICA_ISOLATE_CONFINE_H

#include "isolate/plan.h"

#define CONFINE_LANDLOCK_FLOOR 2

int confine_landlock_abi(void); /* 0: none */
int confine_limits(const struct plan *plan, struct err *e);
/* program_fd: a file of the host that is still to be executed, or -1. */
int confine_paths(const struct plan *plan, int program_fd, struct err *e);
/* No exec gives capabilities back: not to uid 0, not by a file's, not by asking for ambient ones. */
int confine_future(struct err *e);
int confine_ids(const struct ids *ids, struct err *e);
int confine_capabilities(struct err *e);
int confine_calls(const struct plan *plan, struct err *e);

#endif
