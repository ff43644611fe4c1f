/* cgroup_spare: the v1 groups of the next sandbox, made while nobody waits for one, with its maker in them already.
 *
 * Owns:     at most one set of groups, with limits as the last sandbox had them: the next usually has the same.
 * Used by:  spawner.c makes them in a lull; box.c takes them.
 * Forks:    what the maker clones between cgroup_spare_make and the next sandbox is born in that one's groups.
 */
#ifndef SILICA_ISOLATE_CGROUP_SPARE_H
#define SILICA_ISOLATE_CGROUP_SPARE_H

#include "isolate/cgroup.h"

/* Zeroed is empty. */
struct cgroup_spare {
    bool is_ready, is_wanted;
    struct cgroup groups;
    struct box_limits limits;
};

/* False: there are none for limits of these kinds, and the next will be for them. */
bool cgroup_spare_take(struct cgroup_spare *s, const struct box_limits *limits, struct cgroup *ret);
/* Whether one was asked for and none is there. */
bool cgroup_spare_is_wanted(const struct cgroup_spare *s);
/* Makes the groups and enters them. */
void cgroup_spare_make(struct cgroup_spare *s, const struct cgroup *parent);
/* Leaves and removes them. */
void cgroup_spare_done(struct cgroup_spare *s);

#endif
