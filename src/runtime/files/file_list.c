#include "runtime/files/file_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

const struct file_list_how file_list_python = { PATH_PYTHON, FILE_AS_STORED };
const struct file_list_how file_list_sandboxd = { PATH_SANDBOXD, FILE_BY_NAME };
const struct file_list_how file_list_pydantic = { PATH_PYDANTIC, FILE_DIRS_FIRST };

bool file_entry_stat(const struct path_root *root, int dir_fd, const char *rel, const char *name,
                     enum path_rules rules, struct stat *ret)
{
    OWN(buf_done) struct buf path = BUF_INIT(2 * PATH_REAL_MAX_BYTES);
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    struct err e;

    if (fstatat(dir_fd, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (!S_ISLNK(ret->st_mode))
        return true;
    if (buf_addf(&path, &e, "%s/%s", rel, name) == 0 &&
        path_resolve(root, rules, buf_span(&path), 0, &at, &e) == 0 && at.exists) {
        *ret = at.st;
        return true;
    }
    return rules != PATH_SANDBOXD;
}

static void fill(struct file_entry *entry, const char *name, const struct stat *st)
{
    *entry = (struct file_entry){
        .name = name,
        .is_dir = S_ISDIR(st->st_mode),
        .size = (uint64_t)st->st_size,
        .modified = st->st_mtim,
        .mode = st->st_mode & 0777,
    };
}

/* --- sorted: names in one block, rows that point into it --- */

struct rows {
    struct buf names;
    struct file_entry *v;
    size_t *name_at; /* offsets, as the block moves while it grows */
    size_t n, cap;
};

static void rows_done(struct rows *r)
{
    buf_done(&r->names);
    free(r->v);
    free(r->name_at);
}

static int rows_add(struct rows *r, const struct file_entry *entry, struct err *e)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->v = own_resize(r->v, r->cap, sizeof *r->v);
        r->name_at = own_resize(r->name_at, r->cap, sizeof *r->name_at);
    }
    r->v[r->n] = *entry;
    r->name_at[r->n++] = r->names.n;
    return buf_add(&r->names, span_of(entry->name, strlen(entry->name) + 1), e);
}

static int by_name(const void *left, const void *right)
{
    const struct file_entry *a = left, *b = right;

    return strcmp(a->name, b->name);
}

static int dirs_first(const void *left, const void *right)
{
    const struct file_entry *a = left, *b = right;

    return a->is_dir != b->is_dir ? (a->is_dir ? -1 : 1) : strcmp(a->name, b->name);
}

static int give_sorted(struct rows *r, enum file_order order, file_entry_fn each, void *ctx,
                       struct err *e)
{
    for (size_t i = 0; i < r->n; i++)
        r->v[i].name = (const char *)r->names.p + r->name_at[i];
    if (r->n)
        qsort(r->v, r->n, sizeof *r->v, order == FILE_BY_NAME ? by_name : dirs_first);
    for (size_t i = 0; i < r->n; i++)
        if (each(ctx, &r->v[i], e) < 0)
            return -1;
    return 0;
}

/* --- the walk --- */

static void own_dir_close(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

int file_list(const struct path_root *root, const struct path_at *at, int dir_fd,
              const struct file_list_how *how, file_entry_fn each, void *ctx, struct err *e)
{
    OWN(rows_done) struct rows rows = { .names = BUF_INIT((size_t)FILE_LIST_MAX_ENTRIES * 256) };
    /* A description of its own, so that the caller's position does not move. */
    OWN_FD int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    OWN(own_dir_close) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    size_t count = 0;

    if (!dir)
        return err_sys(e, "cannot list '%s'", at->abs);
    (void)take_fd(&fd);
    for (;;) {
        struct file_entry entry;
        struct dirent *d;
        struct stat st;

        errno = 0;
        d = readdir(dir);
        if (!d && errno)
            return err_sys(e, "cannot list '%s'", at->abs);
        if (!d)
            break;
        if (is_dots(d->d_name) ||
            !file_entry_stat(root, dir_fd, at->rel, d->d_name, how->rules, &st))
            continue;
        if (count++ == FILE_LIST_MAX_ENTRIES)
            return err_set(e, ERR_LIMIT, "'%s' has more than %d entries", at->abs,
                           FILE_LIST_MAX_ENTRIES);
        fill(&entry, d->d_name, &st);
        if ((how->order == FILE_AS_STORED ? each(ctx, &entry, e) : rows_add(&rows, &entry, e)) < 0)
            return -1;
    }
    return give_sorted(&rows, how->order, each, ctx, e);
}

int file_list_path(const struct path_root *root, struct span path, const struct file_list_how *how,
                   file_entry_fn each, void *ctx, struct err *e)
{
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    OWN_FD int fd = -1;

    if (path_open(root, how->rules, path, O_RDONLY | O_DIRECTORY, &at, &fd, e) < 0)
        return -1;
    return file_list(root, &at, fd, how, each, ctx, e);
}
