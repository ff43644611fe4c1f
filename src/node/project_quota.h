/* project_quota: a directory that the file system itself holds to a size: what is more says "No space left" to who writes it.
 *
 *     project_quota_set: an empty directory is given an id of its own, or one that has such an id another size
 *
 * Where:    ext4 and xfs that are mounted with prjquota, for root. Elsewhere ERR_UNSUPPORTED: volumes are measured (disk_watch.h),
 *           which goes on where there are quotas too.
 * Ids:      are taken, not computed: the first of our range of which the file system counts no file. The directory counts from the
 *           moment it has the id, so nothing else has to be written down, and nothing given back: a daemon that is killed halfway
 *           leaves a limit of an id that counts nothing. Daemons on one machine take turns by a lock. What is made in the
 *           directory inherits the id; a sandbox cannot change it, as it is in a user namespace of its own.
 * Not:      a directory that holds files already: they would have to be opened one by one, while a sandbox changes them.
 *
 * Owns:     nothing.
 * Used by:  volumes.c, on a worker; `silica status` asks whether there are any.
 */
#ifndef SILICA_NODE_PROJECT_QUOTA_H
#define SILICA_NODE_PROJECT_QUOTA_H

#include "base/err.h"

#define PROJECT_FIRST 0x51000000u
#define PROJECT_COUNT 0x01000000u

/* dir_fd is open for reading. */
int project_quota_set(int dir_fd, uint64_t bytes, struct err *e);
/* Can it be had on the file system of that directory? */
bool project_quota_is_there(int dir_fd);

/* What the file system is asked, for tests. -1 with errno. */
struct project_ops {
    int (*read_id)(int fd, uint32_t *ret);
    int (*write_id)(int fd, uint32_t id);                  /* and what is made below inherits it */
    int (*read_files)(int fd, uint32_t id, uint64_t *ret); /* that the id counts */
    int (*write_limit)(int fd, uint32_t id, uint64_t bytes);
    bool (*is_enforced)(int fd);
};
int project_quota_set_by(const struct project_ops *ops, int dir_fd, uint64_t bytes, struct err *e);

#endif
