#include "cli/in_cluster_router.h"

#include "base/log.h"
#include "net/dial.h"
#include "net/listen.h"
#include "net/peer.h"
#include "net/relay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROUTER_PORT 8080
#define ADDRESSES_TRIED                                                                            \
    64 /* of 127.32.0.0/16, which Pods do not have; one for each command that runs */
#define LINKS_MAX       1024 /* connections at once; more are closed */
#define DIAL_TIMEOUT_MS 5000
#define SCHEME          "http://"

struct link {
    struct link *next, **at;
    struct in_cluster_router *of;
    int fd; /* until it is joined to the router */
    struct dial *dial;
    struct relay *relay;
};

struct in_cluster_router {
    struct ev_loop *loop;
    struct net_listener *listener;
    struct net_addr router;
    char ip[NET_ADDR_TEXT_BYTES];
    struct link *links;
    size_t count;
};

static void drop(struct link *l)
{
    l->of->count--;
    *l->at = l->next;
    if (l->next)
        l->next->at = l->at;
    own_fd_close(&l->fd);
    free(l);
}

static void on_over(void *ctx)
{
    drop(ctx);
}

static void on_dialed(void *ctx, struct dial_result *d, const struct err *e)
{
    struct link *l = ctx;
    struct conn *outer = NULL, *inner = NULL;
    struct err failed;

    l->dial = NULL;
    if (e) {
        drop(l);
        return;
    }
    if (conn_new(l->of->loop, take_fd(&l->fd), NULL, NULL, NULL, &outer, &failed) < 0) {
        (void)close(d->fd);
        drop(l);
    } else if (conn_new(l->of->loop, d->fd, NULL, NULL, NULL, &inner, &failed) < 0) {
        conn_close(outer);
        drop(l);
    } else {
        l->relay = relay_start(outer, SPAN_NONE, inner, SPAN_NONE, on_over, l);
    }
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct in_cluster_router *r = ctx;
    struct link *l;

    if (r->count == LINKS_MAX || !net_peer_is_ours(fd, peer)) {
        (void)close(fd);
        return;
    }
    l = NEW(struct link);
    l->of = r;
    l->fd = fd;
    l->at = &r->links;
    l->next = r->links;
    if (l->next)
        l->next->at = &l->next;
    r->links = l;
    r->count++;
    l->dial = dial_start(r->loop,
                         &(struct dial_spec){ .addr = &r->router, .timeout_ms = DIAL_TIMEOUT_MS },
                         on_dialed, l);
}

/* The first free one behind a place that differs from process to process. */
static int listen_somewhere(struct in_cluster_router *r, struct err *e)
{
    unsigned first = (unsigned)getpid();

    for (unsigned i = 0; i < ADDRESSES_TRIED; i++) {
        unsigned host = (first + i) % 65534 + 1;
        struct net_addr at;

        (void)snprintf(r->ip, sizeof r->ip, "127.32.%u.%u", host >> 8, host & 255);
        if (!net_addr_of_ip(span_cstr(r->ip), ROUTER_PORT, &at))
            return err_set(e, ERR_INTERNAL, "'%s' is no address", r->ip);
        if (net_listen(r->loop, &at, on_accept, r, &r->listener, e) == 0)
            return 0;
        if (e->sys != EADDRINUSE)
            return -1;
    }
    (void)err_set(e, ERR_EXISTS, "port %d is taken on all addresses", ROUTER_PORT);
    err_hint(e, "names of the router lead nowhere meanwhile; sandboxes are reached all the same");
    return -1;
}

int in_cluster_router_open(struct ev_loop *loop, const char *url, struct in_cluster_router **ret,
                           struct err *e)
{
    OWN_MEM struct in_cluster_router *r = NEW(struct in_cluster_router);

    r->loop = loop;
    if (!span_starts(span_cstr(url), SCHEME))
        return err_set(e, ERR_INVALID, "'%s' is no address of a router", url);
    if (net_addr_parse(url + strlen(SCHEME), &r->router, e) < 0 || listen_somewhere(r, e) < 0)
        return -1;
    *ret = take_ptr(&r);
    return 0;
}

const char *in_cluster_router_ip(const struct in_cluster_router *r)
{
    return r->ip;
}

void in_cluster_router_close(struct in_cluster_router *r)
{
    if (!r)
        return;
    net_listener_close(r->listener);
    for (struct link *l = r->links; l; l = l->next) {
        if (l->relay)
            relay_close(l->relay);
        else
            dial_cancel(l->dial);
    }
    while (r->links)
        ev_loop_turn(r->loop);
    free(r);
}
