/* dirtree: directories of Pods on disk: made, counted, removed; always on descriptors, never through a link.
 *
 * Owns:     nothing after a call. Sandboxes write into these trees while we walk them, and try to lead us out of them.
 * Used by:  volumes.c. Blocks on the disk, as long as the tree is large: on a worker.
 */
#ifndef SILICA_NODE_DIRTREE_H
#define SILICA_NODE_DIRTREE_H

#include "base/buf.h"

#include <sys/types.h>

/* Directories held open on the way down. A deeper tree is counted only in part, and says so; removing moves what is deeper
 * up to the top first. */
#define DIRTREE_DEPTH_MAX   48
#define DIRTREE_ENTRIES_MAX 2000000 /* looked at in one count; then it is in part */

/* Opens the directory at a relative path below dir_fd, each part made with `mode` where it is missing; "" is dir_fd itself
 * again. No part may be a link or "..". */
int dirtree_open(int dir_fd, const char *path, mode_t mode, int *ret_fd, struct err *e);
/* The same without making anything. ERR_NOT_FOUND. */
int dirtree_find(int dir_fd, const char *path, int *ret_fd, struct err *e);

struct dirtree_count {
    uint64_t bytes;   /* on the disk: sparse files count what they take */
    uint64_t entries; /* the top not counted */
    bool is_partial;  /* too many, too deep, or a directory that cannot be read: there is more */
    bool is_cut;      /* a bound of the caller's was reached: there may be more */
};

struct dirtree_bounds {
    uint64_t entries;
    uint64_t until_ms; /* by the monotonic clock */
};

int dirtree_count(int dir_fd, struct dirtree_count *ret, struct err *e);
int dirtree_count_within(int dir_fd, const struct dirtree_bounds *bounds, struct dirtree_count *ret,
                         struct err *e);
/* `name` in dir_fd with all below it. It may be gone already. Directories that their owner made unreadable are made readable
 * first. The first failure ends it; what was removed is gone. */
int dirtree_remove(int dir_fd, const char *name, struct err *e);

#endif
