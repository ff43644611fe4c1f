/* The log of a container: the two files its keeper writes, the older one first. Files are read by threads. */
#include "node/limits.h"
#include "node/node_impl.h"
#include "node/streams.h"

#include "ev/timer.h"
#include "isolate/dir.h"
#include "podstream/log_filter.h"
#include "sandbox/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct pod_log {
    struct node *node;
    struct ev_pool *files;
    struct ev_work work;
    bool is_working, is_left, is_paused;
    const struct pod_log_events *events;
    void *ctx;
    char dir[4096]; /* of the sandbox */
    struct pod_log_wish wish;
    char since[64];
    /* the threads' */
    int fd;         /* -1: none is open */
    bool has_begun; /* the older file was looked for */
    bool is_newest; /* fd is the file that is still written to */
    uint64_t skip;  /* lines that come before the tail */
    uint8_t *piece;
    size_t n;
    bool is_over;    /* all there will be has been read */
    bool is_waiting; /* all there is now */
    bool has_failed;
    struct err e;
    /* the loop's */
    struct logs reader;
    struct log_filter filter;
    bool is_filtering;
    struct buf out;
    struct ev_timer look_again;
};

static void read_soon(struct pod_log *l);

/* ---- on a thread ---- */

static int open_file(const struct pod_log *l, const char *name)
{
    char path[4200];

    (void)snprintf(path, sizeof path, "%s/%s", l->dir, name);
    return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

static void count_line(void *ctx, const struct logs_entry *entry)
{
    *(uint64_t *)ctx += entry->is_end;
}

static uint64_t lines_of(struct pod_log *l, const char *name)
{
    OWN_FD int fd = open_file(l, name);
    uint64_t lines = 0;
    struct logs reader;
    ssize_t n;

    if (fd < 0)
        return 0;
    logs_init(&reader, count_line, &lines);
    while ((n = read(fd, l->piece, LOG_PIECE_BYTES)) > 0)
        logs_feed(&reader, span_of(l->piece, (size_t)n));
    logs_done(&reader);
    return lines;
}

static void begin(struct pod_log *l)
{
    uint64_t lines;

    l->has_begun = true;
    if (l->wish.tail != UINT64_MAX) {
        lines = lines_of(l, DIR_OLD_LOG) + lines_of(l, DIR_LOG);
        l->skip = lines > l->wish.tail ? lines - l->wish.tail : 0;
    }
    l->fd = open_file(l, DIR_OLD_LOG);
}

static bool is_same_file(int fd, const char *path)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* The next file, if there is one: what was the newest becomes the older one when it is full. */
static bool open_next(struct pod_log *l)
{
    char path[4200];

    (void)snprintf(path, sizeof path, "%s/" DIR_LOG, l->dir);
    if (l->fd >= 0 && is_same_file(l->fd, path))
        return false;
    own_fd_close(&l->fd);
    l->fd = open_file(l, DIR_LOG);
    return l->fd >= 0;
}

static bool has_ended(const struct pod_log *l)
{
    char path[4200];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/" DIR_EXIT, l->dir);
    if (stat(path, &st) == 0)
        return true;
    (void)snprintf(path, sizeof path, "%s/" DIR_SPEC, l->dir);
    return stat(path, &st) < 0; /* all of it is gone */
}

static void run(void *ctx)
{
    struct pod_log *l = ctx;
    bool is_last;
    ssize_t n = 0;

    if (!l->has_begun)
        begin(l);
    is_last = !l->wish.is_followed || has_ended(l); /* asked first: then all of it is there */
    do {
        if (l->fd >= 0)
            n = read(l->fd, l->piece, LOG_PIECE_BYTES);
    } while (n == 0 && open_next(l));
    l->n = n > 0 ? (size_t)n : 0;
    l->has_failed = n < 0;
    if (n < 0)
        (void)err_sys(&l->e, "cannot read the log");
    l->is_waiting = n == 0;
    l->is_over = n == 0 && is_last;
}

/* ---- on the loop ---- */

static void log_free(void *obj)
{
    struct pod_log *l = obj;

    own_fd_close(&l->fd);
    logs_done(&l->reader);
    buf_done(&l->out);
    free(l->piece);
    free(l);
}

void log_leave(struct pod_log *l)
{
    l->is_left = true;
    ev_timer_stop(l->node->loop, &l->look_again);
    if (!l->is_working)
        ev_free_later(l->node->loop, l, log_free);
}

static void finish(struct pod_log *l, const struct err *e)
{
    l->events->on_end(l->ctx, e);
    if (!l->is_left)
        log_leave(l);
}

static void take_entry(void *ctx, const struct logs_entry *entry)
{
    struct pod_log *l = ctx;
    const struct log_entry shown = {
        .time = entry->time,
        .stream = entry->stream == SANDBOX_STDOUT ? POD_STDOUT : POD_STDERR,
        .is_end = entry->is_end,
        .text = entry->text,
    };

    log_filter_add(&l->filter, &shown, &l->out);
}

static void again(void *ctx)
{
    read_soon(ctx);
}

static void done(void *ctx)
{
    struct pod_log *l = ctx;

    l->is_working = false;
    if (l->is_left) {
        ev_free_later(l->node->loop, l, log_free);
        return;
    }
    if (!l->is_filtering)
        log_filter_init(&l->filter, &l->wish, l->skip);
    l->is_filtering = true;
    logs_feed(&l->reader, span_of(l->piece, l->n));
    if (l->out.n)
        l->events->on_output(l->ctx, buf_span(&l->out));
    buf_clear(&l->out);
    if (l->is_left)
        return; /* within on_output */
    if (l->has_failed || l->work.is_canceled || l->is_over || log_filter_is_full(&l->filter))
        finish(l, l->has_failed ? &l->e : NULL);
    else if (l->is_waiting)
        ev_timer_start(l->node->loop, &l->look_again, LOG_LOOK_AGAIN_MS, again, l);
    else
        read_soon(l);
}

static void read_soon(struct pod_log *l)
{
    if (l->is_working || l->is_paused)
        return;
    l->is_working = true;
    ev_pool_submit(l->files, &l->work, run, done, l);
}

void log_pause(struct pod_log *l, bool is_paused)
{
    l->is_paused = is_paused;
    if (!is_paused && !ev_timer_is_running(&l->look_again))
        read_soon(l);
}

/* ---- which ---- */

/* Which attempt's; -1: it has none. */
static int choose(const struct record *record, size_t at, const struct pod_request *r,
                  uint32_t *ret_attempt, struct err *e)
{
    const struct life_container *c = &record->life.v[at];

    if (r->log.is_previous) {
        if (!c->before.has_box)
            return err_set(e, ERR_INVALID,
                           "previous terminated container \"%s\" in pod \"%s\" not found",
                           r->container, r->pod);
        *ret_attempt = c->before.attempt;
        return 0;
    }
    if (c->now.has_box) {
        *ret_attempt = c->now.attempt;
        return 0;
    }
    if (c->before.has_box) {
        *ret_attempt = c->before.attempt;
        return 0;
    }
    return err_set(e, ERR_INVALID, "container \"%s\" in pod \"%s\" is waiting to start: %s",
                   r->container, r->pod, c->wait_reason ? c->wait_reason : "ContainerCreating");
}

int log_open_of(struct node *n, struct ev_pool *files, const struct pod_request *r,
                const struct pod_log_events *events, void *ctx, struct pod_log **ret, struct err *e)
{
    struct record *record = record_find(n, r->ns, r->pod);
    size_t at = record ? record_container(record, r->container) : SIZE_MAX;
    char box[RUN_NAME_BYTES];
    uint32_t attempt;
    struct pod_log *l;

    if (at == SIZE_MAX)
        return err_set(e, ERR_NOT_FOUND, "container not found (\"%s\")", r->container);
    if (choose(record, at, r, &attempt, e) < 0)
        return -1;
    record_box(record, at, attempt, box);
    l = NEW(struct pod_log);
    l->node = n;
    l->files = files;
    l->events = events;
    l->ctx = ctx;
    l->fd = -1;
    l->piece = own_new(LOG_PIECE_BYTES);
    (void)snprintf(l->dir, sizeof l->dir, "%s/sandboxes/%s", crew_dir(n->crew), box);
    l->wish = r->log;
    (void)snprintf(l->since, sizeof l->since, "%s", r->log.since);
    l->wish.since = l->since;
    l->out.max = LOG_OUTPUT_MAX;
    logs_init(&l->reader, take_entry, l);
    read_soon(l);
    *ret = l;
    return 0;
}
