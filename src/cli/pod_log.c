#include "cli/pod_log.h"

#include "base/fd.h"
#include "ev/timer.h"
#include "podstream/log_filter.h"
#include "sandbox/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define PIECE_BYTES   (64 * 1024)
#define OUTPUT_MAX    (8 << 20) /* of one piece: each of its lines may gain a time */
#define LOOK_AGAIN_MS 50

struct pod_log {
    struct ev_loop *loop;
    const struct pod_log_events *events;
    void *ctx;
    int fd;
    struct logs reader;
    struct log_filter filter;
    struct pod_log_wish wish;
    char since[64];
    struct buf out;
    bool is_paused;
    struct ev_task task;
    struct ev_timer look_again;
};

static void pump(void *ctx);

static void count_line(void *ctx, const struct logs_entry *entry)
{
    uint64_t *lines = ctx;

    *lines += entry->is_end;
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

/* ---- files ---- */

static int open_file(int dir_fd, const struct pod_request *r, int *ret_fd, struct err *e)
{
    OWN_FD int pod_fd = -1, container_fd = -1;
    char name[1024];

    (void)snprintf(name, sizeof name, "%s_%s_%s", r->ns, r->pod, r->uid);
    pod_fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    container_fd = openat(pod_fd, r->container, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *ret_fd = openat(container_fd, r->log.is_previous ? "previous.log" : "current.log",
                     O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (*ret_fd >= 0)
        return 0;
    if (r->log.is_previous)
        return err_set(e, ERR_INVALID,
                       "previous terminated container \"%s\" in pod \"%s\" not found", r->container,
                       r->pod);
    return err_set(e, ERR_INVALID, "container \"%s\" in pod \"%s\" is not available", r->container,
                   r->pod);
}

/* Lines that come before the last `tail` ones. */
static int count_skipped(int fd, uint64_t tail, uint64_t *ret, struct err *e)
{
    static uint8_t piece[PIECE_BYTES];
    uint64_t lines = 0;
    struct logs reader;
    off_t at = 0;
    ssize_t n;

    logs_init(&reader, count_line, &lines);
    while ((n = pread(fd, piece, sizeof piece, at)) > 0) {
        logs_feed(&reader, span_of(piece, (size_t)n));
        at += n;
    }
    logs_done(&reader);
    *ret = lines > tail ? lines - tail : 0;
    return n < 0 ? err_sys(e, "cannot read the log") : 0;
}

/* ---- reading ---- */

static void log_free(void *obj)
{
    struct pod_log *l = obj;

    own_fd_close(&l->fd);
    logs_done(&l->reader);
    buf_done(&l->out);
    free(l);
}

void pod_log_leave(struct pod_log *l)
{
    ev_post_cancel(&l->task);
    ev_timer_stop(l->loop, &l->look_again);
    ev_free_later(l->loop, l, log_free);
}

static void finish(struct pod_log *l, const struct err *e)
{
    l->events->on_end(l->ctx, e);
    pod_log_leave(l);
}

static bool is_removed(int fd)
{
    struct stat st;

    return fstat(fd, &st) < 0 || st.st_nlink == 0;
}

static void pump_soon(struct pod_log *l)
{
    if (!l->task.is_queued && !l->is_paused)
        ev_post(l->loop, &l->task, pump, l);
}

/* One piece; the next in a later turn. */
static void pump(void *ctx)
{
    static uint8_t piece[PIECE_BYTES];
    struct pod_log *l = ctx;
    struct err e;
    bool is_last;
    ssize_t n;

    if (l->is_paused)
        return;
    is_last = is_removed(l->fd); /* asked first: then all of it is there to be read */
    n = read(l->fd, piece, sizeof piece);
    if (n < 0) {
        (void)err_sys(&e, "cannot read the log");
        finish(l, &e);
        return;
    }
    logs_feed(&l->reader, span_of(piece, (size_t)n));
    if (l->out.n)
        l->events->on_output(l->ctx, buf_span(&l->out));
    buf_clear(&l->out);
    if (log_filter_is_full(&l->filter) || (n == 0 && (is_last || !l->wish.is_followed)))
        finish(l, NULL);
    else if (n == 0)
        ev_timer_start(l->loop, &l->look_again, LOOK_AGAIN_MS, pump, l);
    else
        pump_soon(l);
}

void pod_log_pause(struct pod_log *l, bool is_paused)
{
    l->is_paused = is_paused;
    if (is_paused)
        ev_post_cancel(&l->task);
    else if (!ev_timer_is_running(&l->look_again))
        pump_soon(l);
}

int pod_log_open(struct ev_loop *loop, int dir_fd, const struct pod_request *r,
                 const struct pod_log_events *events, void *ctx, struct pod_log **ret,
                 struct err *e)
{
    OWN_FD int fd = -1;

    if (open_file(dir_fd, r, &fd, e) < 0 || pod_log_start(loop, fd, r, events, ctx, ret, e) < 0)
        return -1;
    (void)take_fd(&fd);
    return 0;
}

int pod_log_start(struct ev_loop *loop, int fd, const struct pod_request *r,
                  const struct pod_log_events *events, void *ctx, struct pod_log **ret,
                  struct err *e)
{
    struct pod_log *l;
    uint64_t skip = 0;

    if (r->log.tail != UINT64_MAX && count_skipped(fd, r->log.tail, &skip, e) < 0)
        return -1;
    l = NEW(struct pod_log);
    l->loop = loop;
    l->events = events;
    l->ctx = ctx;
    l->fd = fd;
    l->wish = r->log;
    (void)snprintf(l->since, sizeof l->since, "%s", r->log.since);
    l->wish.since = l->since;
    l->out.max = OUTPUT_MAX;
    logs_init(&l->reader, take_entry, l);
    log_filter_init(&l->filter, &l->wish, skip);
    pump_soon(l);
    *ret = l;
    return 0;
}
