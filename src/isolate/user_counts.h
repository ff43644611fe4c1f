/* user_counts: what the kernel counts for each user, kept apart between a sandbox, other sandboxes and who made them.
 *
 * inotify instances and watches, queued signals and timers, locked shared memory and processes are counted for a user in a
 * user namespace, and again for the user who made that namespace, in the one above it. So without more all sandboxes and
 * their maker have one count. Three things keep them apart:
 *
 *   - the user namespace of root's sandbox is made as the first id of its range: it counts for that one, which is nobody
 *     else's (id_range.h), and not for root;
 *   - an account's sandbox has a quarter of what the host gives one user: by settings of its namespace, and by its resource limits;
 *   - all sandboxes of an account together have three quarters of it: by settings of the spawner's namespace, and by the
 *     limits that namespaces are made with, which the kernel compares with the count of who made them.
 *
 * What is counted for a uid and no namespace (pages of pipes, epoll watches, descriptors on their way through a socket) is
 * apart where ids are: for root's sandboxes. An account's share it with the account; of descriptors they have three quarters.
 *
 * Owns:     nothing.
 * Used by:  box.c and userns.c around the making of namespaces, plan.c, confine.c, spawner.c.
 * Errors:   what cannot be kept apart is left as it is: a maker without CAP_SETPCAP, a host without these counts.
 * Cost:     5 us for root's sandbox, 20 us for an account's.
 */
#ifndef SILICA_ISOLATE_USER_COUNTS_H
#define SILICA_ISOLATE_USER_COUNTS_H

#include "isolate/userns.h"

#include <sys/resource.h>

#define USER_COUNTS_LIMITS 2 /* resource limits that are counted by namespace, and lowered here */

enum user_count { USER_INOTIFY_INSTANCES, USER_INOTIFY_WATCHES, USER_COUNTS };

/* As it was before user_counts_begin. */
struct user_counts {
    struct rlimit limits[USER_COUNTS_LIMITS];
    bool is_lowered[USER_COUNTS_LIMITS];
    bool is_owner; /* the effective user is another */
    int securebits, death_signal;
};

/* Between these two this thread makes a user namespace for a sandbox, and nothing else. owner: of a namespace that is to be
 * another user's than ours, the first id of root's range; 0: ours. The process is not dumpable afterwards, with an owner. */
void user_counts_begin(struct user_counts *u, uint32_t owner);
void user_counts_end(const struct user_counts *u);

/* A setting below /proc/sys/user, and the most that a sandbox with these ids may have of each; 0: what the host gives a user,
 * since it counts for a user of its own, or the host does not say. */
const char *user_count_setting(enum user_count which);
void user_counts_of_sandbox(const struct ids *ids, uint64_t ret[USER_COUNTS]);

/* The limits of a sandbox's processes, by the process that becomes its first. */
int user_counts_limit(const struct ids *ids, struct err *e);
/* In the namespace above all sandboxes of an account. */
void user_counts_bound_engine(void);

#endif
