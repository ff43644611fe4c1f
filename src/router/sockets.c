#include "router/sockets.h"

#include "base/log.h"
#include "base/packet.h"
#include "base/time.h"
#include "ev/io.h"
#include "ev/timer.h"
#include "net/inside.h"
#include "router/limits.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* Sockets of AF_INET in one Pod's network that nobody has used yet. */
struct row {
    char pod[INSIDE_POD_BYTES]; /* "": free */
    int fds[INSIDE_COUNT_MAX];
    size_t n;
    uint64_t asked_ms;
};

struct sockets {
    struct dial_plug base;
    struct ev_loop *loop;
    struct net_addr at;
    int fd; /* -1: not connected */
    struct ev_io io;
    struct ev_timer retry, sweep;
    uint64_t retry_ms;
    bool is_told;                     /* the log has it that nobody is there */
    struct dial_errand *first, **end; /* oldest first, as the answers come */
    uint64_t last_id;
    struct row rows[SOCKETS_AHEAD_PODS];
};

enum errand_state {
    ERRAND_WAITING, /* to be asked for */
    ERRAND_ASKED,
    ERRAND_CONNECTING,
    ERRAND_ENDING, /* the verdict stands and is told in a later turn */
};

struct dial_errand {
    struct dial_errand *next, **link;
    struct sockets *of;
    enum errand_state state;
    struct inside_ask ask;
    uint16_t port;
    bool is_old; /* its socket was made ahead */
    struct ev_timer deadline;
    struct ev_task task;
    struct dial *dial;
    struct err verdict;
    dial_plug_fn fn;
    void *ctx;
};

static void ask_all(struct sockets *s);
static void want_one(struct dial_errand *x, int family);

/* ---- the end of an errand ---- */

static void finish(struct dial_errand *x, int fd, const struct err *e)
{
    struct sockets *s = x->of;

    ev_timer_stop(s->loop, &x->deadline);
    *x->link = x->next;
    if (x->next)
        x->next->link = x->link;
    else
        s->end = x->link;
    x->fn(x->ctx, fd, e);
    ev_free_later(s->loop, x, free);
}

static void finish_later(void *ctx)
{
    struct dial_errand *x = ctx;

    finish(x, -1, &x->verdict);
}

/* x->verdict says why. */
static void end_soon(struct dial_errand *x)
{
    bool was_connecting = x->state == ERRAND_CONNECTING;

    x->state = ERRAND_ENDING;
    ev_timer_stop(x->of->loop, &x->deadline);
    if (was_connecting)
        dial_cancel(x->dial); /* on_dialed ends it */
    else
        ev_post(x->of->loop, &x->task, finish_later, x);
}

static void cancel(struct dial_errand *x)
{
    if (x->state == ERRAND_ENDING)
        return;
    (void)err_set(&x->verdict, ERR_CANCELED, "connecting into a Pod was called off");
    end_soon(x);
}

static void too_late(void *ctx)
{
    struct dial_errand *x = ctx;

    (void)err_set(&x->verdict, ERR_UNAVAILABLE, "the node gave no socket within %d ms",
                  SOCKETS_WAIT_MS);
    end_soon(x);
}

/* ---- sockets made ahead ---- */

static struct row *row_of(struct sockets *s, const char *pod)
{
    for (size_t i = 0; i < LEN(s->rows); i++)
        if (strcmp(s->rows[i].pod, pod) == 0)
            return &s->rows[i];
    return NULL;
}

static void drop_row(struct row *r)
{
    while (r->n)
        (void)close(r->fds[--r->n]);
    *r = (struct row){ .n = 0 };
}

static void sweep(void *ctx)
{
    struct sockets *s = ctx;
    uint64_t now = time_mono_ms();
    bool is_any = false;

    for (size_t i = 0; i < LEN(s->rows); i++) {
        if (s->rows[i].pod[0] && now - s->rows[i].asked_ms >= SOCKETS_AHEAD_MS)
            drop_row(&s->rows[i]);
        is_any = is_any || s->rows[i].pod[0];
    }
    if (is_any)
        ev_timer_start(s->loop, &s->sweep, SOCKETS_AHEAD_MS, sweep, s);
}

/* How many to ask for: some ahead for a Pod that was asked for a moment ago. Takes the place of who was not for longest. */
static unsigned count_for(struct sockets *s, const char *pod)
{
    struct row *r = row_of(s, pod);
    unsigned count = r ? INSIDE_COUNT_MAX : 1;

    if (!r) {
        r = &s->rows[0];
        for (size_t i = 1; i < LEN(s->rows); i++)
            if (s->rows[i].asked_ms < r->asked_ms)
                r = &s->rows[i];
        drop_row(r);
        (void)snprintf(r->pod, sizeof r->pod, "%s", pod);
    }
    r->asked_ms = time_mono_ms();
    if (!ev_timer_is_running(&s->sweep))
        ev_timer_start(s->loop, &s->sweep, SOCKETS_AHEAD_MS, sweep, s);
    return count;
}

static void keep(struct sockets *s, const struct inside_ask *ask, int fd)
{
    struct row *r = ask && ask->family == AF_INET ? row_of(s, ask->pod) : NULL;

    if (r && r->n < LEN(r->fds))
        r->fds[r->n++] = fd;
    else
        (void)close(fd);
}

/* ---- connecting ---- */

static void on_dialed(void *ctx, struct dial_result *r, const struct err *e)
{
    struct dial_errand *x = ctx;
    struct row *row;

    x->dial = NULL;
    if (x->state == ERRAND_ENDING) {
        if (!e)
            (void)close(r->fd);
        finish(x, -1, &x->verdict);
    } else if (!e) {
        finish(x, r->fd, NULL);
    } else if (e->code == ERR_UNAVAILABLE && x->is_old) {
        row = row_of(x->of, x->ask.pod);
        if (row)
            drop_row(row);
        want_one(x, AF_INET);
    } else if (e->code == ERR_UNAVAILABLE && x->ask.family == AF_INET) {
        want_one(x, AF_INET6);
    } else {
        finish(x, -1, e);
    }
}

static void connect_inside(struct dial_errand *x, int fd)
{
    struct net_addr at = { .len = 0 };
    struct sockaddr_in *v4 = (void *)&at.sa;
    struct sockaddr_in6 *v6 = (void *)&at.sa;

    if (x->ask.family == AF_INET) {
        *v4 = (struct sockaddr_in){ .sin_family = AF_INET,
                                    .sin_port = htons(x->port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        at.len = sizeof *v4;
    } else {
        *v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
                                     .sin6_port = htons(x->port),
                                     .sin6_addr = in6addr_loopback };
        at.len = sizeof *v6;
    }
    x->state = ERRAND_CONNECTING;
    ev_timer_stop(x->of->loop, &x->deadline);
    x->dial = dial_start(
        x->of->loop, &(struct dial_spec){ .addr = &at, .fd = fd, .timeout_ms = SOCKETS_CONNECT_MS },
        on_dialed, x);
}

/* ---- the node ---- */

static void go_on(void *ctx)
{
    ask_all(ctx);
}

static void retry_later(struct sockets *s)
{
    if (ev_timer_is_running(&s->retry))
        return;
    ev_timer_start(s->loop, &s->retry, s->retry_ms, go_on, s);
    s->retry_ms = MIN(2 * s->retry_ms, (uint64_t)SOCKETS_RETRY_MAX_MS);
}

/* It went away: what it was asked is asked again. */
static void lost(struct sockets *s, const struct err *e)
{
    if (e->code != ERR_CLOSED)
        log_warn("sockets.node", KV("err", e));
    ev_io_close(&s->io);
    own_fd_close(&s->fd);
    for (struct dial_errand *x = s->first; x; x = x->next)
        if (x->state == ERRAND_ASKED)
            x->state = ERRAND_WAITING;
    if (s->first)
        retry_later(s);
}

static struct dial_errand *asked(const struct sockets *s, uint64_t id)
{
    struct dial_errand *x = s->first;

    while (x && (x->ask.id != id || x->state != ERRAND_ASKED))
        x = x->next;
    return x;
}

static void take_answer(struct sockets *s, const struct inside_answer *answer, const int *fds,
                        size_t n)
{
    struct dial_errand *x = asked(s, answer->id);
    struct inside_ask ask = { 0 };
    size_t first = 0;

    if (x)
        ask = x->ask;
    if (x && !answer->error[0] && n) {
        connect_inside(x, fds[first++]);
    } else if (x) {
        (void)err_set(&x->verdict, answer->is_unknown ? ERR_NOT_FOUND : ERR_UNAVAILABLE, "%s",
                      answer->error[0] ? answer->error : "the node sent no socket");
        finish(x, -1, &x->verdict);
    }
    for (size_t i = first; i < n; i++)
        keep(s, x ? &ask : NULL, fds[i]);
}

static void on_ready(void *ctx, unsigned ready)
{
    struct sockets *s = ctx;
    uint8_t bytes[INSIDE_ANSWER_MAX_BYTES];
    struct inside_answer answer;
    struct err e;

    (void)ready;
    while (s->fd >= 0) {
        struct iovec part = { bytes, sizeof bytes };
        int fds[INSIDE_COUNT_MAX];
        size_t fd_count = LEN(fds), n;

        if (packet_receive(s->fd, &part, 1, &n, fds, &fd_count, &e) < 0) {
            if (e.code != ERR_BUSY)
                lost(s, &e);
            break;
        }
        s->retry_ms = SOCKETS_RETRY_MIN_MS;
        s->is_told = false;
        if (inside_answer_read(span_of(bytes, n), &answer, &e) < 0) {
            while (fd_count)
                (void)close(fds[--fd_count]);
            lost(s, &e);
            break;
        }
        take_answer(s, &answer, fds, fd_count);
    }
    if (s->fd >= 0)
        ask_all(s); /* there may be room again */
}

static int connect_node(struct sockets *s, struct err *e)
{
    OWN_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_sys(e, "cannot make a socket");
    if (connect(fd, (const struct sockaddr *)&s->at.sa, s->at.len) < 0)
        return err_sys(e, "cannot connect to the node");
    if (ev_io_open(&s->io, s->loop, fd, on_ready, s, e) < 0)
        return -1;
    s->fd = take_fd(&fd);
    ev_io_want(&s->io, EV_READ);
    return 0;
}

static int send_ask(struct sockets *s, struct dial_errand *x, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(INSIDE_ASK_MAX_BYTES);
    struct iovec part;

    if (inside_ask_write(&x->ask, &text, e) < 0)
        return -1;
    part = (struct iovec){ text.p, text.n };
    return packet_send(s->fd, &part, 1, NULL, 0, e);
}

/* Says what has not been said yet. */
static void ask_all(struct sockets *s)
{
    struct err e;

    if (!s->first || ev_timer_is_running(&s->retry))
        return;
    if (s->fd < 0 && connect_node(s, &e) < 0) {
        if (!s->is_told)
            log_warn("sockets.node", KV("err", &e));
        s->is_told = true;
        retry_later(s);
        return;
    }
    for (struct dial_errand *x = s->first; x; x = x->next) {
        if (x->state != ERRAND_WAITING)
            continue;
        if (send_ask(s, x, &e) < 0) {
            if (e.code == ERR_BUSY)
                retry_later(s);
            else
                lost(s, &e);
            return;
        }
        x->state = ERRAND_ASKED;
    }
}

/* ---- the beginning of an errand ---- */

static void want_one(struct dial_errand *x, int family)
{
    struct sockets *s = x->of;

    x->state = ERRAND_WAITING;
    x->is_old = false;
    x->ask.id = ++s->last_id;
    x->ask.family = family;
    x->ask.count = family == AF_INET ? count_for(s, x->ask.pod) : 1;
    ev_timer_start(s->loop, &x->deadline, SOCKETS_WAIT_MS, too_late, x);
    ask_all(s);
}

static struct dial_errand *start(struct dial_plug *p, const char *place, uint16_t port,
                                 dial_plug_fn fn, void *ctx)
{
    struct sockets *s = CONTAINER(p, struct sockets, base);
    struct dial_errand *x = NEW(struct dial_errand);
    struct row *r = row_of(s, place);

    x->of = s;
    x->port = port;
    x->fn = fn;
    x->ctx = ctx;
    (void)snprintf(x->ask.pod, sizeof x->ask.pod, "%s", place);
    x->link = s->end;
    *s->end = x;
    s->end = &x->next;
    if (r && r->n) {
        x->ask.family = AF_INET;
        x->is_old = true;
        r->asked_ms = time_mono_ms();
        connect_inside(x, r->fds[--r->n]);
    } else {
        want_one(x, AF_INET);
    }
    return x;
}

/* ---- life ---- */

static const struct dial_plug_ops ops = { start, cancel };

struct dial_plug *sockets_new(struct ev_loop *loop, const struct net_addr *at)
{
    struct sockets *s = NEW(struct sockets);

    s->base.ops = &ops;
    s->loop = loop;
    s->at = *at;
    s->fd = -1;
    s->end = &s->first;
    s->retry_ms = SOCKETS_RETRY_MIN_MS;
    return &s->base;
}

void sockets_free(struct dial_plug *p)
{
    struct sockets *s;

    if (!p)
        return;
    s = CONTAINER(p, struct sockets, base);
    assert(!s->first);
    ev_timer_stop(s->loop, &s->retry);
    ev_timer_stop(s->loop, &s->sweep);
    if (s->fd >= 0)
        ev_io_close(&s->io);
    own_fd_close(&s->fd);
    for (size_t i = 0; i < LEN(s->rows); i++)
        drop_row(&s->rows[i]);
    ev_free_later(s->loop, s, free);
}
