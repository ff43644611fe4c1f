#include "podstream/pod_server.h"

#include "base/log.h"
#include "base/time.h"
#include "net/listen.h"
#include "net/peer.h"
#include "podstream/limits.h"
#include "podstream/podstream.h"

#include <unistd.h>

struct pod_server {
    struct podstream *streams;
    struct http_server *http;
    struct net_listener *listener;
    struct log_limit refused;
};

static void on_request(void *ctx, struct http_exchange *x)
{
    struct pod_server *s = ctx;

    if (!podstream_serve(s->streams, x))
        http_answer(x, 404, "text/plain", SPAN("no stream of a pod\n"));
}

/* The directory keeps others out already; this does where somebody opened it. */
static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct pod_server *s = ctx;
    uid_t uid = (uid_t)-1;

    if (net_peer_uid(fd, peer, &uid) && uid == geteuid()) {
        http_server_accept(s->http, fd, peer);
        return;
    }
    if (log_limit_pass(&s->refused, time_mono_ms()))
        log_warn("streams.refused", KV("uid", uid), KV("count", s->refused.count));
    (void)close(fd);
}

int pod_server_open(struct ev_loop *loop, struct pod_backend *backend, int listen_fd,
                    struct pod_server **ret, struct err *e)
{
    struct http_server_config config = { .on_request = on_request,
                                         .head_max_bytes = POD_HEAD_MAX_BYTES };
    struct pod_server *s = NEW(struct pod_server);
    OWN_FD int fd = listen_fd;

    config.ctx = s;
    s->streams = podstream_new(loop, backend);
    s->http = http_server_new(loop, &config);
    if (net_listen_fd(loop, fd, on_accept, s, &s->listener, e) < 0) {
        pod_server_close(s);
        return -1;
    }
    (void)take_fd(&fd);
    *ret = s;
    return 0;
}

void pod_server_close(struct pod_server *s)
{
    if (!s)
        return;
    net_listener_close(s->listener);
    http_server_free(s->http);
    podstream_free(s->streams);
    free(s);
}
