#include "http/testserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

static void leave(struct testserver_conn *c, enum after then)
{
    struct linger hard = { 1, 0 };

    if (then == THEN_RESET)
        (void)setsockopt(conn_fd(c->conn), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    if (then == THEN_RESET)
        conn_close(c->conn);
    if (then == THEN_CLOSE)
        conn_finish(c->conn);
}

static void drip(void *ctx)
{
    struct testserver_conn *c = ctx;

    if (!c->conn)
        return;
    if (c->dripping.n == 0) {
        leave(c, c->then);
        return;
    }
    conn_write(c->conn, span_slice(c->dripping, 0, 1));
    c->dripping = span_skip(c->dripping, 1);
    ev_post(c->server->loop, &c->task, drip, c);
}

static void consider(struct testserver_conn *c)
{
    struct testserver *s = c->server;
    const struct answer *a = s->answers;
    struct span when;
    size_t at;

    if (!s->left || !c->conn)
        return;
    when = a->when ? span_cstr(a->when) : SPAN("\r\n\r\n");
    at = span_find_str(span_skip(buf_span(&c->in), c->scanned), when);
    if (at == SIZE_MAX) {
        c->scanned = c->in.n > when.n ? c->in.n - when.n : 0;
        return;
    }
    buf_consume(&c->in, c->scanned + at + when.n);
    c->scanned = 0;
    s->answers++;
    s->left--;
    if (s->drips) {
        c->dripping = a->bytes;
        c->then = a->then;
        ev_post(s->loop, &c->task, drip, c);
        return;
    }
    conn_write(c->conn, a->bytes);
    leave(c, a->then);
}

static void on_read(void *ctx, struct span in)
{
    struct testserver_conn *c = ctx;
    struct err e;

    assert_int_equal(buf_add(&c->server->heard, in, &e), 0);
    assert_int_equal(buf_add(&c->in, in, &e), 0);
    consider(c);
}

static void on_eof(void *ctx)
{
    struct testserver_conn *c = ctx;

    conn_finish(c->conn);
}

static void on_close(void *ctx, const struct err *e)
{
    struct testserver_conn *c = ctx;

    (void)e;
    c->conn = NULL;
    buf_done(&c->in);
}

static const struct conn_events events = { on_read, on_eof, NULL, on_close };

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct testserver *s = ctx;
    struct testserver_conn *c = &s->conns[s->conn_count++];
    struct conn_filter *filter = NULL;
    struct err e;

    (void)peer;
    assert_true(s->conn_count <= TESTSERVER_CONNS_MAX);
    *c = (struct testserver_conn){ .server = s, .in = BUF_INIT(SIDE_MAX_BYTES) };
    if (s->maker)
        assert_int_equal(s->maker->make(s->maker, fd, NULL, &filter, &e), 0);
    assert_int_equal(conn_new(s->loop, fd, filter, &events, c, &c->conn, &e), 0);
}

void testserver_open(struct testserver *s, struct ev_loop *loop, const char *at)
{
    struct net_addr a;
    struct err e;

    *s = (struct testserver){ .loop = loop, .heard = BUF_INIT(SIDE_MAX_BYTES) };
    assert_int_equal(net_addr_parse(at, &a, &e), 0);
    if (net_listen(loop, &a, on_accept, s, &s->l, &e) < 0)
        fail_msg("%s", e.msg);
    s->addr = *net_listener_addr(s->l);
    s->port = net_addr_port(&s->addr);
}

void testserver_script(struct testserver *s, const struct answer *answers, size_t n)
{
    s->answers = answers;
    s->left = n;
    buf_clear(&s->heard);
}

static bool are_closed(void *ctx)
{
    struct testserver *s = ctx;

    for (size_t i = 0; i < s->conn_count; i++) {
        if (s->conns[i].conn)
            return false;
    }
    return true;
}

void testserver_close(struct testserver *s)
{
    net_listener_close(s->l);
    for (size_t i = 0; i < s->conn_count; i++) {
        if (s->conns[i].conn)
            conn_close(s->conns[i].conn);
    }
    assert_true(side_wait(s->loop, are_closed, s));
    buf_done(&s->heard);
}
