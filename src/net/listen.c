#include "net/listen.h"

#include "base/log.h"
#include "ev/io.h"
#include "ev/timer.h"
#include "net/limits.h"
#include "net/tcp.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>

struct net_listener {
    struct ev_loop *loop;
    int fd;
    struct ev_io io;
    struct ev_timer pause;
    struct net_addr addr;
    net_accept_fn fn;
    void *ctx;
};

static void resume(void *ctx)
{
    struct net_listener *l = ctx;

    ev_io_want(&l->io, EV_READ);
}

/* A connection that died in the queue, or a network error of it: accept(2) says to go on as if it were EAGAIN. */
static bool is_passing(int sys)
{
    return sys == ECONNABORTED || sys == EINTR || sys == EPROTO || sys == ENETDOWN ||
           sys == ENETUNREACH || sys == EHOSTUNREACH || sys == EPERM;
}

static void on_acceptable(void *ctx, unsigned ready)
{
    struct net_listener *l = ctx;

    (void)ready;
    for (int i = 0; i < NET_ACCEPTS_PER_TURN && l->fd >= 0; i++) { /* fn may close it */
        struct net_addr peer = { .len = sizeof peer.sa };
        int fd =
            accept4(l->fd, (struct sockaddr *)&peer.sa, &peer.len, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0 && is_passing(errno))
            continue;
        if (fd < 0) {
            log_warn("net.accept", KV("errno", errno), KV("retry_ms", NET_ACCEPT_PAUSE_MS));
            ev_io_want(&l->io, 0);
            ev_timer_start(l->loop, &l->pause, NET_ACCEPT_PAUSE_MS, resume, l);
            return;
        }
        l->fn(l->ctx, fd, &peer);
    }
}

int net_listen_fd(struct ev_loop *loop, int fd, net_accept_fn fn, void *ctx,
                  struct net_listener **ret, struct err *e)
{
    /* A peer that is gone, which nobody would notice while its request runs or its stream is silent. */
    static const struct net_tcp_probes probes = { NET_KEEPALIVE_S, NET_KEEPALIVE_S / 4, 4 };
    struct net_listener *l = NEW(struct net_listener);

    l->loop = loop;
    l->fd = fd;
    l->fn = fn;
    l->ctx = ctx;
    l->addr.len = sizeof l->addr.sa;
    if (getsockname(fd, (struct sockaddr *)&l->addr.sa, &l->addr.len) < 0) {
        (void)err_sys(e, "descriptor %d is not a listening socket", fd);
        free(l);
        return -1;
    }
    if (ev_io_open(&l->io, loop, fd, on_acceptable, l, e) < 0) {
        free(l);
        return -1;
    }
    net_tcp_set(fd, &l->addr, &probes);
    ev_io_want(&l->io, EV_READ);
    *ret = l;
    return 0;
}

/* A socket file that nobody answers on is a leftover of a killed process; one that answers is somebody's. A file that
 * is no socket refuses connections too, and is not ours to remove. */
static void remove_dead_socket(const struct net_addr *at)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&at->sa;
    OWN_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;

    if (lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return;
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&at->sa, at->len) < 0 &&
        errno == ECONNREFUSED)
        (void)unlink(un->sun_path);
}

static int make_socket(const struct net_addr *at, bool is_shared, struct err *e)
{
    OWN_FD int fd = socket(at->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char text[NET_ADDR_TEXT_BYTES];
    const int on = 1;

    if (fd < 0)
        return err_sys(e, "cannot make a socket for '%s'", net_addr_text(at, text));
    if (at->sa.ss_family == AF_UNIX) {
        remove_dead_socket(at);
        if (fchmod(fd, 0600) < 0) /* the mode that its file is born with, whatever the umask is */
            return err_sys(e, "cannot keep others from '%s'", net_addr_text(at, text));
    } else {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (is_shared)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&at->sa, at->len) < 0 || listen(fd, NET_BACKLOG) < 0) {
        (void)err_sys(e, "cannot listen on '%s'", net_addr_text(at, text));
        if (e->sys == EADDRINUSE)
            err_hint(e,
                     "another process holds this port: stop it, or choose another with --listen");
        if (e->sys == EACCES)
            err_hint(e, "ports below 1024 need a privilege: choose a higher one with --listen");
        return -1;
    }
    return take_fd(&fd);
}

static int only_socket(int made, int *ret_fd)
{
    if (made < 0)
        return -1;
    *ret_fd = made;
    return 0;
}

int net_listen_socket(const struct net_addr *at, int *ret_fd, struct err *e)
{
    return only_socket(make_socket(at, false, e), ret_fd);
}

int net_listen_socket_shared(const struct net_addr *at, int *ret_fd, struct err *e)
{
    return only_socket(make_socket(at, true, e), ret_fd);
}

static int listen_on(struct ev_loop *loop, int made, net_accept_fn fn, void *ctx,
                     struct net_listener **ret, struct err *e)
{
    OWN_FD int fd = made;

    if (fd < 0 || net_listen_fd(loop, fd, fn, ctx, ret, e) < 0)
        return -1;
    (void)take_fd(&fd);
    return 0;
}

int net_listen(struct ev_loop *loop, const struct net_addr *at, net_accept_fn fn, void *ctx,
               struct net_listener **ret, struct err *e)
{
    return listen_on(loop, make_socket(at, false, e), fn, ctx, ret, e);
}

int net_listen_shared(struct ev_loop *loop, const struct net_addr *at, net_accept_fn fn, void *ctx,
                      struct net_listener **ret, struct err *e)
{
    return listen_on(loop, make_socket(at, true, e), fn, ctx, ret, e);
}

const struct net_addr *net_listener_addr(const struct net_listener *l)
{
    return &l->addr;
}

void net_listener_close(struct net_listener *l)
{
    if (!l)
        return;
    ev_timer_stop(l->loop, &l->pause);
    ev_io_close(&l->io);
    own_fd_close(&l->fd);
    ev_free_later(l->loop, l, free); /* the accept callback may be on the stack */
}
