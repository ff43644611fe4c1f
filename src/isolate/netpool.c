#include "isolate/netpool.h"

#include "isolate/inside.h"

#include <fcntl.h>
#include <sched.h>

static int make(struct err *e)
{
    int fd;

    if (unshare(CLONE_NEWNET) < 0)
        return err_sys(e, "cannot make a network namespace");
    if (inside_bring_up_loopback(e) < 0)
        return -1;
    fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "cannot open a network namespace") : fd;
}

void netpool_open(struct netpool *p)
{
    struct err e;

    *p = (struct netpool){ .home_fd = make(&e) };
    p->is_on = p->home_fd >= 0;
}

bool netpool_fill(struct netpool *p)
{
    struct err e;
    int fd;

    if (!p->is_on || p->n == NETPOOL_MAX)
        return false;
    fd = make(&e);
    netpool_leave(p);
    if (fd < 0)
        return false;
    p->fds[p->n++] = fd;
    return true;
}

int netpool_take(struct netpool *p)
{
    return p->n ? p->fds[--p->n] : -1;
}

void netpool_leave(const struct netpool *p)
{
    if (p->is_on)
        (void)setns(p->home_fd, CLONE_NEWNET); /* our own: nothing can be wrong with it */
}

void netpool_done(struct netpool *p)
{
    while (p->n)
        own_fd_close(&p->fds[--p->n]);
    if (p->is_on)
        own_fd_close(&p->home_fd);
    p->is_on = false;
}
