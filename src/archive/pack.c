#include "archive/pack.h"

#include "archive/limits.h"
#include "archive/tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

struct level {
    DIR *dir;
    size_t path_n; /* of this directory in p->path */
};

struct pack {
    struct level levels[ARCHIVE_DEPTH_MAX];
    size_t depth;
    struct buf path; /* of the entry at hand, as the archive has it */
    int fd;          /* the file being read, or -1 */
    uint64_t size, left;
    struct buf first; /* the head of the start, until the first pack_read */
    bool is_over;
    struct archive_counts counts;
};

/* ---- names ---- */

static struct span without_slashes(const char *path)
{
    struct span s = span_cstr(path);

    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    return s;
}

struct span pack_top(const char *path)
{
    struct span s = without_slashes(path);

    for (size_t i = s.n; i-- > 0;)
        if (s.p[i] == '/') {
            s = span_skip(s, i + 1);
            break;
        }
    return !s.n || span_is(s, "..") ? SPAN(".") : s;
}

/* The directory that the last component of the path is in, and that component. */
static int open_parent(const char *path, struct buf *name, struct err *e)
{
    struct span all = without_slashes(path), top = pack_top(path);
    OWN(buf_done) struct buf dir = BUF_INIT(ARCHIVE_PATH_MAX_BYTES);
    bool is_followed = span_is(top, ".") || path[all.n] == '/';
    int fd;

    /* A slash behind it means the directory it leads to. */
    if (buf_add(name, is_followed ? SPAN(".") : top, e) < 0 ||
        buf_add(&dir, is_followed ? all : span_slice(all, 0, all.n - top.n), e) < 0)
        return -1;
    /* by path: the caller's own word; all below it is by descriptor. */
    fd = open(dir.n ? buf_cstr(&dir) : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot read '%s'", path);
    return fd;
}

/* ---- entries ---- */

static int add_head(struct pack *p, struct buf *out, const struct stat *st, const char *target,
                    struct err *e)
{
    struct tar_entry entry = {
        .kind = S_ISDIR(st->st_mode)   ? TAR_DIR
                : S_ISLNK(st->st_mode) ? TAR_LINK
                                       : TAR_FILE,
        .path = buf_cstr(&p->path),
        .target = target,
        .mode = st->st_mode & 07777,
        .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
        .mtime = st->st_mtime,
    };

    p->counts.entries++;
    return tar_add_head(out, &entry, e);
}

static int cannot_read(const struct pack *p, struct err *e)
{
    return err_sys(e, "cannot read '%s'", buf_cstr(&p->path));
}

static int enter(struct pack *p, int dir_fd, const char *name, struct buf *out, struct err *e)
{
    OWN_FD int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct level *l = &p->levels[p->depth];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return cannot_read(p, e);
    if (p->depth == ARCHIVE_DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "'%s' is more than %d directories deep", buf_cstr(&p->path),
                       ARCHIVE_DEPTH_MAX);
    l->dir = fdopendir(fd);
    if (!l->dir)
        return cannot_read(p, e);
    (void)take_fd(&fd);
    l->path_n = p->path.n;
    p->depth++;
    return add_head(p, out, &st, "", e);
}

static int begin_file(struct pack *p, int dir_fd, const char *name, struct buf *out, struct err *e)
{
    /* Non-blocking: what was a file a moment ago may be a pipe that nobody writes to. */
    OWN_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return cannot_read(p, e);
    if (!S_ISREG(st.st_mode)) {
        p->counts.passed_over++;
        return 0;
    }
    if (add_head(p, out, &st, "", e) < 0)
        return -1;
    p->size = p->left = (uint64_t)st.st_size;
    if (p->left)
        p->fd = take_fd(&fd);
    return 0;
}

static int add_link(struct pack *p, int dir_fd, const char *name, const struct stat *st,
                    struct buf *out, struct err *e)
{
    char target[ARCHIVE_PATH_MAX_BYTES + 1];
    ssize_t n = readlinkat(dir_fd, name, target, sizeof target);

    if (n < 0)
        return cannot_read(p, e);
    if ((size_t)n == sizeof target)
        return err_set(e, ERR_LIMIT, "the link '%s' is too long", buf_cstr(&p->path));
    target[n] = '\0';
    return add_head(p, out, st, target, e);
}

static int add_entry(struct pack *p, int dir_fd, const char *name, struct buf *out, struct err *e)
{
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return cannot_read(p, e);
    if (S_ISDIR(st.st_mode))
        return enter(p, dir_fd, name, out, e);
    if (S_ISREG(st.st_mode))
        return begin_file(p, dir_fd, name, out, e);
    if (S_ISLNK(st.st_mode))
        return add_link(p, dir_fd, name, &st, out, e);
    p->counts.passed_over++;
    return 0;
}

static void drop(struct pack **p)
{
    pack_free(*p);
}

int pack_open(const char *path, struct pack **ret, struct err *e)
{
    OWN(buf_done) struct buf name = BUF_INIT(ARCHIVE_PATH_MAX_BYTES);
    OWN(drop) struct pack *p = NEW(struct pack);
    OWN_FD int dir_fd = -1;

    p->fd = -1;
    p->path.max = ARCHIVE_PATH_MAX_BYTES;
    p->first.max = 2 * ARCHIVE_EXTRA_MAX_BYTES;
    if (!*path)
        return err_errno(e, ENOENT, "cannot read ''");
    dir_fd = open_parent(path, &name, e);
    if (dir_fd < 0 || buf_add(&p->path, pack_top(path), e) < 0)
        return -1;
    if (add_entry(p, dir_fd, buf_cstr(&name), &p->first, e) < 0)
        return e->sys ? err_errno(e, e->sys, "cannot read '%s'", path) : -1;
    if (p->counts.passed_over)
        return err_set(e, ERR_UNSUPPORTED, "'%s' is neither a file nor a directory nor a link",
                       path);
    *ret = take_ptr(&p);
    return 0;
}

/* ---- the walk ---- */

static int read_file(struct pack *p, struct buf *out, struct err *e)
{
    size_t want = (size_t)MIN(p->left, (uint64_t)ARCHIVE_PIECE_BYTES);
    ssize_t n;

    if (buf_reserve(out, want, e) < 0)
        return -1;
    do
        n = read(p->fd, out->p + out->n, want);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return cannot_read(p, e);
    if (n == 0)
        return err_set(e, ERR_CONFLICT, "'%s' became shorter while it was copied",
                       buf_cstr(&p->path));
    buf_grown(out, (size_t)n);
    p->left -= (size_t)n;
    p->counts.bytes += (size_t)n;
    if (p->left)
        return 0;
    own_fd_close(&p->fd);
    return tar_add_pad(out, p->size, e);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int next_of_dir(struct pack *p, struct buf *out, struct err *e)
{
    struct level *l = &p->levels[p->depth - 1];
    const struct dirent *d;

    buf_truncate(&p->path, l->path_n);
    errno = 0;
    d = readdir(l->dir);
    if (!d && errno)
        return cannot_read(p, e);
    if (!d) {
        (void)closedir(l->dir);
        p->depth--;
        return 0;
    }
    if (is_dots(d->d_name))
        return 0;
    if (buf_addc(&p->path, '/', e) < 0 || buf_add(&p->path, span_cstr(d->d_name), e) < 0)
        return err_set(e, ERR_LIMIT, "a path below '%.200s' is longer than %d bytes",
                       buf_cstr(&p->path), ARCHIVE_PATH_MAX_BYTES);
    if (add_entry(p, dirfd(l->dir), d->d_name, out, e) < 0 && e->sys != ENOENT)
        return -1; /* what went meanwhile was not there */
    return 0;
}

int pack_read(struct pack *p, struct buf *out, struct err *e)
{
    size_t had = out->n;
    int done = 0;

    if (p->is_over)
        return 0;
    done = buf_add(out, buf_span(&p->first), e);
    buf_done(&p->first);
    while (done == 0 && out->n < had + ARCHIVE_PIECE_BYTES / 2) {
        if (p->fd >= 0) {
            done = read_file(p, out, e);
        } else if (p->depth) {
            done = next_of_dir(p, out, e);
        } else {
            p->is_over = true;
            return tar_add_end(out, e);
        }
    }
    return done < 0 ? -1 : 1;
}

const struct archive_counts *pack_counts(const struct pack *p)
{
    return &p->counts;
}

void pack_free(struct pack *p)
{
    if (!p)
        return;
    while (p->depth)
        (void)closedir(p->levels[--p->depth].dir);
    own_fd_close(&p->fd);
    buf_done(&p->path);
    buf_done(&p->first);
    free(p);
}
