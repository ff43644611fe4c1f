#include "node/dirtree.h"

#include "base/time.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MOVES_MAX                                                                                  \
    1000 /* names that are taken already; then an error, and the next try finds fewer of them */
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- on the way ---- */

static int step(int *fd, const char *name, const mode_t *mode, struct err *e)
{
    int next;

    if (mode && mkdirat(*fd, name, *mode) == 0) {
        /* The umask is the operator's; what a Pod can do in its directories is not its business. */
        next = openat(*fd, name, OPEN_DIR);
        if (next >= 0 && fchmod(next, *mode) < 0)
            own_fd_close(&next);
    } else {
        next = openat(*fd, name, OPEN_DIR);
    }
    if (next < 0)
        return err_sys(e, "cannot open directory '%s'", name);
    own_fd_close(fd);
    *fd = next;
    return 0;
}

static int walk(int dir_fd, const char *path, const mode_t *mode, int *ret_fd, struct err *e)
{
    OWN_FD int fd = openat(dir_fd, ".", OPEN_DIR);
    struct span rest = span_cstr(path), part;

    if (fd < 0)
        return err_sys(e, "cannot open the directory");
    while (span_cut(&rest, '/', &part)) {
        OWN_MEM char *name = span_dup(part);

        if (part.n == 0 || span_is(part, "."))
            continue;
        if (span_is(part, ".."))
            return err_set(e, ERR_INVALID, "'%s' leads upwards", path);
        if (step(&fd, name, mode, e) < 0)
            return err_wrap(e, "'%s'", path);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int dirtree_open(int dir_fd, const char *path, mode_t mode, int *ret_fd, struct err *e)
{
    return walk(dir_fd, path, &mode, ret_fd, e);
}

int dirtree_find(int dir_fd, const char *path, int *ret_fd, struct err *e)
{
    return walk(dir_fd, path, NULL, ret_fd, e);
}

/* ---- the way down ---- */

/* The directories that are open, from the top to where we are. */
struct stack {
    DIR *dirs[DIRTREE_DEPTH_MAX];
    char *names[DIRTREE_DEPTH_MAX]; /* each in the one above it */
    size_t n;
};

static void stack_done(struct stack *s)
{
    while (s->n) {
        s->n--;
        (void)closedir(s->dirs[s->n]);
        free(s->names[s->n]);
    }
}

static int top_fd(const struct stack *s)
{
    return dirfd(s->dirs[s->n - 1]);
}

/* Takes fd. */
static int push(struct stack *s, int fd, const char *name, struct err *e)
{
    DIR *dir = fdopendir(fd);

    if (!dir) {
        (void)err_sys(e, "cannot read directory '%s'", name);
        own_fd_close(&fd);
        return -1;
    }
    s->dirs[s->n] = dir;
    s->names[s->n++] = own_strdup(name);
    return 0;
}

static void pop(struct stack *s)
{
    s->n--;
    (void)closedir(s->dirs[s->n]);
    free(s->names[s->n]);
}

/* The next entry of the innermost directory, or NULL. */
static const char *next_name(struct stack *s)
{
    for (;;) {
        const struct dirent *d = readdir(s->dirs[s->n - 1]);

        if (!d)
            return NULL;
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            return d->d_name;
    }
}

/* ---- counting ---- */

static void count_entry(struct stack *s, const char *name, struct dirtree_count *c)
{
    struct stat st;
    struct err ignored;
    int fd;

    c->entries++;
    if (fstatat(top_fd(s), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* it has just gone */
    /* A file with several names counts once for each: that much less a sandbox can hide. */
    c->bytes += (uint64_t)st.st_blocks * 512;
    if (!S_ISDIR(st.st_mode))
        return;
    fd = s->n < DIRTREE_DEPTH_MAX ? openat(top_fd(s), name, OPEN_DIR) : -1;
    if (fd < 0 || push(s, fd, name, &ignored) < 0)
        c->is_partial = true;
}

int dirtree_count(int dir_fd, struct dirtree_count *ret, struct err *e)
{
    const struct dirtree_bounds none = { .entries = UINT64_MAX, .until_ms = UINT64_MAX };

    return dirtree_count_within(dir_fd, &none, ret, e);
}

/* The clock is looked at now and then. */
static bool is_cut(const struct dirtree_bounds *b, const struct dirtree_count *c)
{
    return c->entries >= b->entries || (c->entries % 256 == 255 && time_mono_ms() >= b->until_ms);
}

int dirtree_count_within(int dir_fd, const struct dirtree_bounds *bounds, struct dirtree_count *ret,
                         struct err *e)
{
    OWN(stack_done) struct stack s = { .n = 0 };
    struct dirtree_count c = { 0 };
    int fd = openat(dir_fd, ".", OPEN_DIR);

    if (fd < 0)
        return err_sys(e, "cannot open the directory");
    if (push(&s, fd, ".", e) < 0)
        return -1;
    while (s.n) {
        const char *name = next_name(&s);

        if (!name) {
            pop(&s);
            continue;
        }
        if (c.entries == DIRTREE_ENTRIES_MAX) {
            c.is_partial = true;
            break;
        }
        c.is_cut = is_cut(bounds, &c);
        if (c.is_cut)
            break;
        count_entry(&s, name, &c);
    }
    *ret = c;
    return 0;
}

/* ---- removing ---- */

/* Opens a directory to be emptied, whatever its mode says. What the name leads to may change at any time, to a link out of the
 * tree: the mode is judged and set on the directory that was opened, and that one is emptied. */
static int open_to_empty(int dir_fd, const char *name)
{
    OWN_FD int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char path[48];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    /* by path: fchmod does not take an O_PATH descriptor, and a directory that cannot be read gives no other. */
    if ((st.st_mode & 0700) != 0700 && chmod(path, 0700) < 0)
        return -1;
    return openat(fd, ".", OPEN_DIR);
}

/* A directory at the deepest place we go to moves up, to beside the first one, where it is removed later. */
static int move_up(struct stack *s, const char *name, uint64_t *moved, struct err *e)
{
    for (unsigned i = 0; i < MOVES_MAX; i++) {
        char at_top[48];

        (void)snprintf(at_top, sizeof at_top, "..moved-%llu", (unsigned long long)(*moved)++);
        if (renameat(top_fd(s), name, dirfd(s->dirs[0]), at_top) == 0 || errno == ENOENT)
            return 0;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            break;
    }
    return err_sys(e, "cannot move directory '%s'", name);
}

static int remove_entry(struct stack *s, const char *name, uint64_t *moved, struct err *e)
{
    int fd;

    if (unlinkat(top_fd(s), name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_sys(e, "cannot remove '%s'", name);
    if (unlinkat(top_fd(s), name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    fd = open_to_empty(top_fd(s), name);
    if (fd < 0)
        return err_sys(e, "cannot empty directory '%s'", name);
    if (s->n < DIRTREE_DEPTH_MAX)
        return push(s, fd, name, e);
    own_fd_close(&fd);
    return move_up(s, name, moved, e);
}

/* The innermost directory has shown its last entry. What moved up into the first one meanwhile may not have been shown: it is
 * read again until a round moves nothing. */
static int leave(struct stack *s, uint64_t moved, uint64_t *seen, struct err *e)
{
    OWN_MEM char *name = own_strdup(s->names[s->n - 1]);

    if (s->n == 1) {
        if (*seen != moved) {
            *seen = moved;
            rewinddir(s->dirs[0]);
            return 0;
        }
        pop(s);
        return 0;
    }
    pop(s);
    if (unlinkat(top_fd(s), name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_sys(e, "cannot remove directory '%s'", name);
    return 0;
}

int dirtree_remove(int dir_fd, const char *name, struct err *e)
{
    OWN(stack_done) struct stack s = { .n = 0 };
    uint64_t moved = 0, seen = 0;
    int fd;

    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_sys(e, "cannot remove '%s'", name);
    fd = open_to_empty(dir_fd, name);
    if (fd < 0)
        return err_sys(e, "cannot empty directory '%s'", name);
    if (push(&s, fd, name, e) < 0)
        return -1;
    while (s.n) {
        const char *entry = next_name(&s);

        if ((entry ? remove_entry(&s, entry, &moved, e) : leave(&s, moved, &seen, e)) < 0)
            return -1;
    }
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_sys(e, "cannot remove directory '%s'", name);
    return 0;
}
