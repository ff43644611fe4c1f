#include "podstream/spdy_link.h"

#include "base/log.h"
#include "podstream/limits.h"
#include "podstream/ws_link.h"

struct spdy_link {
    struct ev_loop *loop;
    struct conn *conn;  /* or */
    struct ws_link *ws; /* the tunnel; both NULL once over */
    struct spdy *spdy;  /* NULL once freed */
    const struct spdy_link_events *events;
    void *ctx;
    struct buf rest; /* to be read in the first turn */
    struct ev_task task;
    bool is_closing; /* by our owner, in the next turn */
    bool is_over;    /* the carrier is nobody's, or closing */
    bool is_feeding;
};

static const struct conn_events conn_events;
static const struct ws_link_events ws_events;

static void send_out(struct spdy_link *l)
{
    struct buf out = BUF_INIT(1);

    while (!l->is_over && spdy_wants_pull(l->spdy)) {
        spdy_pull(l->spdy, &out); /* may close, inside on_close */
        if (l->is_over || out.n == 0)
            buf_done(&out);
        else if (l->conn)
            conn_write_buf(l->conn, &out);
        else
            ws_link_send(l->ws, WS_BINARY, -1, buf_span(&out));
        buf_done(&out);
    }
}

static void link_free(void *obj)
{
    struct spdy_link *l = obj;

    buf_done(&l->rest);
    free(l);
}

/* The session goes outside of its own events: on_close for each stream, then on_gone. */
static void bury(void *ctx)
{
    struct spdy_link *l = ctx;

    spdy_free(take_ptr(&l->spdy));
    l->events->on_gone(l->ctx);
    ev_free_later(l->loop, l, link_free);
}

static void bury_soon(struct spdy_link *l)
{
    ev_post_cancel(&l->task);
    ev_post(l->loop, &l->task, bury, l);
}

/* The only way out; the connection goes on by itself to its end. A tunnel is waited for. */
static void end(struct spdy_link *l)
{
    struct conn *conn = take_ptr(&l->conn);

    if (l->is_over)
        return;
    l->is_over = true;
    if (l->ws) {
        ws_link_close(l->ws, WS_NORMAL, "");
        return;
    }
    conn_finish(conn);
    conn_set_events(conn, NULL, NULL);
    bury_soon(l);
}

static void feed(struct spdy_link *l, struct span in)
{
    struct err e;
    int got;

    if (l->is_over)
        return;
    l->is_feeding = true;
    got = spdy_feed(l->spdy, in, &e);
    l->is_feeding = false;
    send_out(l);
    if (got < 0 && !l->is_over) {
        log_debug("podstream.spdy", KV("err", &e));
        end(l);
    }
}

static void flush(void *ctx)
{
    struct spdy_link *l = ctx;
    OWN(buf_done) struct buf in = BUF_INIT(l->rest.max);

    if (l->rest.n) {
        buf_move(&in, &l->rest);
        feed(l, buf_span(&in));
    }
    send_out(l);
    if (l->is_closing)
        end(l);
}

struct spdy_link *spdy_link_open(struct conn *conn, struct span rest, bool is_tunnel,
                                 const struct spdy_link_events *events, void *ctx)
{
    const struct spdy_config config = SPDY_CONFIG_INIT(SPDY_SERVER);
    struct spdy_link *l = NEW(struct spdy_link);
    struct err e;

    l->loop = conn_loop(conn);
    l->events = events;
    l->ctx = ctx;
    l->rest.max = rest.n;
    l->spdy = spdy_new(&config, &events->spdy, ctx);
    if (is_tunnel) {
        l->ws = ws_link_open(conn, rest, POD_MESSAGE_MAX_BYTES, &ws_events, l);
        return l;
    }
    l->conn = conn;
    conn_set_events(conn, &conn_events, l);
    (void)buf_add(&l->rest, rest, &e); /* sized for it */
    if (rest.n)
        spdy_link_flush(l);
    return l;
}

void spdy_link_flush(struct spdy_link *l)
{
    if (!l->is_over && !l->task.is_queued && (!l->is_feeding || l->rest.n))
        ev_post(l->loop, &l->task, flush, l);
}

bool spdy_link_is_full(const struct spdy_link *l)
{
    return l->conn ? conn_is_full(l->conn) : l->ws && ws_link_is_full(l->ws);
}

void spdy_link_want_read(struct spdy_link *l, bool is_wanted)
{
    if (l->conn)
        conn_want_read(l->conn, is_wanted);
    else if (l->ws)
        ws_link_want_read(l->ws, is_wanted);
}

void spdy_link_close(struct spdy_link *l)
{
    l->is_closing = true;
    if (!l->is_over && !l->task.is_queued)
        ev_post(l->loop, &l->task, flush, l);
}

struct spdy *spdy_link_session(struct spdy_link *l)
{
    return l->spdy;
}

/* ---- events of the connection ---- */

static void on_read(void *ctx, struct span in)
{
    struct spdy_link *l = ctx;

    if (l->rest.n) /* what came with the request comes first */
        flush(l);
    feed(l, in);
}

static void on_eof(void *ctx)
{
    end(ctx);
}

static void on_drain(void *ctx)
{
    struct spdy_link *l = ctx;

    if (!l->is_over)
        l->events->on_drain(l->ctx);
}

static void on_close(void *ctx, const struct err *e)
{
    if (e)
        log_debug("podstream.lost", KV("err", e));
    end(ctx);
}

static const struct conn_events conn_events = { on_read, on_eof, on_drain, on_close };

/* ---- events of the tunnel ---- */

static void on_piece(void *ctx, const struct ws *w, struct span piece)
{
    struct spdy_link *l = ctx;

    if (w->opcode == WS_BINARY) {
        feed(l, piece);
        return;
    }
    ws_link_close(l->ws, WS_UNACCEPTABLE, "a tunnel takes binary messages only");
    l->is_over = true;
}

static void on_ws_gone(void *ctx)
{
    struct spdy_link *l = ctx;

    l->is_over = true;
    l->ws = NULL;
    bury_soon(l);
}

static const struct ws_link_events ws_events = { .on_piece = on_piece,
                                                 .on_drain = on_drain,
                                                 .on_gone = on_ws_gone };
