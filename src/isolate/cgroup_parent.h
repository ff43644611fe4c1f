/* cgroup_parent: the group above all sandboxes of one keeper: what they may take together.
 *
 *     its own cgroup / silica-PID-N-all / silica-PID-N-NAME    one for each sandbox (cgroup.h)
 *
 * Owns:     the groups, and DIR/limits.json, which says where they are: `silica run` joins them, `silica status` and the
 *           node read what holds. Made anew by each keeper; those of a keeper that was killed are swept (cgroup_sweep).
 * Used by:  keeper.c; node, cli/run.c and cli/status.c, which read.
 */
#ifndef SILICA_ISOLATE_CGROUP_PARENT_H
#define SILICA_ISOLATE_CGROUP_PARENT_H

#include "isolate/cgroup.h"
#include "isolate/dir.h"
#include "isolate/limits.h"

/* Of the machine's memory the keeper takes care instead (memory_watch.h). */
#define CGROUP_PARENT_WATCHED "memory, which is watched instead"

struct cgroup_parent {
    struct cgroup groups;
    struct box_limits limits;
    char unenforced[BOX_UNENFORCED_MAX_BYTES]; /* of the limits: "pids, memory"; "" when all hold */
};

/* has_nproc: processes are limited by the user namespace above all sandboxes. What cannot be made is no error. */
void cgroup_parent_make(struct cgroup_parent *p, const struct box_limits *limits, bool has_nproc);
int cgroup_parent_write(const struct cgroup_parent *p, int dir_fd, struct err *e);
/* ERR_NOT_FOUND: no keeper is there, or one of an older version. */
int cgroup_parent_read(int dir_fd, struct cgroup_parent *ret, struct err *e);
/* Other limits for a parent that a keeper made and keeps. */
void cgroup_parent_limit(struct cgroup_parent *p, const struct box_limits *limits);
/* When all in it have gone. What is still busy stays, for a sweep. */
void cgroup_parent_remove(struct cgroup_parent *p, int dir_fd);

#endif
