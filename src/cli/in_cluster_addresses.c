#include "cli/in_cluster_addresses.h"

#include "base/log.h"
#include "base/packet.h"
#include "ev/io.h"
#include "ev/timer.h"
#include "isolate/dir.h"
#include "node/node.h"

#include <string.h>
#include <sys/socket.h>

/* Between two tries; the node waits longer for us after its start. */
#define RETRY_FIRST_MS 5
#define RETRY_MOST_MS  500

struct in_cluster_addresses {
    struct ev_loop *loop;
    int dir_fd, fd;
    struct ev_io io;
    struct ev_timer again;
    uint64_t wait_ms;
    const char *namespace;
    ev_fn ready; /* NULL: it was called */
    void *ctx;
};

static void connect_node(void *ctx);

static void retry(struct in_cluster_addresses *a, const struct err *e)
{
    log_debug("addresses.retry", KV("err", e));
    ev_io_close(&a->io);
    own_fd_close(&a->fd);
    ev_timer_start(a->loop, &a->again, a->wait_ms, connect_node, a);
    a->wait_ms = MIN(a->wait_ms * 2, (uint64_t)RETRY_MOST_MS);
}

static void on_readable(void *ctx, unsigned ready)
{
    struct in_cluster_addresses *a = ctx;
    ev_fn say = a->ready;
    uint8_t bytes[64];
    struct iovec part = { bytes, sizeof bytes };
    struct err e;
    size_t n;

    (void)ready;
    if (packet_receive(a->fd, &part, 1, &n, NULL, NULL, &e) < 0) {
        if (e.code != ERR_BUSY)
            retry(a, &e);
        return;
    }
    if (!span_is(span_of(bytes, n), NODE_ADDRESSES_READY))
        return;
    a->wait_ms = RETRY_FIRST_MS;
    a->ready = NULL;
    if (say)
        say(a->ctx);
}

static void connect_node(void *ctx)
{
    struct in_cluster_addresses *a = ctx;
    struct iovec part = { (void *)a->namespace, strlen(a->namespace) };
    struct err e;

    if (dir_connect(a->dir_fd, NODE_ADDRESSES_FILE, SOCK_SEQPACKET, &a->fd, &e) < 0 ||
        packet_send(a->fd, &part, 1, NULL, 0, &e) < 0 ||
        ev_io_open(&a->io, a->loop, a->fd, on_readable, a, &e) < 0)
        retry(a, &e);
    else
        ev_io_want(&a->io, EV_READ);
}

struct in_cluster_addresses *in_cluster_addresses_open(struct ev_loop *loop, int dir_fd,
                                                       const char *namespace, ev_fn ready,
                                                       void *ctx)
{
    struct in_cluster_addresses *a = NEW(struct in_cluster_addresses);

    a->loop = loop;
    a->dir_fd = dir_fd;
    a->fd = -1;
    a->namespace = namespace;
    a->ready = ready;
    a->ctx = ctx;
    a->wait_ms = RETRY_FIRST_MS;
    connect_node(a);
    return a;
}

void in_cluster_addresses_close(struct in_cluster_addresses *a)
{
    if (!a)
        return;
    ev_timer_stop(a->loop, &a->again);
    ev_io_close(&a->io);
    own_fd_close(&a->fd);
    free(a);
}
