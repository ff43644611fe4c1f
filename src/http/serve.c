#include "http/serve_conn.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/limits.h"
#include "http/limits.h"

#include <sys/resource.h>

#define LATE_MS  50 /* a timer this late says that the loop, or the whole machine, was held up */
#define GRACE_MS 50 /* then peers get this long to show that they were not */

struct http_server {
    struct ev_loop *loop;
    struct http_server_config config;
    struct http1_limits h1_limits;
    struct http_conn *conns;
    size_t count;
    struct connection_limit limit;
    uint64_t logged_ms,
        logged; /* the last line about connections that were closed or refused; how many until then */
    time_t date_at; /* the second that `date` says */
    char date[TIME_TEXT_BYTES];
    bool is_draining;
    ev_fn drained;
    void *drained_ctx;
    struct ev_task tell;
    struct http_head spare; /* empty; the memory of an answer's head that was said */
};

/* Accepting stops where the process has no descriptor left, for every client: the ceiling must be met first. */
static size_t connections_max(const struct http_server_config *config)
{
    struct rlimit files;
    uint64_t most;

    if (!config->max_connections || getrlimit(RLIMIT_NOFILE, &files) < 0)
        return config->max_connections;
    most = files.rlim_cur / CONNECTION_FILES_DENOMINATOR * CONNECTION_FILES_NUMERATOR /
           MAX(config->files_each, 1u);
    return MAX(MIN(most, (uint64_t)config->max_connections), (uint64_t)1);
}

/* No request of it is under way: nothing came yet, a part of a head did, or it waits for the next one. */
static bool close_idle(struct connection_slot *slot)
{
    struct http_conn *hc = CONTAINER(slot, struct http_conn, slot);

    if (hc->one || hc->many || hc->switched || conn_is_sending(hc->conn))
        return false;
    conn_close(hc->conn);
    return true;
}

struct http_server *http_server_new(struct ev_loop *loop, const struct http_server_config *config)
{
    struct http_server *s = NEW(struct http_server);

    s->loop = loop;
    s->config = *config;
    if (!s->config.head_max_bytes)
        s->config.head_max_bytes = HTTP_SERVER_HEAD_MAX_BYTES;
    if (!s->config.head_timeout_ms)
        s->config.head_timeout_ms = HTTP_SERVER_HEAD_TIMEOUT_MS;
    if (!s->config.idle_timeout_ms)
        s->config.idle_timeout_ms = HTTP_SERVER_IDLE_TIMEOUT_MS;
    if (!s->config.stall_timeout_ms)
        s->config.stall_timeout_ms = HTTP_SERVER_STALL_TIMEOUT_MS;
    s->h1_limits = http1_limits_default;
    s->h1_limits.head_bytes = s->h1_limits.line_bytes = s->config.head_max_bytes;
    s->limit =
        (struct connection_limit){ .max = connections_max(config), .close_idle = close_idle };
    http_head_init(&s->spare, HTTP_SPARE_HEAD_BYTES, HTTP_HEAD_MAX_FIELDS);
    return s;
}

void http_server_lend_head(struct http_server *s, struct http_head *empty)
{
    http_head_pass_memory(&s->spare, empty);
}

void http_server_keep_head(struct http_server *s, struct http_head *done)
{
    if (!EV_BLOCKS_KEPT || s->spare.text.p || done->text.cap > HTTP_SPARE_HEAD_BYTES)
        http_head_done(done);
    else
        http_head_pass_memory(done, &s->spare);
}

const struct http_server_config *http_server_config(const struct http_server *s)
{
    return &s->config;
}

const struct http1_limits *http_server_h1_limits(const struct http_server *s)
{
    return &s->h1_limits;
}

struct ev_loop *http_server_loop(const struct http_server *s)
{
    return s->loop;
}

bool http_server_is_draining(const struct http_server *s)
{
    return s->is_draining;
}

size_t http_server_connections(const struct http_server *s)
{
    return s->count;
}

struct span http_server_date(struct http_server *s)
{
    time_t now = time(NULL);

    if (now != s->date_at) {
        s->date_at = now;
        (void)time_http(s->date, now);
    }
    return span_of(s->date, sizeof "Mon, 16 Nov 2026 09:30:00 GMT" - 1);
}

static void on_timer(void *ctx)
{
    struct http_conn *hc = ctx;
    uint64_t now = ev_now_ms(hc->server->loop);
    ev_fn fn = hc->when_due;

    if (hc->due_ms == UINT64_MAX)
        return;
    if (hc->due_ms > now) {
        ev_timer_start(hc->server->loop, &hc->timer, hc->due_ms - now, on_timer, hc);
        return;
    }
    /* We are late ourselves: the machine stood still, and what the peer sent meanwhile is not read yet. Read first. */
    if (now - hc->due_ms > LATE_MS) {
        hc->due_ms = now + GRACE_MS;
        ev_timer_start(hc->server->loop, &hc->timer, GRACE_MS, on_timer, hc);
        return;
    }
    hc->due_ms = UINT64_MAX;
    fn(hc);
}

void http_conn_set_deadline(struct http_conn *hc, uint64_t ms, ev_fn fn)
{
    hc->due_ms = ev_now_ms(hc->server->loop) + ms;
    hc->when_due = fn;
    if (!ev_timer_is_running(&hc->timer) || hc->timer.due_ms > hc->due_ms)
        ev_timer_start(hc->server->loop, &hc->timer, ms, on_timer, hc);
}

void http_conn_clear_deadline(struct http_conn *hc)
{
    hc->due_ms = UINT64_MAX;
}

bool http_conn_has_deadline(const struct http_conn *hc)
{
    return hc->due_ms != UINT64_MAX;
}

static void idle_over(void *ctx)
{
    struct http_conn *hc = ctx;

    conn_close(hc->conn);
}

static void sniff_over(void *ctx)
{
    http_conn_refuse(ctx, 408, "the request's head did not arrive in time");
}

static void give_away(struct http_conn *hc, struct span first)
{
    const struct http_server_config *config = &hc->server->config;
    struct conn *conn = hc->conn;

    hc->is_given = true;
    http_conn_forget(hc);
    conn_set_events(conn, NULL, NULL);
    config->on_stranger(config->ctx, conn, first);
}

/* The first bytes decide. Fewer than the preface's 24 that fit it so far wait in `pending`. */
static void sniff(struct http_conn *hc, struct span in)
{
    OWN(buf_done) struct buf first = BUF_INIT(hc->pending.max);
    struct err e;

    if (in.p[0] == '\0' && !hc->pending.n && hc->server->config.on_stranger) {
        give_away(hc, in);
        return;
    }
    if (hc->pending.n) {
        if (buf_add(&hc->pending, in, &e) < 0) {
            conn_close(hc->conn);
            return;
        }
        buf_move(&first, &hc->pending);
        in = buf_span(&first);
    }
    switch (h2_preface_match(in)) {
    case H2_PREFACE_MORE:
        if (!first.n)
            http_conn_set_deadline(hc, hc->server->config.head_timeout_ms, sniff_over);
        (void)buf_add(&hc->pending, in, &e); /* fits: it held as much before */
        return;
    case H2_PREFACE_YES:
        hc->kind = HTTP_CONN_H2;
        http_h2_open(hc);
        http_h2_read(hc, in);
        return;
    case H2_PREFACE_NO:
        hc->kind = HTTP_CONN_H1;
        http_h1_open(hc);
        http_h1_read(hc, in);
        return;
    }
}

static void on_read(void *ctx, struct span in)
{
    struct http_conn *hc = ctx;

    if (hc->is_finished)
        return;
    hc->received += in.n;
    switch (hc->kind) {
    case HTTP_CONN_NEW:
        sniff(hc, in);
        break;
    case HTTP_CONN_H1:
        http_h1_read(hc, in);
        break;
    case HTTP_CONN_H2:
        http_h2_read(hc, in);
        break;
    }
}

static void on_eof(void *ctx)
{
    struct http_conn *hc = ctx;

    hc->has_peer_eof = true;
    if (hc->kind == HTTP_CONN_H1)
        http_h1_eof(hc);
    else
        conn_close(hc->conn);
}

static void on_drain(void *ctx)
{
    struct http_conn *hc = ctx;

    if (hc->kind == HTTP_CONN_H1)
        http_h1_drain(hc);
    else if (hc->kind == HTTP_CONN_H2)
        http_h2_drain(hc);
}

static void tell_drained(void *ctx)
{
    struct http_server *s = ctx;

    s->drained(s->drained_ctx);
}

static void tell_soon(struct http_server *s)
{
    if (s->drained && !s->tell.is_queued)
        ev_post(s->loop, &s->tell, tell_drained, s);
}

static void conn_freed(void *ctx)
{
    struct http_conn *hc = ctx;

    buf_done(&hc->pending);
    if (hc->owner)
        hc->owner->free(hc->owner);
    free(hc);
}

void http_conn_forget(struct http_conn *hc)
{
    struct http_server *s = hc->server;

    ev_timer_stop(s->loop, &hc->timer);
    ev_post_cancel(&hc->resume);
    ev_post_cancel(&hc->hand_over);
    ev_post_cancel(&hc->flush);
    *hc->at = hc->next;
    if (hc->next)
        hc->next->at = hc->at;
    s->count--;
    connection_limit_remove(&s->limit, &hc->slot);
    ev_free_later(s->loop, hc, conn_freed); /* its cancelled tasks may still stand in the queue */
    if (s->count == 0 && s->is_draining)
        tell_soon(s);
    if (s->config.on_closed && !hc->is_given)
        s->config.on_closed(s->config.ctx);
}

/* A peer that has ended its side already has nothing to say in the new protocol: it is gone. */
void http_conn_hand_over(void *ctx)
{
    struct http_conn *hc = ctx;
    OWN(buf_done) struct buf rest = BUF_INIT(hc->pending.max);
    struct conn *conn = hc->conn;

    if (hc->is_finished || hc->has_peer_eof) {
        conn_close(conn); /* http_h1_close tells */
        return;
    }
    ev_free_later(hc->server->loop, take_ptr(&hc->one), http_exchange_free);
    buf_move(&rest, &hc->pending);
    http1_done(&hc->h1);
    http_conn_forget(hc);
    conn_set_events(conn, NULL, NULL);
    conn_want_read(conn, true);
    hc->switched(hc->switched_ctx, conn, buf_span(&rest));
}

static void on_close(void *ctx, const struct err *e)
{
    struct http_conn *hc = ctx;

    if (e)
        log_debug("http.lost", KV("err", e));
    if (hc->kind == HTTP_CONN_H1)
        http_h1_close(hc);
    else if (hc->kind == HTTP_CONN_H2)
        http_h2_close(hc);
    http_conn_forget(hc);
}

static const struct conn_events conn_events = { on_read, on_eof, on_drain, on_close };

/* One line a second at most: the log must not grow with what a client tries. */
static void log_full(struct http_server *s)
{
    uint64_t now = ev_now_ms(s->loop), sum = s->limit.closed + s->limit.refused;

    if (sum == s->logged || (s->logged_ms && now - s->logged_ms < CONNECTION_LOG_MS))
        return;
    log_warn("http.full", KV("connections", s->count), KV("max", s->limit.max),
             KV("closed", s->limit.closed), KV("refused", s->limit.refused));
    s->logged_ms = now;
    s->logged = sum;
}

static bool is_let_in(struct http_server *s, int fd, const struct net_addr *peer,
                      struct connection_slot *slot)
{
    struct connection_key key;
    bool is_in;

    if (s->is_draining)
        return false;
    if (!s->limit.max)
        return true;
    connection_key_read(fd, peer, &key);
    is_in = connection_limit_add(&s->limit, &key, slot);
    log_full(s);
    return is_in;
}

/* NULL: fd is closed, filter is freed. */
static struct http_conn *take(struct http_server *s, int fd, struct conn_filter *filter,
                              const struct net_addr *peer)
{
    struct http_conn *hc = NEW(struct http_conn);
    struct err e;

    if (!is_let_in(s, fd, peer, &hc->slot)) {
        if (filter)
            filter->ops->free(filter);
        (void)close(fd);
        free(hc);
        return NULL;
    }
    hc->server = s;
    hc->peer = *peer;
    hc->pending.max =
        2 * HTTP_SERVER_HEAD_MAX_BYTES; /* at least one read of the loop's scratch buffer */
    if (conn_new(s->loop, fd, filter, &conn_events, hc, &hc->conn, &e) < 0) {
        log_warn("http.accept", KV("err", &e));
        if (filter)
            filter->ops->free(filter);
        connection_limit_remove(&s->limit, &hc->slot);
        free(hc);
        return NULL;
    }
    hc->next = s->conns;
    hc->at = &s->conns;
    if (s->conns)
        s->conns->at = &hc->next;
    s->conns = hc;
    s->count++;
    http_conn_set_deadline(hc, s->config.idle_timeout_ms, idle_over);
    return hc;
}

void http_server_take(struct http_server *s, int fd, struct conn_filter *filter,
                      const struct net_addr *peer)
{
    (void)take(s, fd, filter, peer);
}

void http_server_take_as(struct http_server *s, int fd, struct http_owner *owner,
                         const struct net_addr *peer)
{
    struct http_conn *hc = take(s, fd, NULL, peer);

    if (hc)
        hc->owner = owner;
    else
        owner->free(owner);
}

void http_server_accept(void *server, int fd, const struct net_addr *peer)
{
    http_server_take(server, fd, NULL, peer);
}

void http_server_drain(struct http_server *s, ev_fn done, void *ctx)
{
    struct http_conn *next;

    s->is_draining = true;
    s->drained = done;
    s->drained_ctx = ctx;
    for (struct http_conn *hc = s->conns; hc; hc = next) {
        next = hc->next;
        if (hc->kind == HTTP_CONN_H1)
            http_h1_shutdown(hc);
        else if (hc->kind == HTTP_CONN_H2)
            http_h2_shutdown(hc);
        else
            conn_close(hc->conn);
    }
    if (s->count == 0)
        tell_soon(s);
}

void http_server_free(struct http_server *s)
{
    struct http_conn *next;

    if (!s)
        return;
    s->is_draining = true;
    s->drained = NULL;
    ev_post_cancel(&s->tell);
    for (struct http_conn *hc = s->conns; hc; hc = next) {
        next = hc->next;
        hc->is_finished = true; /* nobody gets it any more */
        conn_close(hc->conn);
    }
    while (s->count) /* their on_close comes in the next turn */
        ev_loop_turn(s->loop);
    ev_loop_turn(s->loop);
    http_head_done(&s->spare);
    free(s);
}
