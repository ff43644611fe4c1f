#include "runtime/files/file_remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

int file_remove_find(const struct path_root *root, struct span path, struct path_at *ret,
                     struct err *e)
{
    OWN(path_at_done) struct path_at target = PATH_AT_NONE;
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;

    if (path_resolve(root, PATH_SANDBOXD, path, 0, &target, e) < 0 ||
        path_resolve(root, PATH_SANDBOXD, path, PATH_KEEP_LAST_LINK, &at, e) < 0)
        return -1;
    if (!at.exists && !at.is_link)
        return err_errno(e, at.sys, "cannot delete '%s'", at.abs);
    *ret = at;
    at = (struct path_at)PATH_AT_NONE;
    return 0;
}

/* --- the directories we are in, from the top down --- */

struct level {
    DIR *dir;  /* NULL when it was closed to save descriptors */
    dev_t dev; /* which directory it is, to know it again */
    ino_t ino;
    size_t name_at; /* of its name in its parent, in stack.names */
};

struct stack {
    struct level *v;
    size_t n, cap;
    struct buf names;
    unsigned refills;
};

static void stack_done(struct stack *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].dir)
            (void)closedir(s->v[i].dir);
    free(s->v);
    buf_done(&s->names);
}

static struct level *top(const struct stack *s)
{
    return &s->v[s->n - 1];
}

/* Takes fd. */
static int push(struct stack *s, int dir_fd, const char *name, struct err *e)
{
    OWN_FD int fd = dir_fd;
    struct stat st;
    DIR *dir;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "cannot open the directory '%s'", name);
    if (s->n == FILE_REMOVE_MAX_DEPTH)
        return err_set(e, ERR_LIMIT, "the tree is deeper than %d directories",
                       FILE_REMOVE_MAX_DEPTH);
    dir = fdopendir(fd);
    if (!dir)
        return err_sys(e, "cannot read the directory '%s'", name);
    (void)take_fd(&fd);
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 16;
        s->v = own_resize(s->v, s->cap, sizeof *s->v);
    }
    s->v[s->n++] = (struct level){ dir, st.st_dev, st.st_ino, s->names.n };
    if (s->n > FILE_REMOVE_OPEN_DIRS) {
        struct level *old = &s->v[s->n - 1 - FILE_REMOVE_OPEN_DIRS];

        if (old->dir)
            (void)closedir(old->dir);
        old->dir = NULL;
    }
    return buf_add(&s->names, span_of(name, strlen(name) + 1), e);
}

/* Opens the parent again from the child. If someone moved the child away, that is another directory: stop. */
static int reopen(struct level *parent, int child_fd, struct err *e)
{
    OWN_FD int fd = openat(child_fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "cannot go back to the parent directory");
    if (st.st_dev != parent->dev || st.st_ino != parent->ino)
        return err_errno(e, EBUSY, "a directory was moved while it was being deleted");
    parent->dir = fdopendir(fd);
    if (!parent->dir)
        return err_sys(e, "cannot read the parent directory");
    (void)take_fd(&fd);
    return 0;
}

/* The top directory was emptied: back to its parent, and remove it there. */
static int pop(struct stack *s, struct err *e)
{
    struct level *child = top(s), *parent = child - 1;
    const char *name = (const char *)s->names.p + child->name_at;
    int rc = parent->dir ? 0 : reopen(parent, dirfd(child->dir), e);

    (void)closedir(child->dir);
    s->n--;
    if (rc < 0)
        return -1;
    if (unlinkat(dirfd(parent->dir), name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
        /* Someone wrote into it meanwhile: it will be met again. */
        if (errno != ENOTEMPTY || ++s->refills > FILE_REMOVE_MAX_REFILL)
            return err_sys(e, "cannot delete the directory '%s'", name);
        rewinddir(parent->dir);
    }
    s->names.n = child->name_at;
    return 0;
}

/* --- removal --- */

/* 1: removed. 0: a directory that is not empty. */
static int remove_entry(int dir_fd, const char *name, struct err *e)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 1;
    if (errno == EISDIR || errno == EPERM) { /* some file systems say EPERM for directories */
        int sys = errno;

        if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 1;
        if (errno == ENOTEMPTY || errno == EEXIST)
            return 0;
        if (errno == ENOTDIR)
            errno = sys;
    }
    return err_sys(e, "cannot delete '%s'", name);
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Goes on in the top directory until it has to go down (1), or nothing is left in it (0). */
static int empty_some(struct stack *s, struct err *e)
{
    DIR *dir = top(s)->dir;
    bool is_second_pass = false, removed = false;

    for (;;) {
        struct dirent *d;
        int rc;

        errno = 0;
        d = readdir(dir);
        if (!d && errno)
            return err_sys(e, "cannot read a directory");
        if (!d && is_second_pass && !removed)
            return 0;
        if (!d) { /* removing while reading may have skipped some */
            is_second_pass = true;
            removed = false;
            rewinddir(dir);
            continue;
        }
        if (is_dots(d->d_name))
            continue;
        rc = remove_entry(dirfd(dir), d->d_name, e);
        if (rc < 0)
            return -1;
        removed |= rc > 0;
        if (rc == 0) {
            int fd = openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

            return push(s, fd, d->d_name, e) < 0 ? -1 : 1;
        }
    }
}

/* Takes dir_fd and empties that directory. */
static int empty_tree(int dir_fd, struct err *e)
{
    OWN(stack_done) struct stack s = { .names = BUF_INIT(FILE_REMOVE_NAMES_MAX_BYTES) };

    if (push(&s, dir_fd, "", e) < 0)
        return -1;
    for (;;) {
        int rc = empty_some(&s, e);

        if (rc < 0)
            return -1;
        if (rc == 0 && s.n == 1)
            return 0;
        if (rc == 0 && pop(&s, e) < 0)
            return -1;
    }
}

int file_remove(const struct path_at *at, bool recursive, struct err *e)
{
    int open_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    if (at->is_root && !recursive)
        return err_set(e, ERR_CONFLICT,
                       "cannot delete the sandbox root; pass recursive=true to clear its contents");
    if (at->is_root)
        return empty_tree(openat(at->dir_fd, ".", open_flags), e);
    for (int i = 0; i < FILE_REMOVE_MAX_REFILL; i++) {
        int rc = remove_entry(at->dir_fd, at->name, e);

        if (rc != 0)
            return rc > 0 ? 0 : -1;
        if (!recursive)
            return err_set(e, ERR_CONFLICT,
                           "directory is not empty; pass recursive=true to remove it");
        if (empty_tree(openat(at->dir_fd, at->name, open_flags), e) < 0)
            return -1;
    }
    return err_errno(e, ENOTEMPTY, "cannot delete '%s'", at->abs);
}
