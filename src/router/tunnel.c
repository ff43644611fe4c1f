#include "router/tunnel.h"

#include "base/log.h"
#include "ev/io.h"
#include "ev/timer.h"
#include "net/listen.h"
#include "net/peer.h"
#include "router/caller.h"
#include "router/limits.h"

#include <errno.h>
#include <sys/socket.h>

/* A connection that has not said yet who calls. */
struct arrival {
    struct arrival *next, **link;
    struct tunnel *tunnel;
    struct net_addr peer;
    int fd;
    struct ev_io io;
    struct ev_timer deadline;
    struct buf text; /* the preface, then what it announces; never a byte more */
    size_t wanted;   /* of it */
};

struct tunnel {
    struct ev_loop *loop;
    struct net_listener *listener;
    struct http_server *to;
    struct arrival *first;
    size_t count;
    struct log_limit strangers, refused; /* those of other accounts; those beyond the ceiling */
};

static void arrival_free(void *obj)
{
    struct arrival *a = obj;

    buf_done(&a->text);
    free(a);
}

/* What has become of its descriptor is the caller's affair. */
static void leave(struct arrival *a)
{
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
    a->tunnel->count--;
    ev_timer_stop(a->tunnel->loop, &a->deadline);
    ev_io_close(&a->io);
    ev_free_later(a->tunnel->loop, a, arrival_free);
}

static void turn_away(struct arrival *a, const struct err *e)
{
    if (e)
        log_warn("router.tunnel", KV("err", e));
    leave(a);
    own_fd_close(&a->fd);
}

static void too_late(void *ctx)
{
    struct err e;

    (void)err_set(&e, ERR_TIMEOUT, "a connection did not say who calls within %d ms",
                  TUNNEL_PREFACE_MS);
    turn_away(ctx, &e);
}

/* All that was announced is there. */
static void arrived(struct arrival *a)
{
    struct caller *caller;
    struct err e;

    if (caller_parse(span_skip(buf_span(&a->text), CALLER_PREFACE_BYTES), &caller, &e) < 0) {
        turn_away(a, &e);
        return;
    }
    leave(a);
    http_server_take_as(a->tunnel->to, take_fd(&a->fd), &caller->base, &a->peer);
}

/* False: nothing more comes for now, or it is over. */
static bool read_more(struct arrival *a)
{
    uint8_t *scratch = ev_scratch(a->tunnel->loop);
    ssize_t n = recv(a->fd, scratch, a->wanted - a->text.n, 0);
    struct err e;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0 || buf_add(&a->text, span_of(scratch, (size_t)n), &e) < 0) {
        turn_away(a, NULL); /* it thought better of it */
        return false;
    }
    if (a->text.n < a->wanted)
        return true;
    if (a->wanted > CALLER_PREFACE_BYTES) {
        arrived(a);
        return false;
    }
    a->wanted += caller_length(a->text.p);
    if (a->wanted > CALLER_PREFACE_BYTES)
        return true;
    (void)err_set(&e, ERR_LIMIT, "who calls has no bytes, or more than %d", CALLER_MAX_BYTES);
    turn_away(a, &e);
    return false;
}

static void on_ready(void *ctx, unsigned ready)
{
    (void)ready;
    while (read_more(ctx))
        ;
}

static bool may_come(struct tunnel *t, int fd, const struct net_addr *peer)
{
    if (!net_peer_is_ours(fd, peer)) {
        if (log_limit_pass(&t->strangers, ev_now_ms(t->loop)))
            log_warn("router.stranger", KV("peer", "the tunnel"), KV("count", t->strangers.count));
        return false;
    }
    if (t->count < TUNNEL_ARRIVALS_MAX)
        return true;
    if (log_limit_pass(&t->refused, ev_now_ms(t->loop)))
        log_warn("router.tunnel", KV("waiting", t->count), KV("count", t->refused.count));
    return false;
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct tunnel *t = ctx;
    struct arrival *a;
    struct err e;

    if (!may_come(t, fd, peer)) {
        (void)close(fd);
        return;
    }
    a = NEW(struct arrival);
    a->tunnel = t;
    a->peer = *peer;
    a->fd = fd;
    a->text.max = CALLER_PREFACE_BYTES + CALLER_MAX_BYTES;
    a->wanted = CALLER_PREFACE_BYTES;
    a->link = &t->first;
    a->next = t->first;
    if (a->next)
        a->next->link = &a->next;
    t->first = a;
    t->count++;
    if (ev_io_open(&a->io, t->loop, fd, on_ready, a, &e) < 0) {
        turn_away(a, &e);
        return;
    }
    ev_io_want(&a->io, EV_READ);
    ev_timer_start(t->loop, &a->deadline, TUNNEL_PREFACE_MS, too_late, a);
}

int tunnel_open(struct ev_loop *loop, int listen_fd, struct http_server *to, struct tunnel **ret,
                struct err *e)
{
    struct tunnel *t;
    int family = 0;
    socklen_t n = sizeof family;

    if (getsockopt(listen_fd, SOL_SOCKET, SO_DOMAIN, &family, &n) < 0 || family != AF_UNIX)
        return err_set(e, ERR_INVALID, "who calls is told on a unix socket only");
    t = NEW(struct tunnel);
    t->loop = loop;
    t->to = to;
    if (net_listen_fd(loop, listen_fd, on_accept, t, &t->listener, e) < 0) {
        free(t);
        return -1;
    }
    *ret = t;
    return 0;
}

void tunnel_close(struct tunnel *t)
{
    if (!t)
        return;
    net_listener_close(t->listener);
    while (t->first)
        turn_away(t->first, NULL);
    ev_free_later(t->loop, t, free);
}
