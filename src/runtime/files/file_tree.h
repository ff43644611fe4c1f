/* file_tree: every entry below a directory, within limits, never through a link.
 *
 * Owns:     nothing after the call. Two descriptors at a time, no recursion; the directories still to be
 *           entered are kept as texts, at most FILE_TREE_PENDING_MAX_BYTES.
 * Used by:  /glob and /grep. Blocking: on a worker.
 *
 * Trees can be larger than anyone wants to wait for: the walk stops at its deadline or after max_entries, and
 * says so in is_cut. Directories that cannot be read are passed over.
 */
#ifndef SILICA_RUNTIME_FILE_TREE_H
#define SILICA_RUNTIME_FILE_TREE_H

#include "runtime/files/path.h"

#define FILE_TREE_MAX_ENTRIES       2000000            /* looked at in one walk, then is_cut */
#define FILE_TREE_PENDING_MAX_BYTES (32 * 1024 * 1024) /* then is_cut */

struct file_tree_entry {
    int dir_fd;       /* the directory it is in, for openat; for the call only */
    const char *name; /* in there */
    const char *rel;  /* below the start */
    bool is_dir;
    bool is_link;
};
enum file_tree_step { FILE_TREE_ENTER, FILE_TREE_PASS, FILE_TREE_STOP };
/* FILE_TREE_ENTER only matters for directories; others are passed. */
typedef enum file_tree_step (*file_tree_fn)(void *ctx, const struct file_tree_entry *entry);

struct file_tree_limits {
    uint64_t deadline_ms; /* by time_mono_ms(); 0 is none */
    uint64_t max_entries;
};

/* `start_fd` is a directory, O_PATH will do. *ret_is_cut: not everything was seen, and each() did not stop it. */
int file_tree_walk(int start_fd, const struct file_tree_limits *limits, file_tree_fn each,
                   void *ctx, bool *ret_is_cut, struct err *e);

#endif
