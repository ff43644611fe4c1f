#include "isolate/keeper_impl.h"

#include "base/log.h"
#include "isolate/cellar.h"
#include "isolate/limits.h"
#include "base/packet.h"

#include <errno.h>
#include <sys/socket.h>

static void client_free(void *obj)
{
    free(obj);
}

static void close_client(struct client *c)
{
    struct keeper *k = c->keeper;
    struct client **at = &k->clients;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    ev_io_close(&c->io);
    own_fd_close(&c->fd);
    if (c->waits_for && c->waits_for->creator == c)
        kept_disown(c->waits_for);
    k->client_count--;
    ev_free_later(k->loop, c, client_free);
    keeper_rest(k);
}

void client_answer(struct client *c, const struct wire_answer *a)
{
    OWN(buf_done) struct buf text = BUF_INIT(WIRE_MAX_BYTES);
    struct err e;

    c->waits_for = NULL;
    if (wire_write_answer(a, &text, &e) < 0 ||
        packet_send(c->fd, &(struct iovec){ text.p, text.n }, 1, NULL, 0, &e) < 0)
        log_warn("client.answer",
                 KV("err", &e)); /* it has gone, or reads nothing: its socket tells */
}

static void refuse(struct client *c, const struct err *e)
{
    client_answer(c, &(struct wire_answer){ .is_error = true, .e = *e });
}

static void wait_for(struct client *c, const char *name)
{
    struct kept *b = kept_find(c->keeper, name);
    struct wire_answer a = { 0 };
    OWN_FD int fd = -1;
    struct err e;

    memcpy(a.name, name, strlen(name));
    if (b && !b->has_exit) {
        c->waits_for = b;
        return;
    }
    a.has_exit = true;
    if (b)
        a.exit = b->exit;
    else if (dir_open_box(&c->keeper->dir, name, &fd, &e) < 0 ||
             state_get_exit(fd, &a.exit, &e) < 0) {
        refuse(c, &e);
        return;
    }
    client_answer(c, &a);
}

static void remove_box(struct client *c, const char *name)
{
    struct kept *b = kept_find(c->keeper, name);
    struct wire_answer a = { 0 };

    if (b) {
        b->is_removing = true;
        c->waits_for = b;
        kept_kill(b);
        return;
    }
    a.is_error = dir_remove_box(&c->keeper->dir, name, &a.e) < 0;
    memcpy(a.name, name, strlen(name));
    client_answer(c, &a);
}

/* Made once, for all: a millisecond. An account without a user namespace of its own cannot have one. */
static int open_cellar(struct keeper *k, struct err *e)
{
    if (k->cellar_fd < 0 && k->engine_fd < 0 && geteuid() != 0)
        return err_set(e, ERR_UNSUPPORTED, "this account has no user namespace to mount them in");
    if (k->cellar_fd < 0)
        k->cellar_fd = cellar_open(k->engine_fd, e);
    return k->cellar_fd < 0 ? -1 : 0;
}

static void give_cellar(struct client *c)
{
    OWN(buf_done) struct buf text = BUF_INIT(WIRE_MAX_BYTES);
    struct err e;

    if (open_cellar(c->keeper, &e) < 0) {
        refuse(c, &e);
        return;
    }
    if (wire_write_answer(&(struct wire_answer){ 0 }, &text, &e) < 0 ||
        packet_send(c->fd, &(struct iovec){ text.p, text.n }, 1, &c->keeper->cellar_fd, 1, &e) < 0)
        log_warn("client.answer", KV("err", &e));
}

/* Its code is as old as it is: an empty one makes room for a build that may know better. Volumes in memory go with it, and their
 * Pods may be between two containers. */
static void retire(struct client *c)
{
    struct keeper *k = c->keeper;
    size_t volumes = 0;
    struct err e;

    if (k->cellar_fd >= 0 && cellar_count(k->cellar_fd, &volumes, &e) < 0) {
        refuse(c, &e);
        return;
    }
    if (k->box_count || k->client_count > 1 || volumes) {
        (void)err_set(&e, ERR_BUSY, "the keeper has %zu sandboxes, %zu volumes and %zu callers",
                      k->box_count, volumes, k->client_count);
        refuse(c, &e);
        return;
    }
    log_info("keeper.retire", KV("pid", getpid()));
    client_answer(c, &(struct wire_answer){ 0 });
    k->is_stopping = true;
    client_close_all(k);
    keeper_rest(k);
}

static void take_ask(struct client *c, struct span packet)
{
    OWN(wire_ask_done) struct wire_ask ask = { 0 };
    struct err e;

    if (c->waits_for) {
        (void)err_set(&e, ERR_PROTOCOL, "a request while another waits");
        log_warn("client.ask", KV("err", &e));
        close_client(c);
        return;
    }
    if (wire_read_ask(packet, &ask, &e) < 0) {
        refuse(c, &e);
        return;
    }
    c->op = ask.op;
    switch (ask.op) {
    case WIRE_CREATE:
        if (kept_create(c->keeper, &ask, c, &e) < 0)
            refuse(c, &e);
        else
            c->waits_for = kept_find(c->keeper, ask.name);
        break;
    case WIRE_WAIT:
        wait_for(c, ask.name);
        break;
    case WIRE_REMOVE:
        remove_box(c, ask.name);
        break;
    case WIRE_CELLAR:
        give_cellar(c);
        break;
    case WIRE_RETIRE:
        retire(c);
        break;
    }
}

static void on_ask(void *ctx, unsigned ready)
{
    struct client *c = ctx;
    static uint8_t packet[WIRE_MAX_BYTES];
    struct iovec part = { packet, sizeof packet };
    struct err e;
    size_t n;

    (void)ready;
    if (packet_receive(c->fd, &part, 1, &n, NULL, NULL, &e) == 0)
        take_ask(c, span_of(packet, n));
    else if (e.code == ERR_LIMIT)
        refuse(c, &e);
    else if (e.code != ERR_BUSY)
        close_client(c);
}

/* The directory keeps others out; this says the same of whoever was handed a descriptor. */
static bool is_owner(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

static void take_in(struct keeper *k, int fd)
{
    struct client *c = NEW(struct client);
    struct err e;

    c->keeper = k;
    c->fd = fd;
    c->next = k->clients;
    k->clients = c;
    if (++k->client_count == KEEPER_CLIENTS_MAX)
        ev_io_want(&k->listen_io, 0);
    ev_timer_stop(k->loop, &k->linger);
    if (ev_io_open(&c->io, k->loop, fd, on_ask, c, &e) < 0) {
        log_warn("client.open", KV("err", &e));
        close_client(c);
        return;
    }
    ev_io_want(&c->io, EV_READ);
    client_answer(c, &(struct wire_answer){ .is_hello = true });
}

static void on_connection(void *ctx, unsigned ready)
{
    struct keeper *k = ctx;
    int fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)ready;
    if (fd < 0) {
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
            return;
        log_warn("client.accept", KV("errno", errno)); /* out of descriptors: until one is closed */
        ev_io_want(&k->listen_io, 0);
        return;
    }
    if (is_owner(fd))
        take_in(k, fd);
    else
        (void)close(fd);
}

int client_listen(struct keeper *k, struct err *e)
{
    if (dir_listen(k->dir.fd, DIR_ENGINE, SOCK_SEQPACKET, &k->listen_fd, e) < 0 ||
        ev_io_open(&k->listen_io, k->loop, k->listen_fd, on_connection, k, e) < 0)
        return -1;
    ev_io_want(&k->listen_io, EV_READ);
    return 0;
}

void client_close_all(struct keeper *k)
{
    while (k->clients)
        close_client(k->clients);
    ev_io_close(&k->listen_io);
    own_fd_close(&k->listen_fd);
}
