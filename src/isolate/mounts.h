/* mounts: walks the rows of a plan in the child, and makes what they build the root.
 *
 * Owns:     the descriptors of trees it took hold of, until they stand in their place.
 * Used by:  inside.c only: in a process of its own user and mount namespaces, with no way back.
 *           Every step has a descriptor of the new root to start from; paths are resolved below it, whatever links
 *           a caller's tree may hold.
 */
#ifndef SILICA_ISOLATE_MOUNTS_H
#define SILICA_ISOLATE_MOUNTS_H

#include "isolate/frame.h"
#include "isolate/plan.h"

struct mounts {
    const struct plan *plan;
    int root_fd;
    int tree_fds
        [PLAN_ROWS_MAX]; /* of bind rows; -1 for the rest, and for an optional one that is not there */
    bool is_dir[PLAN_ROWS_MAX]; /* or a file, of those that are there */
    struct frame frame;         /* of a plan that has one */
    bool is_on_ground;          /* what is there already is empty, and stays (ground.h) */
};

/* A copy of the tree at a path, mounted nowhere: its descriptor, or -1 with errno. */
int mounts_clone_tree(int dir_fd, const char *path, unsigned flags);
/* The same of what a bind row shows. */
int mounts_clone_row(const struct plan_row *row);
/* Gives such a copy its place: name below target_fd, or target_fd itself for "". -1 with errno. */
int mounts_place(int tree_fd, int target_fd, const char *name);
/* Only ever adds restrictions (enum plan_flag): in a user namespace those of the host's mounts are locked anyway. */
int mounts_restrict(int tree_fd, unsigned flags, struct err *e);
/* A copy of what a bind row shows, restricted as it says, taken by the parent for the child: its descriptor, or -1. map_fd: with
 * ids as this user namespace has them; -1: as they are. */
int mounts_hold_row(const struct plan_row *row, int map_fd);
/* Makes the mount itself read-only, and none that is below it. -1 with errno. */
int mounts_seal(int tree_fd);

/* The proc of our PID namespace, mounted nowhere: its descriptor. */
int mounts_make_proc(struct err *e);
/* An empty one as the row says, mounted nowhere. */
int mounts_make_tmpfs(const struct plan_row *row, struct err *e);
/* A tree that stays mounted nowhere, m->root_fd, by a plan whose rows stand in order. The caller's to close; in this
 * process nothing else is changed. */
int mounts_build_loose(struct mounts *m, const struct plan *plan, struct err *e);

/* Takes the frame; with a lens in it we are on the ground. */
int mounts_init(struct mounts *m, const struct plan *plan, struct frame *frame, struct err *e);
/* As the caller: only the caller's own rights decide what can be shown inside. held_fds has the trees that the parent
 * took hold of, -1 for the others; NULL: it took none. */
int mounts_hold(struct mounts *m, const int *held_fds, struct err *e);
/* As the id that owns the new root: the root and its directories. Nothing is needed that is held: another thread may hold
 * meanwhile. */
int mounts_build_dirs(struct mounts *m, struct err *e);
/* With the directories: small files and links, while another thread builds the frame. */
int mounts_build_files(struct mounts *m, struct err *e);
/* With the directories: file systems of the sandbox's own. */
int mounts_build_frame(struct mounts *m, struct err *e);
/* What is held finds its place. */
int mounts_build_held(struct mounts *m, struct err *e);
/* With files and frame, and when all is held: the new root becomes the root, of every thread of the process, and the working
 * directory. */
int mounts_enter(const struct mounts *m, struct err *e);
/* And then the only one, or on the ground the only one with anything in it. The kernel waits for every processor here; what
 * goes on meanwhile is not held up. */
int mounts_drop_old(struct mounts *m, struct err *e);
/* In the new root, with it as the working directory: what covers other mounts, and the caller's. */
int mounts_build_last(struct mounts *m, struct err *e);

#endif
