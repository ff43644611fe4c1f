#include "runtime/files/file_write.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>

/* A clash of 64 random bits means that someone is guessing; then EEXIST */
#define TEMP_TRIES     16
#define COPY_PIECE_MAX (1 << 20) /* between checks for signals; any large size does */

const struct file_write_how file_write_upload = { PATH_PYTHON, 0777, true, 0, false };
const struct file_write_how file_write_pydantic = { PATH_PYDANTIC, 0777, true, 0, false };

struct file_write_how file_write_put(mode_t mode)
{
    return (struct file_write_how){ PATH_SANDBOXD, 0755, false, mode, true };
}

const char *file_write_path(const struct file_write *w)
{
    return w->at.abs ? w->at.abs : "";
}

/* --- where the bytes go --- */

static int open_temp(struct file_write *w, mode_t mode)
{
    for (int i = 0; i < TEMP_TRIES; i++) {
        uint64_t random = 0;

        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
            return -1;
        snprintf(w->temp, sizeof w->temp, ".sandboxd-tmp-%016lx", random);
        w->fd =
            openat(w->at.dir_fd, w->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (w->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    w->temp[0] = '\0';
    return -1;
}

static void drop_temp(struct file_write *w)
{
    if (w->temp[0])
        (void)unlinkat(w->at.dir_fd, w->temp, 0);
    w->temp[0] = '\0';
}

/* The directory takes no new entry, but the file in it can be written. The bytes wait in a nameless file
 * elsewhere, so that a client that goes away leaves the old content alone. Without such a place there is only
 * the target itself, as the reference server does always. */
static int open_spool(struct file_write *w)
{
    static const char *const places[] = { "/tmp", "/dev/shm", "/var/tmp" };

    w->is_in_place = true;
    EACH(place, places) {
        w->fd = open(*place, O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);
        if (w->fd >= 0)
            return 0;
    }
    w->fd = take_fd(&w->target_fd);
    return ftruncate(w->fd, 0);
}

/* Opens the existing target for writing: the reference writes into it, so a file that may not be written is an
 * error although rename could replace it. A program being run cannot be written but can be replaced. */
static int open_target(struct file_write *w, struct err *e)
{
    struct stat st;

    if (!S_ISREG(w->at.st.st_mode))
        return err_errno(e, ENXIO, "cannot write '%s'", w->at.abs);
    w->target_fd = openat(w->at.dir_fd, w->at.name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (w->target_fd < 0 && errno != ETXTBSY && errno != ENOENT)
        return err_sys(e, "cannot write '%s'", w->at.abs);
    if (w->target_fd < 0)
        return 0;
    if (fstat(w->target_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_errno(e, ENXIO, "cannot write '%s'", w->at.abs);
    w->at.st = st; /* of what is really open */
    return 0;
}

static bool has_owner_of_target(const struct file_write *w)
{
    struct stat st;

    return fstat(w->fd, &st) == 0 && st.st_uid == w->at.st.st_uid && st.st_gid == w->at.st.st_gid;
}

/* The new inode looks like the old one, or the old one is kept. For uid 0 of a sandbox the call succeeds without effect. */
static void keep_owner(struct file_write *w)
{
    if (has_owner_of_target(w))
        return;
    if (fchown(w->fd, w->at.st.st_uid, w->at.st.st_gid) < 0 || !has_owner_of_target(w))
        w->is_in_place = w->target_fd >= 0;
}

static bool is_refused(int sys)
{
    return sys == EACCES || sys == EPERM || sys == EROFS;
}

int file_write_begin(struct file_write *w, const struct path_root *root, struct span path,
                     const struct file_write_how *how, struct err *e)
{
    mode_t create = how->in_place ? 0666 : 0600;

    w->how = *how;
    if (path_resolve(root, how->rules, path, 0, &w->at, e) < 0)
        return -1;
    if (w->at.is_root || (w->at.exists && S_ISDIR(w->at.st.st_mode)))
        return err_errno(e, EISDIR, "cannot write '%s'", w->at.abs);
    if (w->at.has_parent && !w->at.exists && w->at.sys != ENOENT)
        return err_errno(e, w->at.sys, "cannot write '%s'", w->at.abs);
    if (path_make_parents(&w->at, how->parent_mode, e) < 0)
        return -1;
    if (how->in_place && w->at.exists && open_target(w, e) < 0)
        return -1;
    if (w->target_fd >= 0 || (how->in_place && w->at.exists))
        create = 0600; /* nobody may read more than the old mode allows; commit sets that */
    if (open_temp(w, create) < 0) {
        int sys = errno;

        if (w->target_fd < 0 || !is_refused(sys) || open_spool(w) < 0)
            return err_errno(e, sys, "cannot write '%s'", w->at.abs);
        return 0;
    }
    if (how->in_place && w->at.exists)
        keep_owner(w);
    return 0;
}

int file_write_add(struct file_write *w, struct span bytes, struct err *e)
{
    if (fd_write_all(w->fd, bytes, e) < 0)
        return err_wrap(e, "cannot write '%s'", w->at.abs);
    w->size += bytes.n;
    return 0;
}

/* --- commit --- */

static int copy_bytes(int from, int to, uint64_t left)
{
    off_t in = 0, out = 0;

    while (left) {
        char piece[16384];
        size_t want = (size_t)MIN(left, (uint64_t)COPY_PIECE_MAX);
        ssize_t n = copy_file_range(from, &in, to, &out, want, 0);

        /* Older kernels refuse across file systems, some file systems always. */
        if (n < 0 && errno != EINTR && errno != ENOSPC && errno != EDQUOT && errno != EFBIG &&
            errno != EIO) {
            n = pread(from, piece, MIN(want, sizeof piece), in);
            if (n > 0)
                n = pwrite(to, piece, (size_t)n, out);
            in += MAX(n, 0);
            out += MAX(n, 0);
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        left -= (uint64_t)n;
    }
    return 0;
}

static int copy_over_target(struct file_write *w, struct err *e)
{
    if (w->target_fd >= 0) {
        if (w->size && fallocate(w->target_fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)w->size) < 0 &&
            errno == ENOSPC)
            return err_sys(e, "cannot write '%s'", w->at.abs);
        errno = EIO; /* if the spool comes out shorter than it went in */
        if (copy_bytes(w->fd, w->target_fd, w->size) < 0 ||
            ftruncate(w->target_fd, (off_t)w->size) < 0)
            return err_sys(e, "cannot write '%s'", w->at.abs);
    }
    if (w->how.sync && fsync(w->target_fd >= 0 ? w->target_fd : w->fd) < 0)
        return err_sys(e, "cannot write '%s' to disk", w->at.abs);
    drop_temp(w);
    return 0;
}

/* Set-id bits are not carried over: writing to the old file would have cleared them. */
static int set_mode(struct file_write *w)
{
    if (!w->how.in_place)
        return fchmod(w->fd, w->how.mode);
    return w->at.exists ? fchmod(w->fd, w->at.st.st_mode & 0777) : 0;
}

int file_write_commit(struct file_write *w, struct err *e)
{
    if (w->is_in_place)
        return copy_over_target(w, e);
    if (set_mode(w) < 0)
        return err_sys(e, "cannot set the mode of '%s'", w->at.abs);
    if (w->how.sync && fsync(w->fd) < 0)
        return err_sys(e, "cannot write '%s' to disk", w->at.abs);
    if (renameat(w->at.dir_fd, w->temp, w->at.dir_fd, w->at.name) == 0) {
        w->temp[0] = '\0';
        return 0;
    }
    /* EBUSY: a mount point, as bind-mounted files are. EPERM: a sticky directory, and the target is another's. */
    if (w->target_fd >= 0 && (errno == EBUSY || is_refused(errno)))
        return copy_over_target(w, e);
    return err_sys(e, "cannot replace '%s'", w->at.abs);
}

void file_write_done(struct file_write *w)
{
    drop_temp(w);
    own_fd_close(&w->fd);
    own_fd_close(&w->target_fd);
    path_at_done(&w->at);
}
