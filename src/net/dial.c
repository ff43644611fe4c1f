#include "net/dial.h"

#include "ev/io.h"
#include "ev/timer.h"
#include "net/limits.h"
#include "net/tcp.h"

#include <errno.h>

#define DIAL_NAME_BYTES  256 /* a DNS name has at most 253 */
#define DIAL_PLACE_BYTES 64  /* a Pod's uid has 36 */

enum dial_state {
    DIAL_STARTING,
    DIAL_RESOLVING,
    DIAL_PLUGGING, /* somebody else connects */
    DIAL_CONNECTING,
    DIAL_SHAKING_HANDS,
    DIAL_ENDING, /* the verdict stands and is told in a later turn */
    DIAL_FINISHED,
};

struct attempt {
    struct dial *dial;
    int fd;    /* -1 when over */
    size_t at; /* in addrs */
    struct ev_io io;
};

struct dial {
    struct ev_loop *loop;
    enum dial_state state;
    char host[DIAL_NAME_BYTES], peer_name[DIAL_NAME_BYTES];
    uint16_t port;
    int given_fd;
    uint64_t timeout_ms;
    struct conn_filter_maker *maker;
    struct dial_resolver *resolver;
    bool (*may_connect)(void *ctx, const struct net_addr *to);
    void *may_ctx;
    struct dial_lookup *lookup;
    struct dial_plug *plug; /* NULL: it connects itself */
    char place[DIAL_PLACE_BYTES];
    struct dial_errand *errand;
    struct net_addr addrs[DIAL_ADDRS_MAX];
    size_t addr_count, next; /* next to try */
    struct attempt attempts[DIAL_ADDRS_MAX];
    struct ev_timer deadline, stagger;
    struct ev_task task;
    int fd; /* the winner */
    size_t fd_at;
    struct ev_io io;
    struct conn_filter *filter;
    struct err verdict;
    dial_done_fn done;
    void *ctx;
};

static void try_next(void *ctx);

/* "'example.org:443'" or, where an address was given, that. */
static const char *where(const struct dial *d, char text[DIAL_NAME_BYTES + 16])
{
    char addr[NET_ADDR_TEXT_BYTES];

    if (d->host[0])
        (void)snprintf(text, DIAL_NAME_BYTES + 16, strchr(d->host, ':') ? "[%s]:%u" : "%s:%u",
                       d->host, d->port);
    else
        (void)snprintf(text, DIAL_NAME_BYTES + 16, "%s", net_addr_text(&d->addrs[0], addr));
    return text;
}

static void stop_attempts(struct dial *d)
{
    ev_timer_stop(d->loop, &d->stagger);
    for (size_t i = 0; i < LEN(d->attempts); i++) {
        ev_io_close(&d->attempts[i].io);
        own_fd_close(&d->attempts[i].fd);
    }
}

static void dial_free(void *obj)
{
    free(obj);
}

/* The only way out: connected, refused, deadline and cancel all end here, once. */
static void finish(struct dial *d, const struct err *e)
{
    struct dial_result r = { .fd = -1 };

    assert(d->state != DIAL_FINISHED);
    d->state = DIAL_FINISHED;
    ev_timer_stop(d->loop, &d->deadline);
    stop_attempts(d);
    ev_io_close(&d->io);
    own_fd_close(&d->given_fd);
    if (!e) {
        r = (struct dial_result){ take_fd(&d->fd), take_ptr(&d->filter), d->addrs[d->fd_at] };
        d->done(d->ctx, &r, NULL); /* the callee owns them now */
    } else {
        if (d->filter)
            d->filter->ops->free(d->filter);
        own_fd_close(&d->fd);
        d->done(d->ctx, NULL, e);
    }
    ev_free_later(d->loop, d, dial_free); /* not now: our caller may still be on the stack */
}

static void finish_later(void *ctx)
{
    struct dial *d = ctx;
    struct err e = d->verdict;

    finish(d, &e);
}

/* Ends it from anywhere: told in a later turn, and not before a lookup or errand has ended that would come back to us. */
static void give_up(struct dial *d)
{
    bool was_resolving = d->state == DIAL_RESOLVING, was_plugging = d->state == DIAL_PLUGGING;

    d->state = DIAL_ENDING;
    ev_timer_stop(d->loop, &d->deadline);
    stop_attempts(d);
    ev_io_close(&d->io);
    ev_post_cancel(&d->task);
    if (was_resolving)
        d->resolver->ops->cancel(d->lookup);
    else if (was_plugging)
        d->plug->ops->cancel(d->errand);
    else
        ev_post(d->loop, &d->task, finish_later, d);
}

static void too_late(void *ctx)
{
    static const char *const doing[] = { "no answer", "the name was not resolved", "no answer",
                                         "no answer", "the handshake was not over" };
    struct dial *d = ctx;
    char text[DIAL_NAME_BYTES + 16];

    (void)err_set(&d->verdict, ERR_TIMEOUT, "cannot connect to '%s': %s within %llu ms",
                  where(d, text), d->state < LEN(doing) ? doing[d->state] : "",
                  (unsigned long long)d->timeout_ms);
    give_up(d);
}

void dial_cancel(struct dial *d)
{
    char text[DIAL_NAME_BYTES + 16];

    if (d->state >= DIAL_ENDING)
        return;
    (void)err_set(&d->verdict, ERR_CANCELED, "connecting to '%s' was called off", where(d, text));
    give_up(d);
}

static void fail_handshake(struct dial *d)
{
    int sys = errno;
    const char *words = d->filter->ops->error(d->filter);
    char text[DIAL_NAME_BYTES + 16];
    struct err e;

    if (words[0])
        (void)err_set(&e, sys == EPROTO ? ERR_PROTOCOL : err_code_of_errno(sys),
                      "cannot connect to '%s': %s", where(d, text), words);
    else
        (void)err_errno(&e, sys, "cannot connect to '%s'", where(d, text));
    finish(d, &e);
}

static void shake(void *ctx, unsigned ready)
{
    struct dial *d = ctx;

    (void)ready;
    if (d->filter->ops->handshake(d->filter) == 0)
        finish(d, NULL);
    else if (errno == EAGAIN || errno == EINTR)
        ev_io_want(&d->io, d->filter->ops->wants(d->filter));
    else
        fail_handshake(d);
}

/* Probes find a dead peer that a watch would wait for forever, as it sends nothing itself. */
static void set_tcp(int fd, const struct net_addr *peer)
{
    static const struct net_tcp_probes probes = { DIAL_KEEPALIVE_S, DIAL_KEEPALIVE_S, 3 };

    net_tcp_set(fd, peer, &probes);
}

/* The first to connect: the others are dropped. */
static void won(struct attempt *a)
{
    struct dial *d = a->dial;
    const char *name = d->peer_name[0] ? d->peer_name : d->host[0] ? d->host : NULL;
    struct err e;

    ev_io_close(&a->io);
    d->fd_at = a->at;
    d->fd = take_fd(&a->fd);
    stop_attempts(d);
    set_tcp(d->fd, &d->addrs[d->fd_at]);
    if (!d->maker) {
        finish(d, NULL);
        return;
    }
    d->state = DIAL_SHAKING_HANDS;
    if (d->maker->make(d->maker, d->fd, name, &d->filter, &e) < 0 ||
        ev_io_open(&d->io, d->loop, d->fd, shake, d, &e) < 0) {
        finish(d, &e);
        return;
    }
    shake(d, 0);
}

/* One failed, d->verdict says why; another may be under way, or to come. */
static void go_on(struct dial *d)
{
    if (d->next < d->addr_count) {
        try_next(d);
        return;
    }
    for (size_t i = 0; i < LEN(d->attempts); i++) {
        if (d->attempts[i].fd >= 0)
            return;
    }
    if (!ev_timer_is_running(&d->stagger))
        finish_later(d);
}

static void lost(struct attempt *a, int sys)
{
    struct dial *d = a->dial;
    char text[DIAL_NAME_BYTES + 16], addr[NET_ADDR_TEXT_BYTES];

    ev_io_close(&a->io);
    own_fd_close(&a->fd);
    (void)err_errno(&d->verdict, sys, "cannot connect to '%s'", where(d, text));
    if (d->host[0] && !net_host_is_ip(span_cstr(d->host)))
        (void)err_errno(&d->verdict, sys, "cannot connect to '%s' at %s", text,
                        net_addr_text(&d->addrs[a->at], addr));
    go_on(d);
}

static void deny(struct dial *d, const struct net_addr *to)
{
    char text[DIAL_NAME_BYTES + 16], addr[NET_ADDR_TEXT_BYTES];

    (void)err_set(&d->verdict, ERR_DENIED, "cannot connect to '%s': %s is not connected to",
                  where(d, text), net_addr_text(to, addr));
    go_on(d);
}

static void on_connected(void *ctx, unsigned ready)
{
    struct attempt *a = ctx;
    socklen_t n = sizeof(int);
    int sys = 0;

    (void)ready;
    if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &sys, &n) < 0)
        sys = errno;
    if (sys)
        lost(a, sys);
    else
        won(a);
}

static void start_attempt(struct attempt *a, const struct net_addr *to)
{
    struct dial *d = a->dial;
    struct err e;

    if (d->may_connect && !d->may_connect(d->may_ctx, to)) {
        deny(d, to);
        return;
    }
    a->fd = d->given_fd >= 0
                ? take_fd(&d->given_fd)
                : socket(to->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0) {
        lost(a, errno);
        return;
    }
    if (ev_io_open(&a->io, d->loop, a->fd, on_connected, a, &e) <
        0) { /* makes a given one non-blocking too */
        lost(a, e.sys);
        return;
    }
    if (connect(a->fd, (const struct sockaddr *)&to->sa, to->len) == 0) {
        won(a);
    } else if (errno == EINPROGRESS) {
        ev_io_want(&a->io, EV_WRITE);
    } else if (errno == EAGAIN && to->sa.ss_family == AF_UNIX) {
        /* The listener's queue is full, and a unix socket has no way to wait for it. */
        ev_io_close(&a->io);
        d->given_fd = take_fd(&a->fd);
        d->next = a->at;
        ev_timer_start(d->loop, &d->stagger, DIAL_UNIX_RETRY_MS, try_next, d);
    } else {
        lost(a, errno);
    }
}

static void try_next(void *ctx)
{
    struct dial *d = ctx;
    size_t i = d->next++;

    d->attempts[i].at = i;
    if (d->next < d->addr_count)
        ev_timer_start(d->loop, &d->stagger, DIAL_STAGGER_MS, try_next, d);
    else
        ev_timer_stop(d->loop, &d->stagger);
    start_attempt(&d->attempts[i], &d->addrs[i]); /* may finish it */
}

/* Alternates the families, the resolver's favourite first: a dead family costs one step, not all its addresses. */
static void take_addrs(struct dial *d, const struct net_addr *addrs, size_t n)
{
    size_t at[2] = { 0, 0 };

    for (bool is_first = true; d->addr_count < DIAL_ADDRS_MAX; is_first = !is_first) {
        size_t *i = &at[is_first ? 0 : 1];

        while (*i < n && (addrs[*i].sa.ss_family == addrs[0].sa.ss_family) != is_first)
            (*i)++;
        if (*i < n)
            d->addrs[d->addr_count++] = addrs[(*i)++];
        else if (at[0] >= n && at[1] >= n)
            break;
    }
    if (d->given_fd >= 0)
        d->addr_count = 1; /* one socket, one attempt */
}

static void on_lookup(void *ctx, const struct net_addr *addrs, size_t n, const struct err *e)
{
    struct dial *d = ctx;
    char text[DIAL_NAME_BYTES + 16];

    d->lookup = NULL;
    if (d->state == DIAL_ENDING) {
        finish_later(d);
        return;
    }
    if (e) {
        d->verdict = *e;
        (void)err_wrap(&d->verdict, "cannot connect to '%s'", where(d, text));
        finish_later(d);
        return;
    }
    d->state = DIAL_CONNECTING;
    take_addrs(d, addrs, n);
    try_next(d);
}

/* RFC 6761 6.3: these names never leave the machine. */
static bool is_localhost(const char *host)
{
    struct span s = span_cstr(host);

    if (span_ends(s, "."))
        s = span_slice(s, 0, s.n - 1);
    return span_is_nocase(s, "localhost") ||
           (s.n > 10 && span_is_nocase(span_skip(s, s.n - 10), ".localhost"));
}

/* What needs no resolver. */
static size_t known_addrs(const struct dial *d, struct net_addr ret[2])
{
    char text[DIAL_NAME_BYTES + 16];
    struct err e;

    if (net_host_is_ip(span_cstr(d->host)))
        return net_addr_parse(where(d, text), &ret[0], &e) == 0 ? 1 : 0;
    if (!is_localhost(d->host))
        return 0;
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", d->port);
    (void)net_addr_parse(text, &ret[0], &e);
    (void)snprintf(text, sizeof text, "[::1]:%u", d->port);
    (void)net_addr_parse(text, &ret[1], &e);
    return 2;
}

static void on_plugged(void *ctx, int fd, const struct err *e)
{
    struct dial *d = ctx;
    struct net_addr peer = { .len = sizeof peer.sa };
    char text[DIAL_NAME_BYTES + 16];

    d->errand = NULL;
    if (d->state == DIAL_ENDING) {
        if (fd >= 0)
            (void)close(fd);
        finish_later(d);
    } else if (!e) {
        d->fd = fd;
        if (getpeername(fd, (struct sockaddr *)&peer.sa, &peer.len) == 0)
            set_tcp(fd, &peer);
        finish(d, NULL);
    } else {
        d->verdict = *e;
        (void)err_wrap(&d->verdict, "cannot connect to '%s'", where(d, text));
        finish_later(d);
    }
}

static void begin(void *ctx)
{
    struct dial *d = ctx;
    struct net_addr known[2];
    size_t n;

    if (d->plug) {
        d->state = DIAL_PLUGGING;
        d->errand = d->plug->ops->start(d->plug, d->place, d->port, on_plugged, d);
        return;
    }
    d->state = DIAL_CONNECTING;
    if (d->addr_count) {
        try_next(d);
        return;
    }
    n = known_addrs(d, known);
    if (n) {
        take_addrs(d, known, n);
        try_next(d);
        return;
    }
    if (!d->resolver || !d->host[0]) {
        (void)err_set(&d->verdict, ERR_INVALID, "cannot connect to '%s': %s", d->host,
                      d->host[0] ? "it is not an IP address, and names are not resolved here"
                                 : "no host, or one that is too long");
        finish_later(d);
        return;
    }
    d->state = DIAL_RESOLVING;
    d->lookup = d->resolver->ops->start(d->resolver, d->host, d->port, on_lookup, d);
}

/* Without the brackets of an IPv6 literal. */
static void keep_name(char to[DIAL_NAME_BYTES], const char *from)
{
    struct span s = span_cstr(from);

    if (span_starts(s, "[") && span_ends(s, "]"))
        s = span_slice(s, 1, s.n - 1);
    if (s.n < DIAL_NAME_BYTES)
        (void)snprintf(to, DIAL_NAME_BYTES, "%.*s", SPAN_ARG(s));
}

struct dial *dial_start(struct ev_loop *loop, const struct dial_spec *spec, dial_done_fn done,
                        void *ctx)
{
    struct dial *d = NEW(struct dial);

    assert(spec->timeout_ms); /* every wait on a peer has a deadline */
    d->loop = loop;
    d->port = spec->port;
    d->fd = -1;
    d->given_fd = spec->fd > 0 ? spec->fd : -1;
    d->timeout_ms = spec->timeout_ms;
    d->maker = spec->maker;
    d->resolver = spec->resolver;
    d->may_connect = spec->may_connect;
    d->may_ctx = spec->may_ctx;
    d->plug = spec->plug;
    if (d->plug) {
        assert(spec->place && !spec->maker);
        (void)snprintf(d->place, sizeof d->place, "%s", spec->place);
    }
    d->done = done;
    d->ctx = ctx;
    keep_name(d->host, spec->host);
    keep_name(d->peer_name, spec->peer_name);
    for (size_t i = 0; i < LEN(d->attempts); i++)
        d->attempts[i] = (struct attempt){ .dial = d, .fd = -1 };
    if (spec->addr)
        d->addrs[d->addr_count++] = *spec->addr;
    ev_timer_start(loop, &d->deadline, spec->timeout_ms, too_late, d);
    ev_post(loop, &d->task, begin, d);
    return d;
}
