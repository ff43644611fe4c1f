#include "ev/io.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/limits.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

static void watch(struct ev_io *io, struct ev_loop *loop, int fd, ev_io_fn fn, void *ctx)
{
    io->poll = NEW(struct ev_poll);
    *io->poll = (struct ev_poll){ .loop = loop, .fn = fn, .ctx = ctx, .fd = fd };
}

int ev_io_open(struct ev_io *io, struct ev_loop *loop, int fd, ev_io_fn fn, void *ctx,
               struct err *e)
{
    int on = 1;

    if (ioctl(fd, FIONBIO, &on) < 0)
        return err_sys(e, "cannot watch descriptor %d", fd);
    watch(io, loop, fd, fn, ctx);
    return 0;
}

int ev_io_open_shared(struct ev_io *io, struct ev_loop *loop, int fd, ev_io_fn fn, void *ctx,
                      struct err *e)
{
    struct epoll_event event = { 0 };

    /* Whether epoll takes it shows only when it is asked to. */
    if (epoll_ctl(ev_loop_epoll(loop), EPOLL_CTL_ADD, fd, &event) < 0) {
        (void)err_sys(e, "cannot watch descriptor %d", fd);
        if (e->sys == EPERM)
            e->code = ERR_UNSUPPORTED;
        return -1;
    }
    (void)epoll_ctl(ev_loop_epoll(loop), EPOLL_CTL_DEL, fd, NULL);
    watch(io, loop, fd, fn, ctx);
    return 0;
}

void ev_poll_ready(struct ev_poll *p, uint32_t epoll_events)
{
    unsigned ready = 0;
    uint64_t start, took;

    if (p->is_closed)
        return;
    if (epoll_events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        ready |= EV_READ;
    if (epoll_events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        ready |= EV_WRITE;
    if (epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        ready |= EV_END;
    start = time_coarse_ms();
    p->fn(p->ctx, ready); /* may close io: p itself lives to the end of the turn */
    took = time_coarse_ms() - start;
    if (took > EV_SLOW_CALLBACK_MS)
        log_warn("ev.slow", KV("what", "io"), KV("ms", took));
}

/* A descriptor nobody waits for is taken out: epoll reports a hang-up even where no event was asked for. */
void ev_io_want(struct ev_io *io, unsigned events)
{
    struct ev_poll *p = io->poll;
    struct epoll_event event = { 0 };
    int r, op;

    if (!p || p->wanted == events)
        return;
    event.data.ptr = p;
    event.events = (events & EV_READ ? EPOLLIN | EPOLLRDHUP : 0u) |
                   (events & EV_WRITE ? EPOLLOUT : 0u) |
                   (events & EV_EDGE ? (uint32_t)EPOLLET : 0u);
    op = !p->wanted ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
    p->wanted = events;
    r = epoll_ctl(ev_loop_epoll(p->loop), op, p->fd, &event);
    assert(r == 0); /* ours to get right: an open descriptor that can be polled */
}

unsigned ev_io_wanted(const struct ev_io *io)
{
    return io->poll ? io->poll->wanted : 0;
}

bool ev_io_is_open(const struct ev_io *io)
{
    return io->poll != NULL;
}

void ev_io_close(struct ev_io *io)
{
    struct ev_poll *p = take_ptr(&io->poll);

    if (!p)
        return;
    p->is_closed = true;
    if (p->wanted)
        (void)epoll_ctl(ev_loop_epoll(p->loop), EPOLL_CTL_DEL, p->fd, NULL);
    ev_loop_bury_poll(p->loop, p);
}
