#include "cli/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

const int signals_that_end[] = { SIGINT, SIGTERM, SIGHUP, 0 };

static sigset_t set_of(const int *list)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (; *list; list++)
        (void)sigaddset(&set, *list);
    return set;
}

void signals_block(const int *list)
{
    sigset_t set = set_of(list);

    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

static void on_ready(void *ctx, unsigned ready)
{
    struct signals *s = ctx;
    struct signalfd_siginfo info;

    (void)ready;
    while (s->fd > 0 && read(s->fd, &info, sizeof info) == sizeof info)
        s->fn(s->ctx, (int)info.ssi_signo);
}

int signals_open(struct signals *s, struct ev_loop *loop, const int *list, signals_fn fn, void *ctx,
                 struct err *e)
{
    sigset_t set = set_of(list);

    *s = (struct signals){ .fn = fn, .ctx = ctx };
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd < 0) {
        s->fd = 0;
        return err_sys(e, "cannot watch signals");
    }
    if (ev_io_open(&s->io, loop, s->fd, on_ready, s, e) < 0)
        return -1;
    ev_io_want(&s->io, EV_READ);
    return 0;
}

void signals_close(struct signals *s)
{
    ev_io_close(&s->io);
    if (s->fd > 0) /* 0 is standard input, and never ours */
        own_fd_close(&s->fd);
    s->fd = 0;
}
