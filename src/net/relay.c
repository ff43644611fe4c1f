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
    const struct relay_gate *gate; /* or NULL */
    ev_fn done;
    void *ctx;
};

static void on_read(void *ctx, struct span in)
{
    struct half *h = ctx;
    struct relay *r = h->relay;
    size_t n = in.n;

    if (!h->other->conn)
        return;
    if (r->gate)
        n = r->gate->pass(r->gate->ctx, h == &r->a, in);
    conn_write(h->other->conn, span_slice(in, 0, n));
    if (n < in.n) {
        const struct relay_gate *gate = take_ptr(&r->gate);

        conn_want_read(h->conn, false);
        gate->stop(gate->ctx);
        return;
    }
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

void relay_set_gate(struct relay *r, const struct relay_gate *gate)
{
    r->gate = gate;
}

void relay_push(struct relay *r, bool is_from_a, struct span in)
{
    if (in.n)
        on_read(is_from_a ? &r->a : &r->b, in);
}

static void say_last(struct half *h, struct span words)
{
    if (!h->conn)
        return;
    conn_write(h->conn, words);
    conn_finish(h->conn);
}

void relay_end(struct relay *r, struct span to_a, struct span to_b)
{
    r->gate = NULL;
    say_last(&r->a, to_a);
    say_last(&r->b, to_b);
}

void relay_close(struct relay *r)
{
    if (r->a.conn)
        conn_close(r->a.conn);
    if (r->b.conn)
        conn_close(r->b.conn);
}
