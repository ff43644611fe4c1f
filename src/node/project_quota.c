#include "node/project_quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define LOCK_PATH   "/run/silica-projects.lock"
#define LIMIT_BLOCK 512 /* bytes, in xfs' words; ext4 takes the same */

/* ---- the file system ---- */

static long quota(int fd, unsigned cmd, uint32_t id, void *arg)
{
    return syscall(SYS_quotactl_fd, fd, QCMD(cmd, PRJQUOTA), id, arg);
}

static int read_id(int fd, uint32_t *ret)
{
    struct fsxattr x;

    if (ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
        return -1;
    *ret = x.fsx_projid;
    return 0;
}

static int write_id(int fd, uint32_t id)
{
    struct fsxattr x;

    if (ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
        return -1;
    x.fsx_projid = id;
    x.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    return ioctl(fd, FS_IOC_FSSETXATTR, &x);
}

static int read_files(int fd, uint32_t id, uint64_t *ret)
{
    struct fs_disk_quota q;

    if (quota(fd, Q_XGETQUOTA, id, &q) < 0) {
        *ret = 0;
        return errno == ENOENT || errno == ESRCH ? 0 : -1; /* never heard of */
    }
    *ret = q.d_icount;
    return 0;
}

static int write_limit(int fd, uint32_t id, uint64_t bytes)
{
    struct fs_disk_quota q = { .d_version = FS_DQUOT_VERSION,
                               .d_flags = FS_PROJ_QUOTA,
                               .d_fieldmask = FS_DQ_BHARD | FS_DQ_BSOFT,
                               .d_id = id,
                               .d_blk_hardlimit = bytes / LIMIT_BLOCK };

    return (int)quota(fd, Q_XSETQLIM, id, &q);
}

static bool is_enforced(int fd)
{
    struct fs_quota_statv s = { .qs_version = FS_QSTATV_VERSION1 };

    return quota(fd, Q_XGETQSTATV, 0, &s) == 0 && (s.qs_flags & FS_QUOTA_PDQ_ENFD);
}

static const struct project_ops kernel = { read_id, write_id, read_files, write_limit,
                                           is_enforced };

/* ---- an id ---- */

static bool is_ours(uint32_t id)
{
    return id >= PROJECT_FIRST && id - PROJECT_FIRST < PROJECT_COUNT;
}

static int check_empty(int dir_fd, struct err *e)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *d;
    bool is_empty = true;

    if (!dir) {
        (void)err_sys(e, "cannot read the directory");
        own_fd_close(&fd);
        return -1;
    }
    while (is_empty && (d = readdir(dir)))
        is_empty = strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0;
    (void)closedir(dir);
    return is_empty ? 0 : err_set(e, ERR_UNSUPPORTED, "it holds files already: it is measured");
}

/* The limit comes first: killed between the two, the directory is without an id and the id without a file. */
static int take_id(const struct project_ops *ops, int dir_fd, uint64_t bytes, struct err *e)
{
    static _Atomic uint32_t last; /* where to go on: what was taken before is mostly taken still */
    uint64_t files;

    for (uint32_t i = 1; i <= PROJECT_COUNT; i++) {
        uint32_t id = PROJECT_FIRST + (last + i) % PROJECT_COUNT;

        if (ops->read_files(dir_fd, id, &files) < 0)
            return err_sys(e, "cannot read a quota");
        if (files)
            continue;
        if (ops->write_limit(dir_fd, id, bytes) < 0 || ops->write_id(dir_fd, id) < 0)
            return err_sys(e, "cannot set a quota");
        last = id - PROJECT_FIRST;
        return 0;
    }
    return err_set(e, ERR_LIMIT, "no project id is left");
}

int project_quota_set_by(const struct project_ops *ops, int dir_fd, uint64_t bytes, struct err *e)
{
    OWN_FD int lock_fd = -1;
    uint32_t id;

    if (!ops->is_enforced(dir_fd) || ops->read_id(dir_fd, &id) < 0)
        return err_set(e, ERR_UNSUPPORTED, "this file system has no project quotas");
    if (is_ours(id))
        return ops->write_limit(dir_fd, id, bytes) < 0 ? err_sys(e, "cannot set a quota") : 0;
    if (id)
        return err_set(e, ERR_UNSUPPORTED, "it is of project %u, which is not ours", id);
    if (check_empty(dir_fd, e) < 0)
        return -1;
    lock_fd = open(LOCK_PATH, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock_fd < 0 || flock(lock_fd, LOCK_EX) < 0)
        return err_sys(e, "cannot lock '" LOCK_PATH "'");
    return take_id(ops, dir_fd, bytes, e);
}

int project_quota_set(int dir_fd, uint64_t bytes, struct err *e)
{
    if (geteuid() != 0)
        return err_set(e, ERR_UNSUPPORTED, "quotas are root's to set");
    return project_quota_set_by(&kernel, dir_fd, bytes, e);
}

bool project_quota_is_there(int dir_fd)
{
    return geteuid() == 0 && is_enforced(dir_fd);
}
