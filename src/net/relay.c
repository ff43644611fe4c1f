#include "net/relay.h"

#include "base/log.h"

struct half {
    struct relay *relay;
    struct half *other;
    struct conn *conn; /* NULL once gone */
};

struct relay {
    struct ev_loop *loop;
    struct half a, b;
    ev_fn done;
    void *ctx;
};

static void on_read(void *ctx, struct span in)
{
    struct half *h = ctx;

    if (!h->other->conn)
        return;
    conn_write(h->other->conn, in);
    if (conn_is_full(h->other->conn))
        conn_want_read(h->conn, false);
}

static void on_drain(void *ctx)
{
    struct half *h = ctx;

    if (h->other->conn)
        conn_want_read(h->other->conn, true);
}

static void on_eof(void *ctx)
{
    struct half *h = ctx;

    if (h == &h->relay->b) {
        conn_finish(h->conn);
        if (h->other->conn)
            conn_finish(h->other->conn);
    } else if (h->other->conn) {
        conn_finish_writing(h->other->conn);
    }
}

static void on_close(void *ctx, const struct err *e)
{
    struct half *h = ctx;
    struct relay *r = h->relay;

    if (e)
        log_debug("relay.lost", KV("err", e));
    h->conn = NULL;
    if (h->other->conn) {
        conn_finish(h->other->conn);
        return;
    }
    r->done(r->ctx);
    ev_free_later(r->loop, r, free);
}

static const struct conn_events events = { on_read, on_eof, on_drain, on_close };

static void begin(struct half *h)
{
    bool is_full = conn_is_full(h->other->conn);

    conn_set_events(h->conn, &events, h);
    conn_want_read(h->conn, !is_full);
}

struct relay *relay_start(struct conn *a, struct span from_a, struct conn *b, struct span from_b,
                          ev_fn done, void *ctx)
{
    struct relay *r = NEW(struct relay);

    r->loop = conn_loop(a);
    r->a = (struct half){ .relay = r, .other = &r->b, .conn = a };
    r->b = (struct half){ .relay = r, .other = &r->a, .conn = b };
    r->done = done;
    r->ctx = ctx;
    conn_write(b, from_a);
    conn_write(a, from_b);
    begin(&r->a);
    begin(&r->b);
    return r;
}

void relay_close(struct relay *r)
{
    if (r->a.conn)
        conn_close(r->a.conn);
    if (r->b.conn)
        conn_close(r->b.conn);
}
