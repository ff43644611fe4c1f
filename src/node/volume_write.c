#include "node/volume_write.h"

#include "base/fd.h"
#include "node/dirtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DATA          "..data"
#define DATA_TMP      "..data_tmp"
#define VERSION_BYTES 64

/* ---- is it so already? ---- */

/* One file is as it should be: kind, mode and every byte. */
static bool is_file_same(int version_fd, const struct volume_file *f, mode_t mode)
{
    OWN(buf_done) struct buf have = BUF_INIT(VOLUME_CONTENT_MAX_BYTES);
    OWN_FD int fd = openat(version_fd, f->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    struct err ignored;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0777) == mode &&
           (size_t)st.st_size == f->bytes.n && fd_read_all(fd, &have, &ignored) == 0 &&
           span_eq(buf_span(&have), buf_span(&f->bytes));
}

/* Directories are there only for the files below them. */
static uint64_t dirs_of(const struct volume_content *c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        for (const char *slash = strchr(c->v[i].path, '/'); slash; slash = strchr(slash + 1, '/')) {
            size_t len = (size_t)(slash - c->v[i].path) + 1;
            bool is_first = true;

            for (size_t k = 0; k < i && is_first; k++)
                is_first = strncmp(c->v[k].path, c->v[i].path, len) != 0;
            n += is_first;
        }
    }
    return n;
}

static mode_t mode_of(const struct volume_file *f, const struct volume_owner *owner)
{
    if (f->is_token && (owner->has_user || owner->has_group))
        return owner->has_group ? 0640 : 0600;
    return owner->has_group ? f->mode | 0440 : f->mode;
}

static bool is_same(int dir_fd, const char *version, const struct volume_content *c,
                    const struct volume_owner *owner)
{
    struct dirtree_count count;
    struct err ignored;
    OWN_FD int fd = -1;

    if (dirtree_find(dir_fd, version, &fd, &ignored) < 0 ||
        dirtree_count(fd, &count, &ignored) < 0 || count.entries != c->n + dirs_of(c))
        return false;
    for (size_t i = 0; i < c->n; i++)
        if (!is_file_same(fd, &c->v[i], mode_of(&c->v[i], owner)))
            return false;
    return true;
}

/* What ..data says, or "". */
static void read_version(int dir_fd, char ret[VERSION_BYTES])
{
    ssize_t n = readlinkat(dir_fd, DATA, ret, VERSION_BYTES - 1);

    ret[MAX(n, (ssize_t)0)] = '\0';
    if (strncmp(ret, "..", 2) != 0 || strchr(ret, '/') || !ret[2])
        ret[0] = '\0';
}

/* ---- a new version ---- */

static int give(int fd, const struct volume_owner *owner, bool is_users, mode_t mode, struct err *e)
{
    uid_t user = is_users && owner->has_user ? owner->user : (uid_t)-1;
    gid_t group = owner->has_group ? owner->group : (gid_t)-1;

    if ((owner->has_user || owner->has_group) && fchown(fd, user, group) < 0)
        return err_sys(e, "cannot give it to %u:%u", user, group);
    if (fchmod(fd, mode) < 0)
        return err_sys(e, "cannot set its mode");
    return 0;
}

static int write_file(int version_fd, const struct volume_file *f, const struct volume_owner *owner,
                      struct err *e)
{
    const char *slash = strrchr(f->path, '/');
    OWN_MEM char *above = span_dup(span_of(f->path, slash ? (size_t)(slash - f->path) : 0));
    OWN_FD int dir_fd = -1, fd = -1;

    if (dirtree_open(version_fd, above, 0755, &dir_fd, e) < 0)
        return -1;
    fd = openat(dir_fd, slash ? slash + 1 : f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "cannot make file '%s'", f->path);
    if (fd_write_all(fd, buf_span(&f->bytes), e) < 0 ||
        give(fd, owner, f->is_token, mode_of(f, owner), e) < 0)
        return err_wrap(e, "file '%s'", f->path);
    return 0;
}

/* A directory that no other version has, with the files. */
static int write_version(int dir_fd, const struct volume_content *c,
                         const struct volume_owner *owner, char ret[VERSION_BYTES], struct err *e)
{
    OWN_FD int fd = -1;
    struct timespec now;
    struct tm tm;
    char day[32];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    (void)strftime(day, sizeof day, "%Y_%m_%d_%H_%M_%S", &tm);
    for (unsigned i = 0;; i++) {
        (void)snprintf(ret, VERSION_BYTES, "..%s.%09ld", day, (now.tv_nsec + (long)i) % 1000000000);
        /* mode: containers may have any id; it is below our 0700 */
        if (mkdirat(dir_fd, ret, 0755) == 0)
            break;
        if (errno != EEXIST || i == 1000)
            return err_sys(e, "cannot make directory '%s'", ret);
    }
    if (dirtree_find(dir_fd, ret, &fd, e) < 0)
        return -1;
    for (size_t i = 0; i < c->n; i++)
        if (write_file(fd, &c->v[i], owner, e) < 0)
            return -1;
    return give(fd, owner, false, 0755, e);
}

static int link_as(int dir_fd, const char *target, const char *name, struct err *e)
{
    char have[VOLUME_PATH_MAX_BYTES + 16];
    ssize_t n = readlinkat(dir_fd, name, have, sizeof have);

    if (n >= 0 && span_is(span_of(have, (size_t)n), target))
        return 0;
    if (n >= 0 && unlinkat(dir_fd, name, 0) < 0)
        return err_sys(e, "cannot replace link '%s'", name);
    if (symlinkat(target, dir_fd, name) < 0)
        return err_sys(e, "cannot make link '%s'", name);
    return 0;
}

/* The first part of a path. */
static char *first_part(const char *path)
{
    struct span rest = span_cstr(path), part;

    (void)span_cut(&rest, '/', &part);
    return span_dup(part);
}

static int make_links(int dir_fd, const struct volume_content *c, struct err *e)
{
    for (size_t i = 0; i < c->n; i++) {
        OWN_MEM char *name = first_part(c->v[i].path);
        char target[VOLUME_PATH_MAX_BYTES + 16];

        (void)snprintf(target, sizeof target, DATA "/%s", name);
        if (link_as(dir_fd, target, name, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- clearing up ---- */

static bool is_wanted(const struct volume_content *c, const char *version, const char *name)
{
    size_t n = strlen(name);

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, DATA) == 0 ||
        strcmp(name, version) == 0)
        return true;
    for (size_t i = 0; i < c->n; i++)
        if (strncmp(c->v[i].path, name, n) == 0 && (!c->v[i].path[n] || c->v[i].path[n] == '/'))
            return true;
    return false;
}

static void closedir_done(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

/* Links of files that are gone, older versions, and what a killed write left. */
static int clear_up(int dir_fd, const struct volume_content *c, const char *version, struct err *e)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    OWN(closedir_done) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *d;

    if (!dir)
        return err_sys(e, "cannot read the volume's directory");
    while ((d = readdir(dir)))
        if (!is_wanted(c, version, d->d_name) && dirtree_remove(dir_fd, d->d_name, e) < 0)
            return -1;
    return 0;
}

int volume_write(int dir_fd, const struct volume_content *content, const struct volume_owner *owner,
                 bool *ret_changed, struct err *e)
{
    char version[VERSION_BYTES];
    bool is_changed;

    read_version(dir_fd, version);
    is_changed = !version[0] || !is_same(dir_fd, version, content, owner);
    if (is_changed) {
        if (write_version(dir_fd, content, owner, version, e) < 0)
            return -1;
        (void)unlinkat(dir_fd, DATA_TMP, 0);
        if (symlinkat(version, dir_fd, DATA_TMP) < 0 ||
            renameat(dir_fd, DATA_TMP, dir_fd, DATA) < 0)
            return err_sys(e, "cannot switch to version '%s'", version);
    }
    /* Also without a change: whoever wrote it may have been killed before its links. */
    if (make_links(dir_fd, content, e) < 0 || clear_up(dir_fd, content, version, e) < 0)
        return -1;
    if (ret_changed)
        *ret_changed = is_changed;
    return 0;
}
