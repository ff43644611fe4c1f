#include "isolate/program.h"

#include "base/fd.h"
#include "isolate/mounts.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define FIRST_BYTES 4096 /* of an ELF file: its headers, and the note that names the build */

static int fill(int fd, struct span bytes, struct err *e)
{
    if (fd_write_all(fd, bytes, e) < 0 || fd_seal_program(fd, e) < 0)
        return err_wrap(e, "silica-runtime in memory");
    return 0;
}

static int copy_file(int from_fd, int to_fd, struct err *e)
{
    off_t at = 0;
    ssize_t n;

    do
        n = sendfile(to_fd, from_fd, &at, 1 << 24);
    while (n > 0);
    if (n < 0)
        return err_sys(e, "cannot read silica-runtime");
    return fd_seal_program(to_fd, e) < 0 ? err_wrap(e, "silica-runtime in memory") : 0;
}

/* A file of another build, or one that others may write, is not the program. Who may replace it may replace the one that
 * runs now. */
static bool is_same(int fd, struct span bytes, struct stat *ret)
{
    uint8_t first[FIRST_BYTES];
    struct statvfs fs;

    return bytes.n >= sizeof first && fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) &&
           (ret->st_uid == 0 || ret->st_uid == geteuid()) && (ret->st_mode & 0777) == 0755 &&
           ret->st_size == (off_t)bytes.n && fstatvfs(fd, &fs) == 0 && !(fs.f_flag & ST_NOEXEC) &&
           pread(fd, first, sizeof first, 0) == (ssize_t)sizeof first &&
           memcmp(first, bytes.p, sizeof first) == 0;
}

static bool find(struct program *p, const struct box_spec *spec)
{
    OWN_FD int fd = -1;
    struct stat st;

    if (!spec->runtime_path || !spec->runtime.n)
        return false;
    fd = open(spec->runtime_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || !is_same(fd, spec->runtime, &st))
        return false;
    p->path = spec->runtime_path;
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    return true;
}

int program_begin(struct program *p, const struct box_spec *spec, struct err *e)
{
    p->bytes = spec->runtime;
    if (find(p, spec))
        return 0;
    if (!spec->runtime.n && fcntl(spec->runtime_fd, F_GET_SEALS) >= 0) {
        p->fd = spec->runtime_fd;
        return 0;
    }
    p->fd = p->own_fd = fd_open_program("silica-runtime", e);
    if (p->fd < 0)
        return -1;
    p->pending = spec->runtime;
    return spec->runtime.n ? 0 : copy_file(spec->runtime_fd, p->fd, e);
}

int program_finish(struct program *p, struct err *e)
{
    struct span bytes = p->pending;

    p->pending = SPAN_NONE;
    return bytes.n ? fill(p->fd, bytes, e) : 0;
}

void program_done(struct program *p)
{
    own_fd_close(&p->own_fd);
}

/* -1: it is not what it was, or not to be had in here. */
static int hold_file(const struct program *p)
{
    OWN_FD int fd = mounts_clone_tree(AT_FDCWD, p->path, 0);
    struct stat st;
    struct err ignored;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != p->dev || st.st_ino != p->ino ||
        mounts_restrict(fd, PLAN_RDONLY | PLAN_NODEV, &ignored) < 0)
        return -1;
    /* Over itself, in the root that is about to go: it goes with that. A mount that never had a place the kernel takes apart
     * by itself when the exec closes it, waiting for every processor once more. Where it cannot be, that is all. */
    (void)mounts_place(fd, AT_FDCWD, p->path);
    return take_fd(&fd);
}

int program_hold(const struct program *p, int *ret_fd, bool *ret_is_of_host, struct err *e)
{
    OWN_FD int fd = -1;

    *ret_is_of_host = false;
    if (p->fd >= 0) {
        *ret_fd = p->fd;
        return 0;
    }
    *ret_fd = hold_file(p);
    *ret_is_of_host = *ret_fd >= 0;
    if (*ret_is_of_host)
        return 0;
    fd = fd_open_program("silica-runtime", e);
    if (fd < 0 || fill(fd, p->bytes, e) < 0)
        return -1;
    *ret_fd = take_fd(&fd);
    return 0;
}
