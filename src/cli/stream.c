#include "cli/stream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

#define READ_BYTES (32 * 1024)

/* 0: it can be waited for; 1: it is always ready. */
static int watch(struct ev_io *io, struct ev_loop *loop, int fd, ev_io_fn fn, void *ctx,
                 bool *ret_is_always_ready, struct err *e)
{
    if (ev_io_open_shared(io, loop, fd, fn, ctx, e) == 0)
        return 0;
    *ret_is_always_ready = true;
    return e->code == ERR_UNSUPPORTED ? 0 : -1;
}

/* ---- out ---- */

static bool is_ready(int fd, short events)
{
    struct pollfd p = { .fd = fd, .events = events };

    return poll(&p, 1, 0) > 0;
}

static void tell_change(void *ctx)
{
    struct stream_out *o = ctx;

    o->on_change(o->ctx);
}

/* A pipe that is ready takes PIPE_BUF bytes without blocking, a terminal is as good as never full. */
static size_t write_some(struct stream_out *o, struct span bytes)
{
    size_t done = 0;

    while (done < bytes.n && !o->is_broken) {
        size_t n = o->is_always_ready ? bytes.n - done : MIN(bytes.n - done, (size_t)PIPE_BUF);
        ssize_t r;

        if (!o->is_always_ready && !is_ready(o->fd, POLLOUT))
            break;
        r = write(o->fd, bytes.p + done, n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0 && errno == EAGAIN)
            break; /* somebody made it non-blocking */
        if (r < 0)
            o->is_broken = true;
        else
            done += (size_t)r;
    }
    return done;
}

static void on_writable(void *ctx, unsigned ready)
{
    struct stream_out *o = ctx;

    (void)ready;
    buf_consume(&o->queue, write_some(o, buf_span(&o->queue)));
    if (o->queue.n && !o->is_broken)
        return;
    ev_io_want(&o->io, 0);
    buf_clear(&o->queue);
    o->on_change(o->ctx);
}

int stream_out_open(struct stream_out *o, struct ev_loop *loop, int fd, size_t max_bytes,
                    ev_fn on_change, void *ctx, struct err *e)
{
    *o = (struct stream_out){ .loop = loop, .fd = fd, .on_change = on_change, .ctx = ctx };
    o->queue.max = max_bytes;
    return watch(&o->io, loop, fd, on_writable, o, &o->is_always_ready, e);
}

void stream_out_write(struct stream_out *o, struct span bytes)
{
    bool was_broken = o->is_broken;
    struct err e;
    int r;

    if (was_broken)
        return;
    if (!o->queue.n)
        bytes = span_skip(bytes, write_some(o, bytes));
    if (o->is_broken) {
        ev_post(o->loop, &o->task, tell_change, o);
        return;
    }
    if (!bytes.n)
        return;
    r = buf_add(&o->queue, bytes, &e);
    assert(r == 0);
    if (o->is_always_ready) /* non-blocking by somebody's choice, yet not to be waited for: no such thing */
        on_writable(o, EV_WRITE);
    else
        ev_io_want(&o->io, EV_WRITE);
}

bool stream_out_is_empty(const struct stream_out *o)
{
    return o->queue.n == 0;
}

void stream_out_close(struct stream_out *o)
{
    ev_post_cancel(&o->task);
    ev_io_close(&o->io);
    buf_done(&o->queue);
}

/* ---- in ---- */

static void read_some(struct stream_in *i)
{
    uint8_t *p = ev_scratch(i->loop);
    ssize_t r = read(i->fd, p, READ_BYTES);

    if (r < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (r <= 0)
        stream_in_want(i, false);
    i->on_read(i->ctx, span_of(p, r > 0 ? (size_t)r : 0));
}

static void on_readable(void *ctx, unsigned ready)
{
    (void)ready;
    read_some(ctx);
}

static void read_file(void *ctx)
{
    struct stream_in *i = ctx;

    if (!i->is_wanted)
        return;
    read_some(i);
    if (i->is_wanted && !i->task.is_queued)
        ev_post(i->loop, &i->task, read_file, i);
}

int stream_in_open(struct stream_in *i, struct ev_loop *loop, int fd,
                   void (*on_read)(void *ctx, struct span bytes), void *ctx, struct err *e)
{
    *i = (struct stream_in){ .loop = loop, .fd = fd, .on_read = on_read, .ctx = ctx };
    return watch(&i->io, loop, fd, on_readable, i, &i->is_always_ready, e);
}

void stream_in_want(struct stream_in *i, bool is_wanted)
{
    i->is_wanted = is_wanted;
    if (!i->is_always_ready)
        ev_io_want(&i->io, is_wanted ? EV_READ : 0);
    else if (is_wanted && !i->task.is_queued)
        ev_post(i->loop, &i->task, read_file, i);
}

void stream_in_close(struct stream_in *i)
{
    i->is_wanted = false;
    ev_post_cancel(&i->task);
    ev_io_close(&i->io);
}
