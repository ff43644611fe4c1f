#include "runtime/files/file_tree.h"
#include "base/time.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

struct walk {
    const struct file_tree_limits *limits;
    file_tree_fn each;
    void *ctx;
    struct buf
        pending;    /* directories to enter: texts with their terminators, the last one is next */
    struct buf rel; /* of the entry at hand */
    uint64_t seen;
    bool is_cut, is_stopped;
};

static void walk_done(struct walk *w)
{
    buf_done(&w->pending);
    buf_done(&w->rel);
}

/* Moves the last pending text to `out`. */
static void take_last(struct walk *w, struct buf *out)
{
    size_t from = w->pending.n - 1;
    struct err e;

    while (from && w->pending.p[from - 1])
        from--;
    buf_clear(out);
    /* Fits: what is pending came from a buffer of the same ceiling. */
    (void)buf_add(out, span_of(w->pending.p + from, w->pending.n - 1 - from), &e);
    w->pending.n = from;
}

static bool is_over(struct walk *w)
{
    w->seen++;
    if (w->seen > w->limits->max_entries)
        return true;
    /* Each time: a hostile pattern can make one entry cost milliseconds, the clock costs nanoseconds. */
    return w->limits->deadline_ms && time_mono_ms() > w->limits->deadline_ms;
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static unsigned char kind_of(int dir_fd, const struct dirent *d)
{
    struct stat st;

    if (d->d_type != DT_UNKNOWN)
        return d->d_type;
    return fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0
               ? DT_UNKNOWN
               : (unsigned char)IFTODT(st.st_mode);
}

static void visit(struct walk *w, int dir_fd, const char *dir_rel, const struct dirent *d)
{
    unsigned char kind = kind_of(dir_fd, d);
    struct file_tree_entry entry = { dir_fd, d->d_name, NULL, kind == DT_DIR, kind == DT_LNK };
    struct err e;

    buf_clear(&w->rel);
    if (buf_addf(&w->rel, &e, "%s%s%s", dir_rel, dir_rel[0] ? "/" : "", d->d_name) < 0) {
        w->is_cut = true; /* deeper than a path can name */
        return;
    }
    entry.rel = buf_cstr(&w->rel);
    switch (w->each(w->ctx, &entry)) {
    case FILE_TREE_ENTER:
        if (entry.is_dir && buf_add(&w->pending, span_of(entry.rel, w->rel.n + 1), &e) < 0)
            w->is_cut = true;
        break;
    case FILE_TREE_PASS:
        break;
    case FILE_TREE_STOP:
        w->is_stopped = true;
        break;
    }
}

static void read_directory(struct walk *w, int fd, const char *rel)
{
    DIR *dir = fdopendir(fd);

    if (!dir) {
        close(fd);
        return;
    }
    for (struct dirent *d = readdir(dir); d && !w->is_stopped; d = readdir(dir)) {
        if (is_dots(d->d_name))
            continue;
        if (is_over(w)) {
            w->is_cut = w->is_stopped = true;
            break;
        }
        visit(w, fd, rel, d);
    }
    closedir(dir);
}

int file_tree_walk(int start_fd, const struct file_tree_limits *limits, file_tree_fn each,
                   void *ctx, bool *ret_is_cut, struct err *e)
{
    OWN(walk_done)
    struct walk w = { limits, each, ctx, BUF_INIT(FILE_TREE_PENDING_MAX_BYTES),
                      BUF_INIT(PATH_TEXT_MAX_BYTES) };
    OWN(buf_done) struct buf rel = BUF_INIT(PATH_TEXT_MAX_BYTES);

    if (buf_addc(&w.pending, '\0', e) < 0)
        return -1;
    while (w.pending.n && !w.is_stopped) {
        int fd;

        take_last(&w, &rel);
        /* From the start each time: by names without links, so what was swapped meanwhile cannot lead out. */
        fd = path_open_plain(start_fd, buf_cstr(&rel), O_RDONLY | O_DIRECTORY);
        if (fd < 0 && !rel.n)
            return err_sys(e, "cannot read the directory");
        if (fd >= 0)
            read_directory(&w, fd, buf_cstr(&rel));
    }
    *ret_is_cut = w.is_cut;
    return 0;
}
