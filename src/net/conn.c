/* Longer than a file should be: sending, files, reading and closing move the same few fields of one state machine, and
 * two files would share all of them. */
#include "net/conn.h"

#include "ev/io.h"
#include "ev/limits.h"
#include "ev/timer.h"
#include "net/limits.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

enum conn_state {
    CONN_OPEN,
    CONN_FLUSHING,  /* conn_finish: sending the rest */
    CONN_LINGERING, /* our side ended; reading and dropping */
    CONN_CLOSED,
};

/* A piece of the queue: bytes, or a stretch of a file. */
struct chunk {
    struct chunk *next;
    struct buf mem; /* sent up to `at` */
    size_t at;
    int file_fd; /* -1 for bytes */
    uint64_t offset, left;
    struct ev_pool *pool;
};

struct conn {
    struct conn *next_orphan, **orphan_at; /* in the list of those that are nobody's; else NULL */
    struct ev_loop *loop;
    int fd;
    enum conn_state state;
    bool is_reading, is_eof, was_full, is_file_busy;
    bool is_end_near;           /* behind the bytes that the kernel has */
    bool is_half, is_half_told; /* conn_finish_writing: to end our side, and done so */
    struct ev_io io;
    struct conn_filter *filter;
    const struct conn_events *events;
    void *ctx;
    struct chunk *head, *tail;
    size_t queued, files;   /* bytes in memory; chunks that are files */
    uint64_t sent, dropped; /* dropped: read in CONN_LINGERING */
    uint64_t moved;         /* what conn_moved(), then dropped, was at the last look */
    uint64_t linger_until_ms;
    struct ev_timer linger; /* in CONN_FLUSHING and CONN_LINGERING: looks for a standstill */
    struct ev_task later; /* tells a failure, or goes on reading, outside the verb that found it */
    /* NULL while all is well: most of a connection's bytes otherwise, and rarely needed. */
    struct err *failure;
    struct ev_work file_work; /* one trip of the first chunk's file */
    ssize_t file_got;
    int file_sys;
};

static void on_ready(void *ctx, unsigned ready);
static void pump(struct conn *c);
static void pumped(struct conn *c);
static void settle(struct conn *c);
static bool read_some(struct conn *c);
static void go_on_reading(void *ctx);

/* Of this thread's loops. They close by themselves, but a loop may end before that. */
static _Thread_local struct conn *orphans;

static void chunk_free(struct chunk *ch)
{
    buf_done(&ch->mem);
    own_fd_close(&ch->file_fd);
    free(ch);
}

static void pop(struct conn *c)
{
    struct chunk *ch = c->head;

    c->head = ch->next;
    if (!c->head)
        c->tail = NULL;
    if (ch->file_fd >= 0)
        c->files--;
    chunk_free(ch);
}

static void push(struct conn *c, struct chunk *ch)
{
    if (ch->file_fd >= 0)
        c->files++;
    if (c->tail)
        c->tail->next = ch;
    else
        c->head = ch;
    c->tail = ch;
}

static void conn_free(void *obj)
{
    struct conn *c = obj;

    while (c->head)
        pop(c);
    if (c->filter)
        c->filter->ops->free(c->filter);
    free(c->failure);
    free(c);
}

static void set_failure(struct conn *c, const struct err *e)
{
    if (!c->failure)
        c->failure = NEW(struct err);
    *c->failure = *e;
}

static void leave_orphans(struct conn *c)
{
    if (!c->orphan_at)
        return;
    *c->orphan_at = c->next_orphan;
    if (c->next_orphan)
        c->next_orphan->orphan_at = c->orphan_at;
    c->orphan_at = NULL;
}

/* Freed only when no worker holds its descriptor. */
static void tell_closed(void *ctx)
{
    struct conn *c = ctx;

    c->events->on_close(c->ctx, c->failure);
    leave_orphans(c); /* the owner may just have let it go */
    ev_free_later(c->loop, c, conn_free);
}

/* The only way out. The descriptor stays open while a worker sends on it: its number must not be reused. */
static void end(struct conn *c, const struct err *e)
{
    if (c->state == CONN_CLOSED)
        return;
    c->state = CONN_CLOSED;
    if (e)
        set_failure(c, e);
    else
        free(take_ptr(&c->failure));
    ev_timer_stop(c->loop, &c->linger);
    ev_post_cancel(&c->later);
    ev_io_close(&c->io);
    if (c->is_file_busy) {
        (void)shutdown(c->fd,
                       SHUT_RDWR); /* ends a sendfile that waits; on_file_trip goes on from here */
        return;
    }
    own_fd_close(&c->fd);
    ev_post(c->loop, &c->later, tell_closed, c);
}

/* errno and, where the filter has some, its words. */
static void say_why(struct conn *c, struct err *e)
{
    int sys = errno;
    const char *words = c->filter ? c->filter->ops->error(c->filter) : "";

    (void)err_errno(e, sys, "connection lost");
    /* A filter's own verdict is EPROTO; all else befell the socket: EPIPE, ETIMEDOUT. */
    if (words[0])
        (void)err_set(e, sys == EPROTO ? ERR_PROTOCOL : err_code_of_errno(sys),
                      "connection lost: %s", words);
}

static void end_sys(struct conn *c)
{
    struct err e;

    say_why(c, &e);
    end(c, c->state == CONN_LINGERING ? NULL : &e);
}

/* Writing is over, but the peer may have said why before it went: that is still in the kernel. */
static void fail_later(void *ctx)
{
    struct conn *c = ctx;
    struct err e = *c->failure;

    for (int i = 0; i < CONN_LAST_READS && c->state == CONN_OPEN && read_some(c); i++)
        ;
    end(c, &e);
}

/* A failed write is told in a later turn: it may have been found inside a verb. */
static void fail_soon(struct conn *c)
{
    struct err e;

    if (c->failure)
        return;
    say_why(c, &e);
    set_failure(c, &e);
    ev_post_cancel(&c->later);
    ev_post(c->loop, &c->later, fail_later, c);
}

/* A filter's own bytes make no event: come back for them by ourselves. */
static void read_pending(struct conn *c)
{
    if (c->filter && c->state == CONN_OPEN && c->is_reading && !c->is_eof &&
        c->filter->ops->has_pending(c->filter) && !c->later.is_queued)
        ev_post(c->loop, &c->later, go_on_reading, c);
}

int conn_new(struct ev_loop *loop, int fd, struct conn_filter *filter,
             const struct conn_events *events, void *ctx, struct conn **ret, struct err *e)
{
    struct conn *c = NEW(struct conn);

    if (ev_io_open(&c->io, loop, fd, on_ready, c, e) < 0) {
        free(c);
        (void)close(fd);
        return -1;
    }
    c->loop = loop;
    c->fd = fd;
    c->filter = filter;
    conn_set_events(c, events, ctx);
    c->is_reading = true;
    read_pending(c);
    settle(c);
    *ret = c;
    return 0;
}

/* What to wait for, from the state alone. */
static void settle(struct conn *c)
{
    unsigned events = 0;

    if (c->state == CONN_CLOSED)
        return;
    if (((c->is_reading && c->state == CONN_OPEN) || c->state == CONN_LINGERING) && !c->is_eof)
        events |= EV_READ;
    if (c->head && !c->is_file_busy)
        events |= EV_WRITE;
    /* Instead of the others, not beside them: a handshake that waits for the peer would spin on a writable socket. */
    if (c->filter && c->filter->ops->wants(c->filter))
        events = c->filter->ops->wants(c->filter);
    else if (events && !c->filter)
        events |= EV_EDGE; /* all that is there is read or written anyway */
    if (c->failure)
        events = 0; /* fail_later is on its way, and nothing can be sent */
    ev_io_want(&c->io, events);
}

static ssize_t raw_read(struct conn *c, void *p, size_t n)
{
    return c->filter ? c->filter->ops->read(c->filter, p, n) : recv(c->fd, p, n, 0);
}

static ssize_t raw_write(struct conn *c, struct span s)
{
    return c->filter ? c->filter->ops->write(c->filter, s.p, s.n)
                     : send(c->fd, s.p, s.n, MSG_NOSIGNAL);
}

static void go_on_reading(void *ctx)
{
    on_ready(ctx, EV_READ);
}

/* True when it stopped for the sake of others: more may be there. */
static bool read_some(struct conn *c)
{
    uint8_t *scratch = ev_scratch(c->loop);

    for (int i = 0; i < CONN_READS_PER_TURN; i++) {
        ssize_t n;

        if (c->is_eof || (!(c->is_reading && c->state == CONN_OPEN) && c->state != CONN_LINGERING))
            return false;
        n = raw_read(c, scratch, EV_SCRATCH_BYTES);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        if (n < 0) {
            end_sys(c);
            return false;
        }
        if (n == 0) {
            c->is_eof = true;
            if (c->state == CONN_LINGERING)
                end(c, NULL);
            else
                c->events->on_eof(c->ctx);
            return false;
        }
        if (c->state == CONN_LINGERING)
            c->dropped += (uint64_t)n;
        if (c->state == CONN_OPEN)
            c->events->on_read(c->ctx, span_of(scratch, (size_t)n));
        if ((size_t)n < EV_SCRATCH_BYTES && !c->is_end_near &&
            !(c->filter && c->filter->ops->has_pending(c->filter)))
            return false; /* the socket is empty: save the call that would say so */
    }
    if (c->state != CONN_CLOSED && !c->later.is_queued)
        ev_post(c->loop, &c->later, go_on_reading, c);
    return true;
}

static void on_ready(void *ctx, unsigned ready)
{
    struct conn *c = ctx;

    if (c->filter && c->filter->ops->wants(c->filter) && c->filter->ops->handshake(c->filter) < 0) {
        if (errno != EAGAIN && errno != EINTR)
            end_sys(c);
        settle(c);
        return;
    }
    if ((ready & EV_WRITE) || (c->filter && c->head)) {
        pump(c);
        pumped(c);
    }
    c->is_end_near |= (ready & EV_END) != 0;
    if (c->state != CONN_CLOSED && (ready & EV_READ || c->filter))
        read_some(c);
    settle(c);
}

/* Has the number not changed since the last look? */
static bool is_still(struct conn *c, uint64_t moved)
{
    bool is = moved == c->moved;

    c->moved = moved;
    return is;
}

/* The peer may be in the middle of a long upload, and will read our answer only behind it: closing under it would
 * reset the answer away. So bytes are dropped while they come, within reason. */
static void linger_check(void *ctx)
{
    struct conn *c = ctx;

    if (is_still(c, c->dropped) || ev_now_ms(c->loop) >= c->linger_until_ms)
        end(c, NULL);
    else
        ev_timer_start(c->loop, &c->linger, CONN_LINGER_MS, linger_check, c);
}

/* A peer that stopped reading while the last bytes wait for it. */
static void flush_check(void *ctx)
{
    struct conn *c = ctx;

    if (is_still(c, conn_moved(c)))
        end(c, NULL);
    else
        ev_timer_start(c->loop, &c->linger, CONN_FLUSH_STALL_MS, flush_check, c);
}

/* False while the filter's goodbye waits for the socket, which settle() waits for. */
static bool end_our_side(struct conn *c)
{
    if (c->is_half_told)
        return true;
    if (c->filter && !c->filter->ops->finish(c->filter))
        return false;
    c->is_half_told = true;
    (void)shutdown(c->fd, SHUT_WR);
    return true;
}

static void sent_all(struct conn *c)
{
    if ((c->state != CONN_FLUSHING && !c->is_half) || !end_our_side(c) || c->state != CONN_FLUSHING)
        return;
    c->state = CONN_LINGERING;
    c->moved = c->dropped;
    c->linger_until_ms = ev_now_ms(c->loop) + CONN_LINGER_MAX_MS;
    ev_timer_start(c->loop, &c->linger, c->is_eof ? 0 : CONN_LINGER_MS, linger_check, c);
}

static void file_trip(void *ctx)
{
    struct conn *c = ctx;
    struct chunk *ch = c->head;
    off_t at = (off_t)ch->offset;

    if (c->filter) {
        size_t want = (size_t)MIN(ch->left, (uint64_t)CONN_FILE_READ_BYTES);
        struct err e;

        ch->mem.max = want;
        c->file_got =
            buf_reserve(&ch->mem, want, &e) < 0 ? -1 : pread(ch->file_fd, ch->mem.p, want, at);
    } else {
        c->file_got =
            sendfile(c->fd, ch->file_fd, &at, (size_t)MIN(ch->left, (uint64_t)CONN_SENDFILE_BYTES));
    }
    c->file_sys = c->file_got < 0 ? errno : 0;
}

/* Through a filter the bytes of a trip go out as any others do, before the rest of the file. */
static void put_before(struct conn *c, struct chunk *file, size_t n)
{
    struct chunk *ch = NEW(struct chunk);

    buf_grown(&file->mem, n);
    ch->mem.max = file->mem.max;
    buf_move(&ch->mem, &file->mem);
    ch->file_fd = -1;
    ch->next = c->head;
    c->head = ch;
    c->queued += n;
}

static void on_file_trip(void *ctx)
{
    struct conn *c = ctx;
    struct chunk *ch = c->head;
    uint64_t got = c->file_got > 0 ? (uint64_t)c->file_got : 0;
    struct err e;

    c->is_file_busy = false;
    if (c->state == CONN_CLOSED) {
        own_fd_close(&c->fd);
        ev_post(c->loop, &c->later, tell_closed, c);
        return;
    }
    if (c->file_got == 0) {
        (void)err_set(&e, ERR_CLOSED,
                      "the file became shorter while it was sent: %llu bytes are missing",
                      (unsigned long long)ch->left);
        end(c, &e);
        return;
    }
    if (c->file_got < 0 && c->file_sys != EAGAIN && c->file_sys != EINTR) {
        (void)err_errno(&e, c->file_sys, "cannot send a file");
        end(c, &e);
        return;
    }
    ch->offset += got;
    ch->left -= got;
    if (c->filter && got)
        put_before(c, ch, got);
    else
        c->sent += got;
    if (c->file_got > 0) {
        pump(c);
        pumped(c);
    }
    settle(c);
}

static bool send_chunk(struct conn *c, struct chunk *ch)
{
    while (ch->at < ch->mem.n) {
        ssize_t n = raw_write(c, span_skip(buf_span(&ch->mem), ch->at));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n < 0) {
            fail_soon(c);
            return false;
        }
        ch->at += (size_t)n;
        c->queued -= (size_t)n;
        c->sent += (uint64_t)n;
    }
    return true;
}

static void pump(struct conn *c)
{
    while (c->head && c->state != CONN_CLOSED && !c->is_file_busy && !c->failure) {
        struct chunk *ch = c->head;

        if (ch->file_fd >= 0 && ch->left) {
            c->is_file_busy = true;
            c->file_got = -1; /* a pool that closes never runs the trip */
            c->file_sys = ECANCELED;
            ev_pool_submit(ch->pool, &c->file_work, file_trip, on_file_trip, c);
            return;
        }
        if (ch->file_fd < 0 && !send_chunk(c, ch))
            return;
        if (ch->file_fd >= 0)
            c->was_full = true; /* tell that the file is through */
        pop(c);
    }
}

/* Tells what pump() changed. */
static void pumped(struct conn *c)
{
    if (c->state == CONN_CLOSED || c->is_file_busy || c->failure)
        return;
    if (c->was_full && c->queued <= CONN_LOW_BYTES && !c->files && c->state == CONN_OPEN) {
        c->was_full = false;
        if (c->events->on_drain)
            c->events->on_drain(c->ctx);
    }
    if (!c->head && c->state != CONN_CLOSED)
        sent_all(c);
}

void conn_want_read(struct conn *c, bool is_wanted)
{
    c->is_reading = is_wanted;
    read_pending(c);
    settle(c);
}

/* Sends at once what can be; returns how many bytes went. */
static size_t send_now(struct conn *c, struct span s)
{
    size_t done = 0;

    while (!c->head && !c->is_file_busy && done < s.n && !c->failure) {
        ssize_t n = raw_write(c, span_skip(s, done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            fail_soon(c);
        if (n < 0)
            break;
        done += (size_t)n;
        c->sent += (uint64_t)n;
    }
    return done;
}

static void queue_bytes(struct conn *c, struct span s)
{
    struct chunk *ch = c->tail;
    struct err e;

    if (s.n == 0)
        return;
    c->queued += s.n;
    if (!ch || ch->file_fd >= 0 || buf_room(&ch->mem) < s.n) {
        ch = NEW(struct chunk);
        ch->file_fd = -1;
        ch->mem.max = MAX(s.n, (size_t)CONN_CHUNK_BYTES);
        /* Fits: the ceiling is the larger of both. */
        (void)buf_reserve(&ch->mem, s.n > CONN_CHUNK_BYTES / 4 ? s.n : CONN_CHUNK_BYTES, &e);
        push(c, ch);
    }
    /* Fits: there was room, or it is a chunk sized for it. */
    (void)buf_add(&ch->mem, s, &e);
    if (conn_is_full(c))
        c->was_full = true;
    settle(c);
}

void conn_write(struct conn *c, struct span bytes)
{
    if (c->state != CONN_OPEN || c->failure || c->is_half)
        return;
    queue_bytes(c, span_skip(bytes, send_now(c, bytes)));
}

void conn_write_buf(struct conn *c, struct buf *bytes)
{
    struct chunk *ch;
    size_t done;

    if (c->state == CONN_OPEN && !c->failure && !c->is_half) {
        done = send_now(c, buf_span(bytes));
        if (bytes->n - done > CONN_CHUNK_BYTES) {
            ch = NEW(struct chunk);
            ch->file_fd = -1;
            ch->at = done;
            c->queued += bytes->n - done;
            ch->mem.max = bytes->max;
            buf_move(&ch->mem, bytes);
            push(c, ch);
            if (conn_is_full(c))
                c->was_full = true;
            settle(c);
        } else {
            queue_bytes(c, span_skip(buf_span(bytes), done));
        }
    }
    buf_done(bytes);
}

void conn_write_file(struct conn *c, struct ev_pool *pool, int file_fd, uint64_t offset, uint64_t n)
{
    struct chunk *ch;

    if (c->state != CONN_OPEN || c->failure || c->is_half || n == 0) {
        (void)close(file_fd);
        return;
    }
    ch = NEW(struct chunk);
    ch->file_fd = file_fd;
    ch->offset = offset;
    ch->left = n;
    ch->pool = pool;
    push(c, ch);
    if (c->head == ch)
        pump(c);
    settle(c);
}

const struct conn_filter *conn_filter(const struct conn *c)
{
    return c->filter;
}

size_t conn_queued(const struct conn *c)
{
    return c->queued;
}

bool conn_is_full(const struct conn *c)
{
    return c->queued >= CONN_HIGH_BYTES || c->files;
}

bool conn_is_sending(const struct conn *c)
{
    return c->head != NULL;
}

uint64_t conn_sent(const struct conn *c)
{
    return c->sent;
}

uint64_t conn_moved(const struct conn *c)
{
    int held = 0;

    if (c->fd >= 0)
        (void)ioctl(c->fd, SIOCOUTQ, &held);
    return c->sent - (uint64_t)held;
}

void conn_finish_writing(struct conn *c)
{
    if (c->state != CONN_OPEN || c->is_half || c->failure)
        return;
    c->is_half = true;
    if (!c->head)
        sent_all(c);
    settle(c);
}

void conn_finish(struct conn *c)
{
    if (c->state != CONN_OPEN)
        return;
    c->state = CONN_FLUSHING;
    c->moved = conn_moved(c);
    ev_timer_start(c->loop, &c->linger, CONN_FLUSH_STALL_MS, flush_check, c);
    if (!c->head)
        sent_all(c);
    settle(c);
}

void conn_close(struct conn *c)
{
    end(c, NULL);
}

static void ignore_read(void *ctx, struct span in)
{
    (void)ctx, (void)in;
}

static void ignore_eof(void *ctx)
{
    (void)ctx;
}

static void ignore_close(void *ctx, const struct err *e)
{
    (void)ctx, (void)e;
}

void conn_set_events(struct conn *c, const struct conn_events *events, void *ctx)
{
    static const struct conn_events nobody = { ignore_read, ignore_eof, NULL, ignore_close };

    c->events = events ? events : &nobody;
    c->ctx = ctx;
    leave_orphans(c);
    if (events)
        return;
    c->orphan_at = &orphans;
    c->next_orphan = orphans;
    if (orphans)
        orphans->orphan_at = &c->next_orphan;
    orphans = c;
}

void conn_close_orphans(struct ev_loop *loop)
{
    for (struct conn *c = orphans; c; c = c->next_orphan) {
        if (c->loop == loop)
            conn_close(c);
    }
}

struct conn_filter *conn_get_filter(const struct conn *c)
{
    return c->filter;
}

int conn_fd(const struct conn *c)
{
    return c->fd;
}

struct ev_loop *conn_loop(const struct conn *c)
{
    return c->loop;
}
