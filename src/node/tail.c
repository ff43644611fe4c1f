#include "node/tail.h"

#include "ev/timer.h"
#include "isolate/dir.h"
#include "node/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_BYTES 4200

struct tail {
    struct tail_spec spec;
    char *dir;
    struct ev_work work;
    bool is_working, is_left, is_paused;
    /* the threads' */
    int fd; /* -1: none is open */
    bool has_begun;
    uint64_t skip;
    uint8_t *piece;
    size_t n;
    bool is_over;    /* all there will be has been read */
    bool is_waiting; /* all there is now */
    bool has_failed;
    struct err e;
    /* the loop's */
    bool is_told;
    struct logs reader;
    struct ev_timer look_again;
};

static void read_soon(struct tail *t);

/* ---- on a thread ---- */

static int open_file(const struct tail *t, const char *name)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", t->dir, name);
    return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

static void count_line(void *ctx, const struct logs_entry *entry)
{
    *(uint64_t *)ctx += entry->is_end;
}

static uint64_t lines_of(struct tail *t, const char *name)
{
    OWN_FD int fd = open_file(t, name);
    uint64_t lines = 0;
    struct logs reader;
    ssize_t n;

    if (fd < 0)
        return 0;
    logs_init(&reader, count_line, &lines);
    while ((n = read(fd, t->piece, LOG_PIECE_BYTES)) > 0)
        logs_feed(&reader, span_of(t->piece, (size_t)n));
    logs_done(&reader);
    return lines;
}

static void begin(struct tail *t)
{
    uint64_t lines;

    t->has_begun = true;
    if (t->spec.is_from_end) {
        t->fd = open_file(t, DIR_LOG);
        (void)lseek(t->fd, 0, SEEK_END); /* entries are written whole */
        return;
    }
    if (t->spec.lines != UINT64_MAX) {
        lines = lines_of(t, DIR_OLD_LOG) + lines_of(t, DIR_LOG);
        t->skip = lines > t->spec.lines ? lines - t->spec.lines : 0;
    }
    t->fd = open_file(t, DIR_OLD_LOG);
}

static bool is_newest(const struct tail *t)
{
    char path[PATH_BYTES];
    struct stat ours, there;

    (void)snprintf(path, sizeof path, "%s/" DIR_LOG, t->dir);
    return fstat(t->fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* The next file, if there is one: what was the newest becomes the older one when it is full. */
static bool open_next(struct tail *t)
{
    if (t->fd >= 0 && is_newest(t))
        return false;
    own_fd_close(&t->fd);
    t->fd = open_file(t, DIR_LOG);
    return t->fd >= 0;
}

static bool has_ended(const struct tail *t)
{
    char path[PATH_BYTES];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/" DIR_EXIT, t->dir);
    if (stat(path, &st) == 0)
        return true;
    (void)snprintf(path, sizeof path, "%s/" DIR_SPEC, t->dir);
    return stat(path, &st) < 0; /* all of it is gone */
}

static void run(void *ctx)
{
    struct tail *t = ctx;
    bool is_last;
    ssize_t n;

    if (!t->has_begun)
        begin(t);
    is_last = !t->spec.is_followed || has_ended(t); /* asked first: then all of it is there */
    do
        n = t->fd >= 0 ? read(t->fd, t->piece, LOG_PIECE_BYTES) : 0;
    while (n == 0 && open_next(t));
    t->n = n > 0 ? (size_t)n : 0;
    t->has_failed = n < 0;
    if (n < 0)
        (void)err_sys(&t->e, "cannot read the log");
    t->is_waiting = n == 0;
    t->is_over = n == 0 && is_last;
}

/* ---- on the loop ---- */

static void tail_free(void *obj)
{
    struct tail *t = obj;

    own_fd_close(&t->fd);
    logs_done(&t->reader);
    free(t->piece);
    free(t->dir);
    free(t);
}

void tail_leave(struct tail *t)
{
    if (t->is_left)
        return;
    t->is_left = true;
    ev_timer_stop(t->spec.loop, &t->look_again);
    if (!t->is_working)
        ev_free_later(t->spec.loop, t, tail_free);
}

static void finish(struct tail *t, const struct err *e)
{
    t->spec.events->on_end(t->spec.ctx, e);
    tail_leave(t);
}

static void on_entry(void *ctx, const struct logs_entry *entry)
{
    struct tail *t = ctx;

    if (!t->is_left)
        t->spec.events->on_entry(t->spec.ctx, entry);
}

static void again(void *ctx)
{
    read_soon(ctx);
}

static void done(void *ctx)
{
    struct tail *t = ctx;
    bool is_wanted;

    t->is_working = false;
    if (t->is_left) {
        ev_free_later(t->spec.loop, t, tail_free);
        return;
    }
    if (!t->is_told && t->spec.events->on_begin)
        t->spec.events->on_begin(t->spec.ctx, t->skip);
    t->is_told = true;
    logs_feed(&t->reader, span_of(t->piece, t->n));
    is_wanted = t->is_left || t->spec.events->on_piece(t->spec.ctx);
    if (t->is_left)
        return; /* within one of them; tail_leave frees it */
    if (t->has_failed || t->work.is_canceled || t->is_over || !is_wanted)
        finish(t, t->has_failed ? &t->e : NULL);
    else if (t->is_waiting)
        ev_timer_start(t->spec.loop, &t->look_again, LOG_LOOK_AGAIN_MS, again, t);
    else
        read_soon(t);
}

static void read_soon(struct tail *t)
{
    if (t->is_working || t->is_paused)
        return;
    t->is_working = true;
    ev_pool_submit(t->spec.files, &t->work, run, done, t);
}

void tail_pause(struct tail *t, bool is_paused)
{
    t->is_paused = is_paused;
    if (!is_paused && !ev_timer_is_running(&t->look_again))
        read_soon(t);
}

struct tail *tail_start(const struct tail_spec *spec)
{
    struct tail *t = NEW(struct tail);

    t->spec = *spec;
    t->dir = own_strdup(spec->dir);
    t->fd = -1;
    t->piece = own_new(LOG_PIECE_BYTES);
    logs_init(&t->reader, on_entry, t);
    read_soon(t);
    return t;
}
