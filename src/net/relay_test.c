#include "net/relay.h"

#include "net/testside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/socket.h>

/* Two clients and the relay between them. */
struct world {
    struct ev_loop *loop;
    struct side left, right;
    struct relay *relay;
    unsigned dones;
};

static void done(void *ctx)
{
    struct world *w = ctx;

    w->dones++;
    w->relay = NULL;
}

static struct conn *make_conn(struct world *w, struct side *side)
{
    struct conn *conn;
    struct err e;
    int fds[2];

    side_socket_pair(fds);
    side_open(side, w->loop, fds[0], NULL);
    assert_int_equal(conn_new(w->loop, fds[1], NULL, NULL, NULL, &conn, &e), 0);
    return conn;
}

static void open_world(struct world *w)
{
    struct conn *a, *b;
    struct err e;

    *w = (struct world){ 0 };
    assert_int_equal(ev_loop_new(&w->loop, &e), 0);
    a = make_conn(w, &w->left);
    b = make_conn(w, &w->right);
    w->relay = relay_start(a, SPAN("from a, early. "), b, SPAN("from b, early. "), done, w);
}

static bool is_done(void *ctx)
{
    return ((struct world *)ctx)->dones > 0;
}

static void close_world(struct world *w)
{
    assert_true(side_wait(w->loop, is_done, w));
    assert_int_equal(w->dones, 1);
    side_done(&w->left);
    side_done(&w->right);
    ev_loop_free(w->loop);
}

static void test_bytes_and_ends_go_through(void **state)
{
    OWN(buf_done) struct buf much = BUF_INIT(SIDE_MAX_BYTES);
    struct world w;

    (void)state;
    open_world(&w);
    side_fill(&much, 12 << 20);
    conn_write(w.left.conn, buf_span(&much));
    conn_finish_writing(w.left.conn);
    assert_true(side_wait(w.loop, side_is_eof, &w.right));
    assert_int_equal(w.right.in.n, much.n + 15);
    assert_true(span_starts(buf_span(&w.right.in), "from a, early. "));
    assert_true(span_eq(span_skip(buf_span(&w.right.in), 15), buf_span(&much)));
    conn_write(w.right.conn, SPAN("the answer")); /* the other way is still open */
    conn_finish_writing(w.right.conn);
    assert_true(side_wait(w.loop, side_is_eof, &w.left));
    assert_string_equal(buf_cstr(&w.left.in), "from b, early. the answer");
    close_world(&w);
}

static void test_a_slow_reader_holds_the_writer_up(void **state)
{
    OWN(buf_done) struct buf much = BUF_INIT(SIDE_MAX_BYTES);
    struct world w;
    size_t queued;

    (void)state;
    open_world(&w);
    conn_want_read(w.right.conn, false);
    side_fill(&much, 60 << 20);
    conn_write(w.left.conn, buf_span(&much));
    do { /* until nothing moves any more */
        queued = conn_queued(w.left.conn);
        side_idle(w.loop, 100);
    } while (conn_queued(w.left.conn) != queued);
    assert_true(queued > 20 << 20); /* the rest is in the kernel's buffers and the relay's queue */
    conn_want_read(w.right.conn, true);
    conn_finish_writing(w.left.conn);
    assert_true(side_wait(w.loop, side_is_eof, &w.right));
    assert_int_equal(w.right.in.n, much.n + 15);
    conn_close(w.right.conn);
    close_world(&w);
}

/* The client need not do anything. */
static void test_the_servers_end_ends_both(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    conn_write(w.right.conn, SPAN("last words"));
    conn_finish(w.right.conn);
    assert_true(side_wait(w.loop, side_is_eof, &w.left));
    assert_string_equal(buf_cstr(&w.left.in), "from b, early. last words");
    close_world(&w);
}

static void test_a_lost_side_ends_the_other(void **state)
{
    const struct linger hard = { 1, 0 };
    struct world w;

    (void)state;
    open_world(&w);
    side_idle(w.loop, 10);
    assert_int_equal(setsockopt(conn_fd(w.left.conn), SOL_SOCKET, SO_LINGER, &hard, sizeof hard),
                     0);
    conn_close(w.left.conn);
    assert_true(side_wait(w.loop, side_is_eof, &w.right));
    conn_close(w.right.conn);
    close_world(&w);
}

static void test_close_ends_both(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    relay_close(w.relay);
    assert_int_equal(w.dones, 0); /* later */
    close_world(&w);
}

/* Lets through what stands before a '!'. */
static size_t pass(void *ctx, bool is_from_a, struct span in)
{
    (void)ctx;
    return is_from_a ? MIN(span_find(in, '!'), in.n) : in.n;
}

static void stop(void *ctx)
{
    struct world *w = ctx;

    relay_end(w->relay, SPAN("bye left"), SPAN("bye right"));
}

static void test_a_gate_says_what_goes_through(void **state)
{
    struct relay_gate gate = { pass, stop, NULL };
    struct world w;

    (void)state;
    open_world(&w);
    gate.ctx = &w;
    relay_set_gate(w.relay, &gate);
    relay_push(w.relay, true, SPAN("pushed. "));
    relay_push(w.relay, false, SPAN("! "));
    conn_write(w.left.conn, SPAN("some! more"));
    assert_true(side_wait(w.loop, side_is_eof, &w.right));
    assert_true(side_wait(w.loop, side_is_eof, &w.left));
    assert_string_equal(buf_cstr(&w.right.in), "from a, early. pushed. somebye right");
    assert_string_equal(buf_cstr(&w.left.in), "from b, early. ! bye left");
    conn_close(w.left.conn);
    conn_close(w.right.conn);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_bytes_and_ends_go_through),
        cmocka_unit_test(test_a_slow_reader_holds_the_writer_up),
        cmocka_unit_test(test_the_servers_end_ends_both),
        cmocka_unit_test(test_a_lost_side_ends_the_other),
        cmocka_unit_test(test_close_ends_both),
        cmocka_unit_test(test_a_gate_says_what_goes_through),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
