/* box_impl: what a box is made of, for box.c (its start) and box_life.c (the rest of its life). */
#ifndef SILICA_ISOLATE_BOX_IMPL_H
#define SILICA_ISOLATE_BOX_IMPL_H

#include "isolate/box.h"
#include "isolate/cgroup.h"
#include "isolate/limits.h"
#include "isolate/yard.h"

struct box {
    char *name;
    pid_t pid;
    int pidfd;
    int control_fd;  /* ours; -1 once taken */
    bool is_foreign; /* somebody else's child: its end can be seen, not its status */
    uint64_t
        start_ticks; /* of a foreign one that we made: it may end, and be reaped, before we look */
    bool is_reaped;
    bool is_paused;
    int status;
    struct yard *yard;
    int mounts_fd; /* of its mount namespace, which so outlives it: the yard takes it apart; or -1 */
    struct cgroup cgroup;
    uint32_t ids_base; /* the range of ids that is ours to give back; 0: none */
    struct buf unenforced;
};

#endif
