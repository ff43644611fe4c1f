/* volume_write: the files of a volume_content in a directory, changed all at once, as the kubelet does it:
 *
 *     DIR/..2026_11_16_09_30_00.123456/   the files
 *     DIR/..data -> ..2026_11_16_09_30_00.123456
 *     DIR/key    -> ..data/key            one link for each first part of a path
 *
 * A reader sees the old files or the new ones, never some of each; a write that is killed at any instant leaves the old
 * ones, and the next write clears up after it.
 *
 * Owns:     nothing after the call. Works on descriptors only. Blocks on the disk.
 * Used by:  volumes.c. One writer at a time for each directory.
 */
#ifndef SILICA_NODE_VOLUME_WRITE_H
#define SILICA_NODE_VOLUME_WRITE_H

#include "node/volume_content.h"

struct volume_owner {
    bool has_user, has_group; /* else ours */
    uid_t user;               /* of tokens: who runs in the Pod */
    gid_t group;              /* fsGroup: may read all, and enter the directories */
};

/* *ret_changed (or NULL): it was not so already. */
int volume_write(int dir_fd, const struct volume_content *content, const struct volume_owner *owner,
                 bool *ret_changed, struct err *e);

#endif
