/* cgroup: the groups of one sandbox: limits, freezing, counting. Speaks v2, v1, and hosts that have some of each.
 *
 * Where:    below the caller's own cgroup, or a parent that was made there (cgroup_parent.h), in each hierarchy that is
 *           needed: an account that was handed a subtree and runs in it can use it, root always can. A v2 group is made
 *           wherever it may be, for freezing and killing: it costs next to nothing. v1 groups only for a limit.
 * v1:       moving another process into a group makes the kernel wait for all processors, 10 ms and more, in which forks
 *           of the whole machine wait too. A thread that moves itself does not: so the maker enters the groups, clones a
 *           child that is born in them, and leaves (cgroup_enter).
 * Owns:     the directories it made, until cgroup_done removes them.
 * Used by:  box.c.
 */
#ifndef SILICA_ISOLATE_CGROUP_H
#define SILICA_ISOLATE_CGROUP_H

#include "isolate/box.h"

#define CGROUP_PATH_MAX_BYTES 512

enum cgroup_kind {
    CGROUP_V2,
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_CPU,
    CGROUP_FREEZER,
    CGROUP_KINDS
};

/* The caller's own group in each hierarchy, as a directory; "" where the host has none. */
struct cgroup_host {
    char dirs[CGROUP_KINDS][CGROUP_PATH_MAX_BYTES];
};

struct cgroup {
    char dirs[CGROUP_KINDS][CGROUP_PATH_MAX_BYTES]; /* "" where none was made */
    bool is_v2[CGROUP_KINDS];                       /* a limit that stands in the v2 group */
};

/* Out of /proc/self/mountinfo and /proc/self/cgroup. */
const struct cgroup_host *cgroup_host(void);
void cgroup_host_parse(struct span mountinfo, struct span own, struct cgroup_host *ret);
/* Makes what the limits want, below the parent where that has a group; NULL: none. A limit that cannot be is added to
 * `missing` ("memory, cpu"), and *e says why the first could not; pids are not among them, because box.c has another way.
 * Never fails otherwise. *cg is empty, or has what cgroup_make_ahead made for the same limits. */
void cgroup_make(struct cgroup *cg, const struct cgroup *parent, const char *name,
                 const struct box_limits *limits, struct buf *missing, struct err *e);
/* The v1 groups of a sandbox that is not known yet, as far as they can be. */
void cgroup_make_ahead(struct cgroup *cg, const struct cgroup *parent,
                       const struct box_limits *limits);
/* Other limits for groups that are there. Those that have none, or where it cannot be written, are added to `missing`. */
void cgroup_limit(const struct cgroup *cg, const struct box_limits *limits, struct buf *missing,
                  struct err *e);
bool cgroup_limits_pids(const struct cgroup *cg);
/* For clone3: the v2 group, or -1. */
int cgroup_open_v2(const struct cgroup *cg);
/* The calling thread goes into the v1 groups, and those of the parent where it has none of its own: what it clones is born
 * there. False: it cannot, and is where it was; then cgroup_join. One thread of a process only. */
bool cgroup_enter(const struct cgroup *cg, const struct cgroup *parent);
/* Back into the groups it came from. */
void cgroup_leave(void);
/* Moves a process that was not born in them into the groups. Those of the parent as far as they are there: its keeper may have
 * ended meanwhile. */
int cgroup_join(const struct cgroup *cg, const struct cgroup *parent, pid_t pid, bool is_born_in_v2,
                bool is_born_in_v1, struct err *e);
/* ERR_UNSUPPORTED when there is no group that can freeze. Returns when all has stopped. */
int cgroup_freeze(const struct cgroup *cg, bool is_frozen, struct err *e);
/* False: no group of these can freeze. */
bool cgroup_is_frozen(const struct cgroup *cg, bool *ret);
bool cgroup_kill(const struct cgroup *cg);
/* What the groups know: the rest of *ret is untouched. */
void cgroup_stats(const struct cgroup *cg, struct box_stats *ret);
/* The kernel killed one of its processes because there was no more memory for them. While the groups are there. */
bool cgroup_ran_out(const struct cgroup *cg);
void cgroup_done(struct cgroup *cg);
/* The same without waiting: false when a group is still busy, and to be tried again. */
bool cgroup_remove(struct cgroup *cg);
/* Is this the path of a group that we made? Before one that was read from a file is written to. */
bool cgroup_is_ours(const char *dir);
/* Removes empty groups whose maker is dead, and those in groups of ours; returns how many. */
size_t cgroup_sweep(void);
/* The maker of these groups is dead. */
bool cgroup_is_stray(const struct cgroup *cg);

#endif
