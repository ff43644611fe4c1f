#include "node/sockets.h"

#include "base/log.h"
#include "base/time.h"
#include "base/packet.h"
#include "ev/io.h"
#include "net/inside.h"
#include "net/listen.h"
#include "net/peer.h"
#include "node/limits.h"
#include "node/node_impl.h"

#include <sys/socket.h>

/* Somebody who asks. */
struct asker {
    struct asker *next, **link;
    struct sockets *of;
    int fd;
    struct ev_io io;
    struct errand *under_way, *made; /* made: what the socket had no room for yet, in order */
    struct errand **made_end;
    size_t count; /* of both */
};

/* One thing asked. */
struct errand {
    struct errand *next, **link;
    struct asker *asker; /* NULL: it has gone */
    struct crew_job job;
    struct inside_ask ask;
    char box[RUN_NAME_BYTES];
    int fds[INSIDE_COUNT_MAX];
    size_t n;
    struct inside_answer answer;
};

struct sockets {
    struct node *node;
    struct net_listener *listener;
    struct asker *askers;
    size_t count;
    struct log_limit denied;
};

static void errand_free(struct errand *x)
{
    for (size_t i = 0; i < x->n; i++)
        (void)close(x->fds[i]);
    free(x);
}

/* ---- those who ask ---- */

static void leave(struct asker *a)
{
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
    a->of->count--;
    for (struct errand *x = a->under_way; x; x = x->next)
        x->asker = NULL; /* a thread has it; it ends by itself */
    for (struct errand *x = a->made, *next; x; x = next) {
        next = x->next;
        errand_free(x);
    }
    ev_io_close(&a->io);
    own_fd_close(&a->fd);
    ev_free_later(a->of->node->loop, a, free);
}

/* Reads while there is room for more to do, writes while something waits to leave. */
static void want(struct asker *a)
{
    ev_io_want(&a->io,
               (a->count < NODE_SOCKET_ASKS_MAX ? EV_READ : 0u) | (a->made ? EV_WRITE : 0u));
}

/* False: not now, or never. */
static bool send_answer(struct asker *a, struct errand *x, bool *is_lost)
{
    OWN(buf_done) struct buf text = BUF_INIT(INSIDE_ANSWER_MAX_BYTES);
    struct iovec part;
    struct err e;

    if (inside_answer_write(&x->answer, &text, &e) < 0) { /* its words do not fit */
        buf_clear(&text);
        (void)snprintf(x->answer.error, sizeof x->answer.error, "no socket could be made inside");
        (void)inside_answer_write(&x->answer, &text, &e);
    }
    part = (struct iovec){ text.p, text.n };
    if (packet_send(a->fd, &part, 1, x->fds, x->n, &e) == 0)
        return true;
    *is_lost = e.code != ERR_BUSY;
    return false;
}

static void flush(struct asker *a)
{
    bool is_lost = false;

    while (a->made) {
        struct errand *x = a->made;

        if (!send_answer(a, x, &is_lost)) {
            if (is_lost)
                leave(a);
            else
                want(a);
            return;
        }
        a->made = x->next;
        if (!a->made)
            a->made_end = &a->made;
        a->count--;
        errand_free(x);
    }
    want(a);
}

/* ---- what they ask ---- */

static void run(void *ctx, struct engine *en, const struct err *e)
{
    struct errand *x = ctx;
    struct err why;

    if (!en) {
        (void)snprintf(x->answer.error, sizeof x->answer.error, "%.390s", e->msg);
        return;
    }
    while (x->n < x->ask.count) {
        if (engine_socket(en, x->box, x->ask.family, SOCK_STREAM | SOCK_NONBLOCK, &x->fds[x->n],
                          &why) < 0)
            break;
        x->n++;
    }
    if (!x->n)
        (void)snprintf(x->answer.error, sizeof x->answer.error, "%.390s", why.msg);
}

static void finish(struct errand *x)
{
    struct asker *a = x->asker;

    x->next = NULL;
    *a->made_end = x;
    a->made_end = &x->next;
    flush(a);
}

static void made(void *ctx)
{
    struct errand *x = ctx;

    if (!x->asker) {
        errand_free(x);
        return;
    }
    *x->link = x->next;
    if (x->next)
        x->next->link = x->link;
    finish(x);
}

static void begin(struct asker *a, const struct inside_ask *ask)
{
    struct node *n = a->of->node;
    struct errand *x = NEW(struct errand);
    struct record *r = record_find_uid(n, ask->pod);
    size_t at = r && r->pod ? record_running(r) : SIZE_MAX;

    x->asker = a;
    x->ask = *ask;
    x->answer.id = ask->id;
    a->count++;
    if (at == SIZE_MAX) {
        x->answer.is_unknown = !r || !r->pod;
        (void)snprintf(x->answer.error, sizeof x->answer.error,
                       x->answer.is_unknown ? "there is no Pod with the uid %s here"
                                            : "no container of the Pod with the uid %s runs",
                       ask->pod);
        finish(x);
        return;
    }
    record_box(r, at, r->life.v[at].now.attempt, x->box);
    x->link = &a->under_way;
    x->next = a->under_way;
    if (x->next)
        x->next->link = &x->next;
    a->under_way = x;
    crew_submit(n->crew, &x->job, run, made, x);
}

/* False: no more for now, or it has gone. */
static bool take_ask(struct asker *a)
{
    uint8_t bytes[INSIDE_ASK_MAX_BYTES];
    struct iovec part = { bytes, sizeof bytes };
    struct inside_ask ask;
    struct err e;
    size_t n;

    if (packet_receive(a->fd, &part, 1, &n, NULL, NULL, &e) < 0) {
        if (e.code == ERR_BUSY)
            return false;
        if (e.code != ERR_CLOSED)
            log_warn("sockets.ask", KV("err", &e));
        leave(a);
        return false;
    }
    if (inside_ask_read(span_of(bytes, n), &ask, &e) < 0) {
        log_warn("sockets.ask", KV("err", &e));
        leave(a);
        return false;
    }
    begin(a, &ask); /* may find that it has gone */
    return a->fd >= 0 && a->count < NODE_SOCKET_ASKS_MAX;
}

static void on_ready(void *ctx, unsigned ready)
{
    struct asker *a = ctx;
    unsigned asks = 0;

    if ((ready & EV_WRITE) && a->made) {
        flush(a);
        return; /* it may have gone; what it asks is still there in the next turn */
    }
    while (asks++ < NODE_SOCKET_ASKS_MAX && take_ask(a))
        ;
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct sockets *s = ctx;
    struct asker *a;
    struct err e;

    if (!net_peer_is_ours(fd, peer) || s->count >= NODE_SOCKET_ASKERS_MAX) {
        if (log_limit_pass(&s->denied, time_mono_ms()))
            log_warn("sockets.denied", KV("askers", s->count), KV("count", s->denied.count));
        (void)close(fd);
        return;
    }
    a = NEW(struct asker);
    a->of = s;
    a->fd = fd;
    a->made_end = &a->made;
    a->link = &s->askers;
    a->next = s->askers;
    if (a->next)
        a->next->link = &a->next;
    s->askers = a;
    s->count++;
    if (ev_io_open(&a->io, s->node->loop, fd, on_ready, a, &e) < 0) {
        log_warn("sockets.accept", KV("err", &e));
        leave(a);
        return;
    }
    want(a);
}

/* ---- life ---- */

int sockets_open(struct node *n, int listen_fd, struct sockets **ret, struct err *e)
{
    struct sockets *s = NEW(struct sockets);

    s->node = n;
    if (net_listen_fd(n->loop, listen_fd, on_accept, s, &s->listener, e) < 0) {
        (void)close(listen_fd);
        free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void sockets_close(struct sockets *s)
{
    if (!s)
        return;
    net_listener_close(s->listener);
    while (s->askers)
        leave(s->askers);
    ev_free_later(s->node->loop, s, free);
}
