/* dir: the data directory of an owner's long-lived sandboxes, reached on descriptors.
 *
 *     DIR/             0700, the owner's
 *       engine.sock    the keeper listens here; keeper.lock: it lives; keeper.log, keeper.log.1: what it says
 *       limits.json    what all sandboxes may take together, and the groups that hold them to it (cgroup_parent.h)
 *       sandboxes/NAME/
 *         spec.json    what was asked for; there before the sandbox is
 *         state.json   its PID 1 and its cgroups; there as soon as it runs
 *         control.sock PID 1 serves it
 *         log, log.1   output of its main command (logfile.h)
 *         exit.json    how its main command ended
 *
 * Owns:     the two descriptors. Names of sandboxes are checked before they become names of files.
 * Used by:  keeper.c, the one writer; engine.c and sweep.c, which read, and clean up after a keeper that is dead.
 * Sockets:  are bound and connected through /proc/self/fd, so a deep directory does not meet the limit of their paths.
 */
#ifndef SILICA_ISOLATE_DIR_H
#define SILICA_ISOLATE_DIR_H

#include "base/buf.h"

#define DIR_SPEC    "spec.json"
#define DIR_STATE   "state.json"
#define DIR_EXIT    "exit.json"
#define DIR_CONTROL "control.sock"
#define DIR_LOG     "log"
#define DIR_OLD_LOG "log.1"
#define DIR_MESSAGE "message" /* the last words of its command, if it left any */

#define DIR_ENGINE         "engine.sock"
#define DIR_LOCK           "keeper.lock"
#define DIR_KEEPER_LOG     "keeper.log"
#define DIR_OLD_KEEPER_LOG "keeper.log.1"
#define DIR_LIMITS         "limits.json"

struct dir {
    int fd;       /* DIR */
    int boxes_fd; /* DIR/sandboxes */
};

/* clang-format off */
#define DIR_INIT { -1, -1 }
/* clang-format on */

/* --data or $SILICA_DATA as `given`, else $XDG_STATE_HOME/silica, for root /var/lib/silica. The caller frees it. */
int dir_default(const char *given, char **ret, struct err *e);
/* makes_it: with its parents, where they are missing; else ERR_NOT_FOUND. ERR_DENIED: it is another's, or others can
 * enter it. */
int dir_open(struct dir *d, const char *path, bool makes_it, struct err *e);
/* mkdir -p; what is missing becomes the owner's alone. */
int dir_make_path(const char *path, struct err *e);
void dir_done(struct dir *d);

/* Letters, digits, '.', '_' and '-', the first a letter or digit; BOX_NAME_MAX_BYTES at most. ERR_INVALID. */
int dir_check_name(const char *name, struct err *e);
/* ERR_EXISTS. */
int dir_make_box(const struct dir *d, const char *name, int *ret_fd, struct err *e);
/* ERR_NOT_FOUND. */
int dir_open_box(const struct dir *d, const char *name, int *ret_fd, struct err *e);
/* With the files we know; another file in it is not ours, and an error. It may be gone already. */
int dir_remove_box(const struct dir *d, const char *name, struct err *e);
/* Calls fn for each sandbox's name, in order of names; fn returns false to stop. */
int dir_each_box(const struct dir *d, bool (*fn)(void *ctx, const char *name), void *ctx,
                 struct err *e);

/* Whole or not at all. */
int dir_write(int fd, const char *file, struct span text, struct err *e);
int dir_read(int fd, const char *file, struct buf *text, struct err *e);
/* On the disk: the file and its name. */
int dir_sync(int fd, const char *file, struct err *e);

/* A listening socket; one that stands there already is replaced. type: SOCK_STREAM or SOCK_SEQPACKET. */
int dir_listen(int fd, const char *file, int type, int *ret_fd, struct err *e);
/* ERR_NOT_FOUND, ERR_UNAVAILABLE: nobody listens. */
int dir_connect(int fd, const char *file, int type, int *ret_fd, struct err *e);

#endif
