#include "ev/io.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/limits.h"

#include <uv.h>

struct ev_poll {
    uv_poll_t uv;
    ev_io_fn fn;
    void *ctx;
    unsigned wanted;
    bool is_closed;
};

int ev_io_open(struct ev_io *io, struct ev_loop *loop, int fd, ev_io_fn fn, void *ctx, struct err *e)
{
    struct ev_poll *p = NEW(struct ev_poll);
    int r = uv_poll_init(ev_loop_uv(loop), &p->uv, fd);

    if (r < 0) {
        free(p);
        return err_errno(e, -r, "cannot watch descriptor %d", fd);
    }
    p->fn = fn;
    p->ctx = ctx;
    io->poll = p;
    return 0;
}

static void on_ready(uv_poll_t *uv, int status, int events)
{
    struct ev_poll *p = CONTAINER(uv, struct ev_poll, uv);
    unsigned ready = 0;
    uint64_t start, took;

    if (p->is_closed)
        return;
    if (events & UV_READABLE)
        ready |= EV_READ;
    if (events & UV_WRITABLE)
        ready |= EV_WRITE;
    if (status < 0)
        ready = EV_READ | EV_WRITE;
    start = time_mono_ms();
    p->fn(p->ctx, ready); /* may close io: p itself lives until on_closed */
    took = time_mono_ms() - start;
    if (took > EV_SLOW_CALLBACK_MS)
        log_warn("ev.slow", KV("what", "io"), KV("ms", took));
}

void ev_io_want(struct ev_io *io, unsigned events)
{
    struct ev_poll *p = io->poll;

    if (!p || p->wanted == events)
        return;
    p->wanted = events;
    if (events)
        (void)uv_poll_start(&p->uv, (events & EV_READ ? UV_READABLE : 0) | (events & EV_WRITE ? UV_WRITABLE : 0), on_ready);
    else
        (void)uv_poll_stop(&p->uv);
}

unsigned ev_io_wanted(const struct ev_io *io)
{
    return io->poll ? io->poll->wanted : 0;
}

bool ev_io_is_open(const struct ev_io *io)
{
    return io->poll != NULL;
}

static void on_closed(uv_handle_t *h)
{
    free(CONTAINER(h, struct ev_poll, uv));
}

void ev_io_close(struct ev_io *io)
{
    struct ev_poll *p = take_ptr(&io->poll);

    if (!p)
        return;
    p->is_closed = true;
    (void)uv_poll_stop(&p->uv);
    uv_close((uv_handle_t *)&p->uv, on_closed);
}
