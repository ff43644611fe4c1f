#include "router/router.h"

#include "base/log.h"
#include "net/host_addrs.h"
#include "net/listen.h"
#include "net/peer.h"
#include "router/hop.h"
#include "router/tunnel.h"

/* A way in, open. */
struct way {
    struct router *router;
    const struct router_door *door;
    struct net_listener *listener;
    char address[NET_ADDR_TEXT_BYTES]; /* "": closed */
};

struct router {
    struct router_config config;
    struct ev_loop *loop;
    struct http_server *http;
    struct http_server *closed; /* for connections of strangers: refuses whatever they ask */
    struct way plain, tls;
    struct tunnel *tunnel;
    struct host_addrs *host;
    struct secure *secure;
    struct hops hops;
    struct log_limit strangers; /* connections of other accounts */
};

static void on_request(void *ctx, struct http_exchange *x)
{
    struct router *r = ctx;

    hop_start(&r->hops, x);
}

static void on_stranger(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_answer_detail(x, 403,
                       "Only the router's own user is served, by a process that holds its end "
                       "of the connection; see --allow-unauthenticated.");
}

/* One line a second at most: another account must not fill the owner's disk with lines. */
static void log_stranger(struct router *r, const struct net_addr *peer)
{
    char text[NET_ADDR_TEXT_BYTES];

    if (log_limit_pass(&r->strangers, ev_now_ms(r->loop)))
        log_warn("router.stranger", KV("peer", net_addr_text(peer, text)),
                 KV("count", r->strangers.count));
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct way *way = ctx;
    struct router *r = way->router;
    struct http_server *to = r->http;
    struct conn_filter *filter = NULL;
    struct err e;

    if (way->door->is_owner_only && !net_peer_is_ours(fd, peer)) {
        log_stranger(r, peer);
        to = r->closed;
    }
    if (way == &r->tls && secure_filter(r->secure, fd, &filter, &e) < 0) {
        log_warn("router.accept", KV("err", &e));
        (void)close(fd);
        return;
    }
    if (filter)
        http_server_take(to, fd, filter, peer);
    else
        http_server_accept(to, fd, peer);
}

/* Whatever the status of a Pod or a name's addresses say: nothing on this machine, and nothing that is no Pod's. */
static bool may_connect(void *ctx, const struct net_addr *to)
{
    struct router *r = ctx;
    struct net_addr at = *to;

    net_addr_unmap(&at);
    if (net_addr_is_loopback(&at))
        return r->config.rules.is_loopback_allowed;
    return net_addr_is_unicast(&at) && !host_addrs_has(r->host, &at);
}

static void open_sides(struct router *r)
{
    struct http_server_config server = { .on_request = on_request,
                                         .ctx = r,
                                         .head_max_bytes = HTTP_HEAD_MAX_BYTES,
                                         .head_timeout_ms = HTTP_SERVER_HEAD_TIMEOUT_MS,
                                         .idle_timeout_ms = ROUTER_CLIENT_IDLE_MS,
                                         .stall_timeout_ms = r->config.rules.timeout_ms,
                                         .max_connections = ROUTER_CONNECTIONS_MAX,
                                         .files_each = 2 };
    const struct http_client_config client = { .resolver = r->config.resolver,
                                               .may_connect = may_connect,
                                               .may_ctx = r,
                                               .idle_max = ROUTER_IDLE_MAX,
                                               .idle_per_target_max = ROUTER_IDLE_PER_HOST_MAX,
                                               .idle_ms = ROUTER_IDLE_MS,
                                               .request_max_bytes = ROUTER_HEAD_MAX_BYTES + 1024 };

    r->http = http_server_new(r->loop, &server);
    server.on_request = on_stranger;
    server.max_connections = ROUTER_REFUSALS_MAX;
    r->closed = http_server_new(r->loop, &server);
    r->hops = (struct hops){ .config = &r->config,
                             .loop = r->loop,
                             .client = http_client_new(r->loop, &client),
                             .tracer = r->config.tracer,
                             .tally = tally_new(r->config.board, r->config.seat),
                             .websockets = { .max = r->config.websockets_per_client } };
}

static int open_way(struct router *r, struct way *way, const struct router_door *door,
                    struct err *e)
{
    struct net_addr at;
    int rc;

    way->router = r;
    way->door = door;
    if (door->listen_fd >= 0) {
        rc = net_listen_fd(r->loop, door->listen_fd, on_accept, way, &way->listener, e);
    } else {
        if (!door->listen || !*door->listen)
            return 0;
        if (net_addr_parse(door->listen, &at, e) < 0)
            return -1;
        rc = (r->config.is_port_shared ? net_listen_shared : net_listen)(r->loop, &at, on_accept,
                                                                         way, &way->listener, e);
    }
    if (rc == 0)
        (void)net_addr_text(net_listener_addr(way->listener), way->address);
    return rc;
}

static int open_tls(struct router *r, struct err *e)
{
    const struct router_config *c = &r->config;

    if (c->tls.listen_fd < 0 && (!c->tls.listen || !*c->tls.listen))
        return 0;
    if (secure_open(r->loop, &c->certificates, r->hops.tally, &r->secure, e) < 0)
        return -1;
    return open_way(r, &r->tls, &c->tls, e);
}

static int open_tunnel(struct router *r, struct err *e)
{
    int fd = r->config.tunnel.listen_fd;

    return fd < 0 ? 0 : tunnel_open(r->loop, fd, r->http, &r->tunnel, e);
}

int router_open(struct ev_loop *loop, const struct router_config *config, struct router **ret,
                struct err *e)
{
    struct router *r = NEW(struct router);

    r->config = *config;
    r->loop = loop;
    open_sides(r);
    if (host_addrs_open(&r->host, e) < 0 || open_way(r, &r->plain, &r->config.plain, e) < 0 ||
        open_tls(r, e) < 0 || open_tunnel(r, e) < 0) {
        router_close(r);
        return -1;
    }
    *ret = r;
    return 0;
}

const char *router_address(const struct router *r)
{
    return *r->plain.address ? r->plain.address : NULL;
}

const char *router_tls_address(const struct router *r)
{
    return *r->tls.address ? r->tls.address : NULL;
}

static void close_ways(struct router *r)
{
    net_listener_close(take_ptr(&r->plain.listener));
    net_listener_close(take_ptr(&r->tls.listener));
    tunnel_close(take_ptr(&r->tunnel));
}

void router_drain(struct router *r, ev_fn done, void *ctx)
{
    close_ways(r);
    http_server_drain(r->http, done, ctx);
}

void router_close(struct router *r)
{
    if (!r)
        return;
    close_ways(r);
    hops_close(&r->hops);
    http_server_free(r->http);
    http_server_free(r->closed);
    http_client_free(r->hops.client);
    hops_done(&r->hops);
    secure_close(r->secure);
    tally_free(r->hops.tally);
    host_addrs_close(r->host);
    free(r);
}

int router_metrics_write(const struct router *r, struct buf *out, struct err *e)
{
    return tally_write(r->hops.tally, out, e);
}
