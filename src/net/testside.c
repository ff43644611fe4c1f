#include "net/testside.h"

#include "ev/timer.h"
#include "net/addr.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

static void on_read(void *ctx, struct span in)
{
    struct side *s = ctx;
    struct err e;

    assert_false(s->is_in_verb || s->is_closed || s->is_eof);
    assert_true(in.n > 0);
    assert_int_equal(buf_add(&s->in, in, &e), 0);
    if (s->stop_reading_at && s->in.n >= s->stop_reading_at) {
        s->stop_reading_at = 0;
        conn_want_read(s->conn, false);
    }
    if (s->close_at_read)
        conn_close(s->conn);
}

static void on_eof(void *ctx)
{
    struct side *s = ctx;

    assert_false(s->is_in_verb || s->is_closed || s->is_eof);
    s->is_eof = true;
}

static void on_drain(void *ctx)
{
    struct side *s = ctx;

    assert_false(s->is_in_verb || s->is_closed);
    s->drains++;
}

static void on_close(void *ctx, const struct err *e)
{
    struct side *s = ctx;

    assert_false(s->is_in_verb);
    s->closes++;
    s->is_closed = true;
    s->is_failed = e != NULL;
    if (e)
        s->err = *e;
    s->conn = NULL;
}

static const struct conn_events events = { on_read, on_eof, on_drain, on_close };

void side_open(struct side *s, struct ev_loop *loop, int fd, struct conn_filter *filter)
{
    struct err e;

    *s = (struct side){ .loop = loop, .in = BUF_INIT(SIDE_MAX_BYTES) };
    assert_int_equal(conn_new(loop, fd, filter, &events, s, &s->conn, &e), 0);
}

void side_adopt(struct side *s, struct conn *conn)
{
    *s = (struct side){ .loop = conn_loop(conn), .conn = conn, .in = BUF_INIT(SIDE_MAX_BYTES) };
    conn_set_events(conn, &events, s);
}

void side_done(struct side *s)
{
    if (s->conn) {
        conn_close(s->conn);
        assert_true(side_wait(s->loop, side_is_closed, s));
    }
    assert_int_equal(s->closes, 1);
    buf_done(&s->in);
}

struct wait {
    struct ev_loop *loop;
    side_fn is_over;
    void *ctx;
    bool is_late;
};

static void too_late(void *ctx)
{
    struct wait *w = ctx;

    w->is_late = true;
    ev_loop_stop(w->loop);
}

static void look(void *ctx)
{
    struct wait *w = ctx;

    if (w->is_over(w->ctx))
        ev_loop_stop(w->loop);
}

bool side_wait(struct ev_loop *loop, side_fn is_over, void *ctx)
{
    struct wait w = { loop, is_over, ctx, false };
    struct ev_timer deadline = { 0 }, tick = { 0 };

    ev_timer_start(loop, &deadline, SIDE_WAIT_MS, too_late, &w);
    while (!is_over(ctx) && !w.is_late) {
        ev_timer_start(loop, &tick, 2, look, &w);
        ev_loop_turn(loop);
        if (!is_over(ctx))
            (void)usleep(200);
    }
    ev_timer_stop(loop, &tick);
    ev_timer_stop(loop, &deadline);
    return is_over(ctx);
}

void side_idle(struct ev_loop *loop, uint64_t ms)
{
    struct wait w = { loop, NULL, NULL, false };
    struct ev_timer deadline = { 0 };

    ev_timer_start(loop, &deadline, ms, too_late, &w);
    while (!w.is_late)
        ev_loop_run(loop);
}

bool side_is_closed(void *side)
{
    return ((struct side *)side)->is_closed;
}

bool side_is_eof(void *side)
{
    return ((struct side *)side)->is_eof;
}

void side_socket_pair(int fds[2])
{
    struct net_addr a;
    struct err e;
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(net_addr_parse("127.0.0.1:0", &a, &e), 0);
    assert_int_equal(bind(l, (const struct sockaddr *)&a.sa, a.len), 0);
    assert_int_equal(listen(l, 1), 0);
    assert_int_equal(getsockname(l, (struct sockaddr *)&a.sa, &a.len), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fds[0], (const struct sockaddr *)&a.sa, a.len), 0);
    fds[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(fds[1] >= 0);
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    (void)close(l);
}

void side_fill(struct buf *b, size_t n)
{
    struct err e;

    b->max = SIDE_MAX_BYTES;
    assert_int_equal(buf_reserve(b, n, &e), 0);
    for (size_t i = 0; i < n; i++)
        b->p[i] = (uint8_t)(i * 31 + (i >> 11));
    buf_grown(b, n);
}

size_t side_fd_count(void)
{
    struct ev_loop *loop;
    struct err e;
    DIR *d;
    size_t n = 0;

    assert_int_equal(ev_loop_new(&loop, &e), 0); /* libuv keeps a pipe from its first loop on */
    ev_loop_free(loop);
    d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}
