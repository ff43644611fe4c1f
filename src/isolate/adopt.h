/* adopt: a box that somebody else started: what has to be remembered of it, and how it is taken up again.
 *
 * Owns:     nothing. An adopted box is ended with box_kill and box_release, or left alone with box_release; box_free
 *           would kill it. Its exit status is its parent's to know.
 * Used by:  spawner.c, which describes; keeper.c and engine.c, which adopt. Any process of the same account.
 */
#ifndef SILICA_ISOLATE_ADOPT_H
#define SILICA_ISOLATE_ADOPT_H

#include "isolate/cgroup.h"
#include "isolate/limits.h"

/* No pointer inside: it crosses sockets as bytes. */
struct box_record {
    char name[BOX_NAME_MAX_BYTES + 1];
    pid_t pid;            /* PID 1, as the host numbers it */
    uint64_t start_ticks; /* when it began: pids come round again */
    struct cgroup cgroup;
};

int box_describe(const struct box *b, struct box_record *ret, struct err *e);
/* ERR_CLOSED: it has ended. */
int box_adopt(const struct box_record *r, struct box **ret, struct err *e);

#endif
