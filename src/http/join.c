#include "http/join.h"

#include "base/log.h"
#include "ev/limits.h"
#include "ev/timer.h"
#include "http/ws_watch.h"
#include "net/relay.h"

#include <stdio.h>
#include <sys/random.h>

struct http_join {
    struct ev_loop *loop;
    struct conn *back;   /* while the client's connection is on its way to us */
    struct relay *relay; /* once it has come */
    struct buf rest;
    bool is_switching;
    ev_fn done;
    void *ctx;
    struct ev_task over;
    /* of a WebSocket with limits */
    struct http_join_limits limits;
    struct relay_gate gate;
    struct ws_watch from_client, from_server;
    struct ev_timer look;
    uint64_t began_ms, heard_ms; /* since when it is; when the last message was whole */
};

static void join_free(void *obj)
{
    struct http_join *j = obj;

    buf_done(&j->rest);
    free(j);
}

static void tell_over(void *ctx)
{
    struct http_join *j = ctx;

    j->done(j->ctx);
    ev_free_later(j->loop, j, join_free);
}

static void over_soon(struct http_join *j)
{
    ev_timer_stop(j->loop, &j->look);
    if (!j->over.is_queued)
        ev_post(j->loop, &j->over, tell_over, j);
}

void http_join_close(struct http_join *j)
{
    if (j->back)
        conn_close(j->back);
    if (j->relay)
        relay_close(j->relay);
}

/* ---- limits ---- */

static void end_with(struct http_join *j, uint16_t code, const char *reason)
{
    OWN(buf_done) struct buf to_client = BUF_INIT(256), to_server = BUF_INIT(256);
    const struct ws_watch *c = &j->from_client, *s = &j->from_server;
    uint8_t mask[4] = { 0 };
    struct err e;

    (void)!getrandom(mask, sizeof mask, GRND_NONBLOCK); /* none is needed for our own words */
    if (ws_watch_is_between(s) && !s->is_closed)
        (void)ws_write_close(&to_client, NULL, code, span_cstr(reason), &e);
    if (ws_watch_is_between(c) && !c->is_closed)
        (void)ws_write_close(&to_server, mask, code, span_cstr(reason), &e);
    log_debug("join.limit", KV("code", (int)code), KV("why", reason));
    ev_timer_stop(j->loop, &j->look);
    relay_end(j->relay, buf_span(&to_client), buf_span(&to_server));
}

static size_t pass(void *ctx, bool is_from_a, struct span in)
{
    struct http_join *j = ctx;
    struct ws_watch *w = is_from_a ? &j->from_client : &j->from_server;
    uint64_t before = w->messages;
    size_t n = ws_watch_look(w, in);

    if (w->messages != before)
        j->heard_ms = ev_now_ms(j->loop);
    return n;
}

static void too_big(void *ctx)
{
    end_with(ctx, WS_TOO_BIG, "message too big");
}

/* Until then, and no longer; 0: there is no such limit. */
static uint64_t left_ms(const struct http_join *j, uint64_t since_ms, uint64_t limit_ms)
{
    uint64_t past_ms = ev_now_ms(j->loop) - since_ms;

    if (!limit_ms)
        return UINT64_MAX;
    return past_ms < limit_ms ? limit_ms - past_ms : 0;
}

static void look(void *ctx)
{
    struct http_join *j = ctx;
    uint64_t life_ms = left_ms(j, j->began_ms, j->limits.lifetime_ms);
    uint64_t idle_ms = left_ms(j, j->heard_ms, j->limits.idle_ms);

    if (life_ms == 0)
        end_with(j, WS_GOING_AWAY, "max lifetime exceeded");
    else if (idle_ms == 0)
        end_with(j, WS_GOING_AWAY, "idle timeout exceeded");
    else if (MIN(life_ms, idle_ms) != UINT64_MAX)
        ev_timer_start(j->loop, &j->look, MIN(life_ms, idle_ms), look, j);
}

void http_join_limit(struct http_join *j, const struct http_join_limits *limits)
{
    j->limits = *limits;
    j->from_client.message_max = j->from_server.message_max = limits->message_max;
    j->gate = (struct relay_gate){ pass, too_big, j };
}

/* Bytes that came with the heads are the first to be looked at. */
static void start_limited(struct http_join *j, struct conn *conn, struct span rest, ev_fn done)
{
    j->began_ms = j->heard_ms = ev_now_ms(j->loop);
    j->relay = relay_start(conn, SPAN_NONE, take_ptr(&j->back), SPAN_NONE, done, j);
    relay_set_gate(j->relay, &j->gate);
    look(j);
    relay_push(j->relay, true, rest);
    relay_push(j->relay, false, buf_span(&j->rest));
}

/* ---- both connections ---- */

static void relayed(void *ctx)
{
    struct http_join *j = ctx;

    j->relay = NULL;
    over_soon(j);
}

/* Now the client's side has switched too. */
static void switched(void *ctx, struct conn *conn, struct span rest)
{
    struct http_join *j = ctx;

    j->is_switching = false;
    if (conn && j->back && j->gate.pass) {
        start_limited(j, conn, rest, relayed);
        return;
    }
    if (conn && j->back) {
        j->relay = relay_start(conn, rest, take_ptr(&j->back), buf_span(&j->rest), relayed, j);
        return;
    }
    if (conn) {
        conn_set_events(conn, NULL, NULL);
        conn_finish(conn); /* the other side went meanwhile */
        over_soon(j);
    } else if (j->back) {
        conn_close(j->back); /* on_back_close follows */
    } else {
        over_soon(j);
    }
}

/* ---- events of the other connection, while the client's is on its way ---- */

static void on_back_read(void *ctx, struct span in)
{
    (void)ctx, (void)in; /* reading is off */
}

static void on_back_eof(void *ctx)
{
    (void)ctx;
}

static void on_back_close(void *ctx, const struct err *e)
{
    struct http_join *j = ctx;

    if (e)
        log_debug("join.lost", KV("err", e));
    j->back = NULL;
    if (!j->is_switching)
        over_soon(j);
}

static const struct conn_events back_events = { on_back_read, on_back_eof, NULL, on_back_close };

/* Hop fields are the server's own business. */
static bool is_passed(struct span name)
{
    return !span_is(name, "connection") && !span_is(name, "upgrade") && !span_is(name, "date") &&
           !span_is(name, "server") && !span_is(name, "content-length") &&
           !span_is(name, "transfer-encoding");
}

struct http_join *http_join_start(struct http_exchange *x, const struct http_head *head,
                                  struct conn *back, struct span rest, ev_fn done, void *ctx,
                                  struct err *e)
{
    struct span protocol = http_head_get(head, "upgrade");
    char upgrade[64] = "";
    struct http_join *j;

    if (protocol.n == 0 || protocol.n >= sizeof upgrade || rest.n > EV_SCRATCH_BYTES) {
        (void)err_set(e, ERR_PROTOCOL, "the other server switched to no protocol");
        return NULL;
    }
    j = NEW(struct http_join);
    j->loop = http_loop(x);
    j->done = done;
    j->ctx = ctx;
    j->back = back;
    j->rest.max = EV_SCRATCH_BYTES;
    (void)buf_add(&j->rest, rest, e); /* fits: a connection is read in such pieces */
    conn_set_events(back, &back_events, j);
    conn_want_read(back, false); /* until there is somebody to give it to */
    (void)snprintf(upgrade, sizeof upgrade, "%.*s", SPAN_ARG(protocol));
    for (size_t i = 0; i < http_head_count(head); i++) {
        struct span name, value;

        http_head_field(head, i, &name, &value);
        if (is_passed(name))
            http_answer_pass_from(x, head, i);
    }
    j->is_switching = true;
    http_answer_switch(x, upgrade, switched, j);
    return j;
}
