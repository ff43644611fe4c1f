#include "archive/unpack.h"

#include "archive/limits.h"
#include "archive/tar.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#define TEMP_TRIES 16 /* a clash of 64 random bits means that someone is guessing; then EEXIST */
#define MODE_MASK  0777

struct level {
    int fd;
    size_t path_n;  /* of this directory in u->path; 0 for the destination */
    bool sets_mode; /* it is new: it gets `mode` when it is filled */
    mode_t mode;
};

struct unpack {
    struct tar_in tar;
    struct level levels[ARCHIVE_DEPTH_MAX + 1]; /* the destination first */
    size_t depth;
    struct buf
        path; /* of the deepest level, then of the entry: plain components below the destination */
    struct buf
        top; /* what the first component must be; set by the first entry if it was not told */
    bool has_top;
    struct buf as; /* what the first component is called here instead; "" as it is */
    bool is_dir_only;
    struct buf shown; /* the destination, for messages */
    int fd;           /* the file being written, or -1 */
    char temp[32];    /* its name in the deepest level; "" none */
    struct archive_counts counts;
    uint64_t max_bytes, max_entries;
};

/* ---- the destination ---- */

/* It is not a directory: then its parent is, and the archive's top gets its name. */
static int open_parent(struct unpack *u, const char *text, int why, struct err *e)
{
    struct span name = pack_top(text), all = span_cstr(text);
    OWN(buf_done) struct buf dir = BUF_INIT(ARCHIVE_PATH_MAX_BYTES);

    while (all.n && all.p[all.n - 1] == '/') {
        all.n--;
        u->is_dir_only = true;
    }
    if (span_is(name, ".") || (why != ENOENT && (why != ENOTDIR || u->is_dir_only)))
        return err_errno(e, why, "cannot write to '%s'", text);
    if (buf_add(&dir, span_slice(all, 0, all.n - name.n), e) < 0 || buf_add(&u->as, name, e) < 0)
        return -1;
    /* by path: the caller's own word; all below it is by descriptor. */
    u->levels[0].fd = open(dir.n ? buf_cstr(&dir) : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (u->levels[0].fd < 0)
        return err_sys(e, "cannot write to '%s': its directory cannot be used", text);
    return 0;
}

static int open_destination(struct unpack *u, const struct unpack_spec *spec, struct err *e)
{
    u->levels[0] = (struct level){ .fd = -1 };
    u->depth = 1;
    if (buf_add(&u->shown, span_cstr(spec->destination), e) < 0)
        return -1;
    if (!*spec->destination)
        return err_errno(e, ENOENT, "cannot write to ''");
    /* by path: the caller's own word. */
    u->levels[0].fd = open(spec->destination, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (u->levels[0].fd >= 0)
        return 0;
    if (!u->has_top) /* several things cannot have one name */
        return err_sys(e, "cannot write to '%s'", spec->destination);
    return open_parent(u, spec->destination, errno, e);
}

static void drop(struct unpack **u)
{
    unpack_free(*u);
}

int unpack_open(const struct unpack_spec *spec, struct unpack **ret, struct err *e)
{
    OWN(drop) struct unpack *u = NEW(struct unpack);

    tar_in_init(&u->tar);
    u->fd = -1;
    u->path.max = u->top.max = u->as.max = u->shown.max = ARCHIVE_PATH_MAX_BYTES;
    u->max_bytes = spec->max_bytes;
    u->max_entries = spec->max_entries;
    u->has_top = spec->top.p != NULL;
    if (buf_add(&u->top, spec->top, e) < 0 || open_destination(u, spec, e) < 0)
        return -1;
    *ret = take_ptr(&u);
    return 0;
}

/* ---- where an entry goes ---- */

static int refuse(const char *path, const char *why, struct err *e)
{
    return err_set(e, ERR_PROTOCOL, "the archive has an entry '%.200s', which %s: refused", path,
                   why);
}

static int add_component(struct buf *path, struct span name, struct err *e)
{
    if (path->n && buf_addc(path, '/', e) < 0)
        return -1;
    return buf_add(path, name, e);
}

/* Is the first component the one that was asked for? "." was: then all are. */
static int judge_top(struct unpack *u, const char *path, struct span first, struct err *e)
{
    if (!u->has_top || span_is(buf_span(&u->top), ".") || span_eq(first, buf_span(&u->top)))
        return 0;
    return refuse(path, "was not asked for", e);
}

/* The entry's path below the destination, made of plain components; "" is the destination itself. */
static int place_of(struct unpack *u, const char *text, struct buf *path, struct err *e)
{
    struct span rest = span_cstr(text), name;
    bool is_content = u->has_top && span_is(buf_span(&u->top), ".");
    bool is_first = true;

    if (text[0] == '/')
        return refuse(text, "is absolute", e);
    if (is_content && u->as.n && buf_add(path, buf_span(&u->as), e) < 0)
        return -1;
    while (span_cut(&rest, '/', &name)) {
        if (!name.n || span_is(name, "."))
            continue;
        if (span_is(name, ".."))
            return refuse(text, "leads out of the destination", e);
        if (is_first && judge_top(u, text, name, e) < 0)
            return -1;
        if (is_first && !is_content && u->as.n)
            name = buf_span(&u->as);
        is_first = false;
        if (add_component(path, name, e) < 0)
            return err_set(e, ERR_LIMIT, "a path in the archive is longer than %d bytes",
                           ARCHIVE_PATH_MAX_BYTES);
    }
    return 0;
}

static int cannot_write(const struct unpack *u, struct err *e)
{
    int sys = errno;

    (void)err_errno(e, sys, "cannot write '%s' in '%s'", buf_cstr(&u->path), buf_cstr(&u->shown));
    if (sys == ELOOP)
        err_hint(e, "a symbolic link is in the way; links are not followed");
    return -1;
}

/* ---- directories ---- */

static struct level *deepest(struct unpack *u)
{
    return &u->levels[u->depth - 1];
}

static int leave(struct unpack *u, struct err *e)
{
    struct level *l = deepest(u);
    int done = l->sets_mode ? fchmod(l->fd, l->mode) : 0;

    if (done < 0)
        (void)err_sys(e, "cannot set the mode of a directory in '%s'", buf_cstr(&u->shown));
    own_fd_close(&l->fd);
    u->depth--;
    return done;
}

static bool is_link(int dir_fd, const char *name)
{
    struct stat st;

    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Into one more directory, which is there or is made. The path already names it. */
static int enter(struct unpack *u, const char *name, bool *ret_is_new, struct err *e)
{
    struct level next = { .path_n = u->path.n };
    bool is_new = mkdirat(deepest(u)->fd, name, 0700) == 0;

    if (!is_new && errno != EEXIST)
        return cannot_write(u, e);
    if (u->depth == LEN(u->levels))
        return err_set(e, ERR_LIMIT, "the archive is more than %d directories deep",
                       ARCHIVE_DEPTH_MAX);
    /* A new one will have its mode set; one that was there may not even be readable. */
    next.fd = openat(deepest(u)->fd, name,
                     (is_new ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next.fd < 0) /* the kernel says the same of a file and of a link that is not followed */
        errno = errno == ENOTDIR && is_link(deepest(u)->fd, name) ? ELOOP : errno;
    if (next.fd < 0)
        return cannot_write(u, e);
    next.sets_mode = is_new;
    next.mode = 0755; /* unless the archive says */
    u->levels[u->depth++] = next;
    *ret_is_new = is_new;
    return 0;
}

/* Does `path` go through the directory that the level is? */
static bool is_through(const struct unpack *u, const struct level *l, struct span path)
{
    return !l->path_n || (path.n > l->path_n && path.p[l->path_n] == '/' &&
                          memcmp(path.p, u->path.p, l->path_n) == 0);
}

/* Goes to the directory that `path` is in; its last component is then behind *ret_name. An archive is in order of its
 * directories, so nearly always the deepest one is it already. */
static int go_to_parent(struct unpack *u, struct span path, const char **ret_name, struct err *e)
{
    size_t at;
    bool is_new;

    while (u->depth > 1 && !is_through(u, deepest(u), path))
        if (leave(u, e) < 0)
            return -1;
    at = deepest(u)->path_n ? deepest(u)->path_n + 1 : 0;
    for (;;) {
        size_t slash = span_find(span_skip(path, at), '/');

        buf_truncate(&u->path, 0);
        if (buf_add(&u->path, span_slice(path, 0, slash == SIZE_MAX ? path.n : at + slash), e) < 0)
            return -1;
        if (slash == SIZE_MAX)
            break;
        if (enter(u, buf_cstr(&u->path) + at, &is_new, e) < 0)
            return -1;
        at += slash + 1;
    }
    *ret_name = buf_cstr(&u->path) + at;
    return 0;
}

static int make_dir(struct unpack *u, const char *name, mode_t mode, struct err *e)
{
    bool is_new;

    if (enter(u, name, &is_new, e) < 0)
        return -1;
    deepest(u)->mode = mode & MODE_MASK;
    return 0;
}

/* ---- files and links ---- */

static int next_temp(struct unpack *u)
{
    uint64_t random = 0;

    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -1;
    (void)snprintf(u->temp, sizeof u->temp, ".silica-cp-%016llx", (unsigned long long)random);
    return 0;
}

static int begin_file(struct unpack *u, struct err *e)
{
    for (int i = 0; i < TEMP_TRIES && u->fd < 0; i++) {
        if (next_temp(u) < 0)
            break;
        u->fd = openat(deepest(u)->fd, u->temp,
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (u->fd < 0 && errno != EEXIST)
            break;
    }
    if (u->fd >= 0)
        return 0;
    u->temp[0] = '\0';
    return cannot_write(u, e);
}

/* Puts what has the temporary name in its place. */
static int settle(struct unpack *u, struct err *e)
{
    const char *name = strrchr(buf_cstr(&u->path), '/');

    name = name ? name + 1 : buf_cstr(&u->path);
    if (renameat(deepest(u)->fd, u->temp, deepest(u)->fd, name) < 0)
        return cannot_write(u, e);
    u->temp[0] = '\0';
    return 0;
}

static int end_file(struct unpack *u, struct err *e)
{
    const struct tar_entry *entry = &u->tar.entry;
    struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_sec = entry->mtime } };

    if (fchmod(u->fd, entry->mode & MODE_MASK) < 0)
        return cannot_write(u, e);
    (void)futimens(u->fd,
                   times); /* a time that the file system cannot hold is not worth a failure */
    if (close(take_fd(&u->fd)) < 0)
        return cannot_write(u, e); /* a quota of a network file system */
    return settle(u, e);
}

static int make_link(struct unpack *u, const char *target, struct err *e)
{
    for (int i = 0; i < TEMP_TRIES; i++) {
        if (next_temp(u) < 0)
            break;
        if (symlinkat(target, deepest(u)->fd, u->temp) == 0)
            return settle(u, e);
        if (errno != EEXIST)
            break;
    }
    u->temp[0] = '\0';
    return cannot_write(u, e);
}

/* ---- the stream ---- */

static int judge_limits(struct unpack *u, const struct tar_entry *entry, struct err *e)
{
    if (++u->counts.entries > u->max_entries)
        return err_set(e, ERR_LIMIT, "the archive has more than %llu entries",
                       (unsigned long long)u->max_entries);
    if (entry->size > u->max_bytes - u->counts.bytes)
        return err_set(e, ERR_LIMIT, "the archive has more than %llu bytes",
                       (unsigned long long)u->max_bytes);
    return 0;
}

static int begin_entry(struct unpack *u, struct err *e)
{
    const struct tar_entry *entry = &u->tar.entry;
    OWN(buf_done) struct buf path = BUF_INIT(ARCHIVE_PATH_MAX_BYTES);
    bool is_top;
    const char *name;

    if (judge_limits(u, entry, e) < 0 || place_of(u, entry->path, &path, e) < 0)
        return -1;
    is_top = path.n == 0 || span_eq(buf_span(&path), buf_span(&u->as));
    if (u->is_dir_only && is_top && entry->kind != TAR_DIR)
        return err_errno(e, ENOENT, "cannot write to the directory '%s'", buf_cstr(&u->shown));
    if (path.n == 0)
        return entry->kind == TAR_DIR ? 0 : refuse(entry->path, "has no name", e);
    if (entry->kind == TAR_OTHER) {
        u->counts.passed_over++;
        return 0;
    }
    if (go_to_parent(u, buf_span(&path), &name, e) < 0)
        return -1;
    if (entry->kind == TAR_DIR)
        return make_dir(u, name, entry->mode, e);
    if (entry->kind == TAR_LINK)
        return make_link(u, entry->target, e);
    if (begin_file(u, e) < 0)
        return -1;
    return entry->size ? 0 : end_file(u, e);
}

static int add_data(struct unpack *u, struct span data, struct err *e)
{
    if (fd_write_all(u->fd, data, e) < 0)
        return err_errno(e, e->sys, "cannot write '%s' in '%s'", buf_cstr(&u->path),
                         buf_cstr(&u->shown));
    u->counts.bytes += data.n;
    return u->tar.left ? 0 : end_file(u, e);
}

int unpack_feed(struct unpack *u, struct span bytes, struct err *e)
{
    struct span data = SPAN_NONE;
    size_t used;
    int done = 0;

    while (bytes.n && done == 0) {
        switch (tar_in_feed(&u->tar, bytes, &used, &data, e)) {
        case TAR_ENTRY:
            done = begin_entry(u, e);
            break;
        case TAR_DATA:
            done = add_data(u, data, e);
            break;
        case TAR_BAD:
            return -1;
        case TAR_MORE:
        case TAR_END:
            break;
        }
        bytes = span_skip(bytes, used);
    }
    return done;
}

int unpack_finish(struct unpack *u, struct err *e)
{
    if (tar_in_finish(&u->tar, e) < 0)
        return -1;
    while (u->depth > 1)
        if (leave(u, e) < 0)
            return -1;
    if (!u->counts.entries)
        return err_set(e, ERR_INVALID, "the archive is empty");
    return 0;
}

const struct archive_counts *unpack_counts(const struct unpack *u)
{
    return &u->counts;
}

void unpack_free(struct unpack *u)
{
    struct err e;

    if (!u)
        return;
    own_fd_close(&u->fd);
    if (u->temp[0])
        (void)unlinkat(deepest(u)->fd, u->temp, 0);
    while (u->depth > 1)
        (void)leave(u, &e); /* what was made keeps its mode; the failure was told */
    own_fd_close(&u->levels[0].fd);
    tar_in_done(&u->tar);
    buf_done(&u->path);
    buf_done(&u->top);
    buf_done(&u->as);
    buf_done(&u->shown);
    free(u);
}
