#include "podstream/ws_link.h"

#include "base/log.h"
#include "ev/limits.h"
#include "ev/timer.h"
#include "podstream/limits.h"

struct ws_link {
    struct ev_loop *loop;
    struct conn *conn; /* NULL once over */
    struct ws ws;
    const struct ws_link_events *events;
    void *ctx;
    struct buf rest;      /* to be read in the first turn */
    struct ev_task begin; /* the first turn, or the last */
    struct ev_timer echo; /* of ws_link_ask */
    bool is_echo_due;     /* it is waited for */
    bool is_over, is_reading;
};

static const struct conn_events conn_events;

static void link_free(void *obj)
{
    struct ws_link *l = obj;

    ws_done(&l->ws);
    buf_done(&l->rest);
    free(l);
}

static void bury(void *ctx)
{
    struct ws_link *l = ctx;

    l->events->on_gone(l->ctx);
    ev_free_later(l->loop, l, link_free);
}

/* The only way out: the connection goes on by itself to its end, with nobody listening. */
static void end(struct ws_link *l)
{
    if (l->is_over)
        return;
    l->is_over = true;
    conn_set_events(l->conn, NULL, NULL);
    l->conn = NULL;
    ev_timer_stop(l->loop, &l->echo);
    ev_post_cancel(&l->begin);
    ev_post(l->loop, &l->begin, bury, l);
}

static void send_close(struct ws_link *l, uint16_t code, struct span reason)
{
    OWN(buf_done) struct buf out = BUF_INIT(WS_HEAD_MAX_BYTES + WS_CONTROL_MAX_BYTES);
    struct err e;

    (void)ws_write_close(&out, NULL, code, reason, &e); /* fits */
    conn_write(l->conn, buf_span(&out));
    conn_finish(l->conn);
}

static void send_frame(struct ws_link *l, enum ws_opcode opcode, struct span payload)
{
    struct buf out = BUF_INIT(WS_HEAD_MAX_BYTES + payload.n);
    struct err e;

    (void)ws_write(&out, &(struct ws_frame){ .opcode = opcode }, payload, &e); /* fits */
    conn_write_buf(l->conn, &out);
}

static void on_echo(void *ctx)
{
    struct ws_link *l = ctx;

    l->is_echo_due = false;
    l->events->on_echo(l->ctx);
}

static void feed(struct ws_link *l, struct span in)
{
    while (!l->is_over) {
        struct span data = SPAN_NONE;
        struct err e;
        size_t used;

        switch (ws_feed(&l->ws, in, &used, &data, &e)) {
        case WS_NEED_MORE:
            return;
        case WS_GOT_DATA:
            l->events->on_piece(l->ctx, &l->ws, data);
            break;
        case WS_GOT_PING:
            send_frame(l, WS_PONG, data);
            break;
        case WS_GOT_PONG:
            if (l->is_echo_due)
                ev_timer_start(l->loop, &l->echo, POD_ECHO_REST_MS, on_echo, l);
            l->is_echo_due = false;
            break;
        case WS_GOT_CLOSE:
            send_close(l, l->ws.close_code, SPAN_NONE);
            end(l);
            return;
        case WS_IS_BAD:
            log_debug("podstream.ws", KV("err", &e));
            send_close(l, l->ws.close_code, span_cstr(e.msg));
            end(l);
            return;
        }
        in = span_skip(in, used);
    }
}

static void begin(void *ctx)
{
    struct ws_link *l = ctx;
    OWN(buf_done) struct buf in = BUF_INIT(l->rest.max);

    buf_move(&in, &l->rest);
    if (l->is_reading)
        conn_want_read(l->conn, true);
    feed(l, buf_span(&in));
}

struct ws_link *ws_link_open(struct conn *conn, struct span rest, uint64_t message_max,
                             const struct ws_link_events *events, void *ctx)
{
    struct ws_link *l = NEW(struct ws_link);
    struct err e;

    l->loop = conn_loop(conn);
    l->conn = conn;
    l->events = events;
    l->ctx = ctx;
    l->is_reading = true;
    l->rest.max = rest.n;
    ws_init(&l->ws, WS_SERVER, message_max);
    conn_set_events(conn, &conn_events, l);
    if (rest.n) {
        (void)buf_add(&l->rest, rest, &e); /* sized for it */
        conn_want_read(conn, false);
        ev_post(conn_loop(conn), &l->begin, begin, l);
    }
    return l;
}

void ws_link_send(struct ws_link *l, enum ws_opcode opcode, int channel, struct span bytes)
{
    size_t n = bytes.n + (channel >= 0);
    struct buf out = BUF_INIT(WS_HEAD_MAX_BYTES + n);
    struct err e;

    if (l->is_over)
        return;
    /* One allocation, and the ceiling is made for it: none of these fails. */
    (void)buf_reserve(&out, out.max, &e);
    (void)ws_write_head(&out, opcode, n, &e);
    if (channel >= 0)
        (void)buf_addc(&out, (uint8_t)channel, &e); /* fits */
    (void)buf_add(&out, bytes, &e);                 /* fits */
    conn_write_buf(l->conn, &out);
}

bool ws_link_is_full(const struct ws_link *l)
{
    return !l->is_over && conn_is_full(l->conn);
}

void ws_link_want_read(struct ws_link *l, bool is_wanted)
{
    l->is_reading = is_wanted;
    if (!l->is_over && !l->begin.is_queued)
        conn_want_read(l->conn, is_wanted);
}

void ws_link_ask(struct ws_link *l)
{
    if (l->is_over)
        return;
    send_frame(l, WS_PING, SPAN_NONE);
    l->is_echo_due = true;
    ev_timer_start(l->loop, &l->echo, POD_ECHO_PATIENCE_MS, on_echo, l);
}

void ws_link_close(struct ws_link *l, enum ws_code code, const char *reason)
{
    if (l->is_over)
        return;
    send_close(l, (uint16_t)code, span_cstr(reason));
    end(l);
}

/* ---- events of the connection ---- */

static void on_read(void *ctx, struct span in)
{
    feed(ctx, in);
}

static void on_eof(void *ctx)
{
    struct ws_link *l = ctx;

    conn_finish(l->conn); /* a client that leaves without a word wants none either */
    end(l);
}

static void on_drain(void *ctx)
{
    struct ws_link *l = ctx;

    l->events->on_drain(l->ctx);
}

static void on_close(void *ctx, const struct err *e)
{
    struct ws_link *l = ctx;

    if (e)
        log_debug("podstream.lost", KV("err", e));
    end(l);
}

static const struct conn_events conn_events = { on_read, on_eof, on_drain, on_close };
