#include "net/conn.h"

#include "net/limits.h"
#include "net/testside.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cmocka.h>

struct pair {
    struct ev_loop *loop;
    struct ev_pool *pool;
    struct side a, b;
    struct buf sent;
};

static bool b_has_all(void *ctx)
{
    struct pair *p = ctx;

    return p->b.in.n >= p->sent.n;
}

static void open_pair(struct pair *p)
{
    struct err e;
    int fds[2];

    *p = (struct pair){ .sent = BUF_INIT(SIDE_MAX_BYTES) };
    assert_int_equal(ev_loop_new(&p->loop, &e), 0);
    assert_int_equal(ev_pool_new(p->loop, "files", 2, &p->pool, &e), 0);
    side_socket_pair(fds);
    side_open(&p->a, p->loop, fds[0], NULL);
    side_open(&p->b, p->loop, fds[1], NULL);
}

static void close_pair(struct pair *p)
{
    side_done(&p->a);
    side_done(&p->b);
    buf_done(&p->sent);
    ev_pool_free(p->pool);
    ev_loop_free(p->loop);
}

static void assert_all_came(struct pair *p)
{
    assert_true(side_wait(p->loop, b_has_all, p));
    assert_int_equal(p->b.in.n, p->sent.n);
    assert_memory_equal(p->b.in.p, p->sent.p, p->sent.n);
}

static int memory_file(struct span content)
{
    int fd = memfd_create("silica-test", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content.p, content.n), content.n);
    return fd;
}

static void test_bytes_arrive_in_order_and_a_full_queue_drains(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p);
    side_fill(&p.sent, 20 << 20);
    p.a.is_in_verb = true;
    for (size_t at = 0; at < p.sent.n; at += 64 * 1024 - 7)
        conn_write(p.a.conn, span_slice(buf_span(&p.sent), at, at + 64 * 1024 - 7));
    p.a.is_in_verb = false;
    assert_true(conn_is_full(p.a.conn));
    assert_all_came(&p);
    assert_int_equal(p.a.drains, 1);
    assert_false(conn_is_full(p.a.conn));
    assert_int_equal(conn_sent(p.a.conn), p.sent.n);
    close_pair(&p);
}

static void test_a_block_handed_over_is_taken(void **state)
{
    struct buf block = { 0 };
    struct pair p;

    (void)state;
    open_pair(&p);
    side_fill(&p.sent, 9 << 20);
    side_fill(&block, 9 << 20);
    conn_write_buf(p.a.conn, &block);
    assert_null(block.p);
    assert_all_came(&p);
    close_pair(&p);
}

static void test_reading_can_be_stopped_and_goes_on(void **state)
{
    struct pair p;
    size_t had;

    (void)state;
    open_pair(&p);
    side_fill(&p.sent, 16 << 20);
    p.b.stop_reading_at = 1;
    conn_write(p.a.conn, buf_span(&p.sent));
    side_idle(p.loop, 50);
    had = p.b.in.n;
    assert_in_range(had, 1, 64 * 1024);
    side_idle(p.loop, 30);
    assert_int_equal(p.b.in.n, had);
    conn_want_read(p.b.conn, true);
    assert_all_came(&p);
    close_pair(&p);
}

/* The kernel reports each change once: bytes and an end that are there together, or while nobody reads, are one change. */
static void test_an_end_right_behind_bytes_is_seen(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p);
    side_fill(&p.sent, 1000);
    assert_int_equal(write(conn_fd(p.a.conn), p.sent.p, p.sent.n), p.sent.n);
    assert_int_equal(shutdown(conn_fd(p.a.conn), SHUT_WR), 0);
    assert_true(side_wait(p.loop, side_is_eof, &p.b));
    assert_int_equal(p.b.in.n, p.sent.n);
    close_pair(&p);

    open_pair(&p);
    side_fill(&p.sent, 1000);
    conn_want_read(p.b.conn, false);
    assert_int_equal(write(conn_fd(p.a.conn), p.sent.p, p.sent.n), p.sent.n);
    assert_int_equal(shutdown(conn_fd(p.a.conn), SHUT_WR), 0);
    side_idle(p.loop, 20);
    assert_int_equal(p.b.in.n, 0);
    conn_want_read(p.b.conn, true);
    assert_true(side_wait(p.loop, side_is_eof, &p.b));
    assert_int_equal(p.b.in.n, p.sent.n);
    close_pair(&p);
}

/* More than one turn reads, and then silence: no event will say that there is more. */
static void test_what_one_turn_leaves_is_read_in_the_next(void **state)
{
    const size_t many = (CONN_READS_PER_TURN + 2) * (64 * 1024);
    struct pair p;
    ssize_t n;

    (void)state;
    open_pair(&p);
    side_fill(&p.sent, many);
    conn_want_read(p.b.conn, false);
    side_idle(p.loop, 5);
    n = write(conn_fd(p.a.conn), p.sent.p, p.sent.n); /* what the kernel takes at once */
    assert_true(n > 0);
    buf_truncate(&p.sent, (size_t)n);
    conn_want_read(p.b.conn, true);
    assert_all_came(&p);
    close_pair(&p);
}

static void test_files_keep_their_place_between_bytes(void **state)
{
    struct pair p;
    struct span all;
    size_t third = 3 << 20;

    (void)state;
    open_pair(&p);
    side_fill(&p.sent, 3 * third);
    all = buf_span(&p.sent);
    p.a.is_in_verb = true;
    conn_write(p.a.conn, span_slice(all, 0, third));
    conn_write_file(p.a.conn, p.pool, memory_file(all), third, third);
    assert_true(conn_is_full(p.a.conn));
    conn_write(p.a.conn, span_skip(all, 2 * third));
    p.a.is_in_verb = false;
    assert_all_came(&p);
    assert_true(p.a.drains >= 1);
    assert_false(conn_is_full(p.a.conn));
    close_pair(&p);
}

static void test_a_file_that_ends_early_ends_the_connection(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p);
    conn_write_file(p.a.conn, p.pool, memory_file(SPAN("short")), 0, 100);
    assert_true(side_wait(p.loop, side_is_closed, &p.a));
    assert_true(p.a.is_failed);
    assert_int_equal(p.a.err.code, ERR_CLOSED);
    assert_string_equal(p.a.err.msg,
                        "the file became shorter while it was sent: 95 bytes are missing");
    close_pair(&p);
}

static void test_closing_while_a_file_is_sent_waits_for_the_worker(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p);
    side_fill(&p.sent, 30 << 20);
    p.b.stop_reading_at = 1;
    conn_write_file(p.a.conn, p.pool, memory_file(buf_span(&p.sent)), 0, p.sent.n);
    conn_close(p.a.conn);
    assert_true(side_wait(p.loop, side_is_closed, &p.a));
    assert_false(p.a.is_failed);
    close_pair(&p);
}

static void test_finish_sends_the_rest_then_ends(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p);
    side_fill(&p.sent, 12 << 20);
    conn_write(p.a.conn, buf_span(&p.sent));
    p.a.is_in_verb = true;
    conn_finish(p.a.conn);
    conn_write(p.a.conn, SPAN("too late"));
    p.a.is_in_verb = false;
    assert_true(side_wait(p.loop, side_is_eof, &p.b));
    assert_int_equal(p.b.in.n, p.sent.n);
    conn_write(p.b.conn, SPAN("dropped"));
    conn_close(p.b.conn);
    assert_true(side_wait(p.loop, side_is_closed, &p.a));
    assert_false(p.a.is_failed);
    assert_int_equal(p.a.in.n, 0);
    close_pair(&p);
}

/* Each side ends its own, after all of its bytes; the other's go on until then. */
static void test_one_side_may_end_alone(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p);
    side_fill(&p.sent, 12 << 20);
    conn_write(p.a.conn, buf_span(&p.sent));
    p.a.is_in_verb = true;
    conn_finish_writing(p.a.conn);
    conn_finish_writing(p.a.conn);
    conn_write(p.a.conn, SPAN("too late"));
    p.a.is_in_verb = false;
    assert_true(side_wait(p.loop, side_is_eof, &p.b));
    assert_int_equal(p.b.in.n, p.sent.n);
    conn_write(p.b.conn, SPAN("an answer"));
    conn_finish_writing(p.b.conn);
    assert_true(side_wait(p.loop, side_is_eof, &p.a));
    assert_string_equal(buf_cstr(&p.a.in), "an answer");
    side_idle(p.loop, 20);
    assert_false(p.a.is_closed || p.b.is_closed); /* that is the owner's to do */
    conn_finish(p.a.conn);
    conn_close(p.b.conn);
    assert_true(side_wait(p.loop, side_is_closed, &p.a));
    assert_false(p.a.is_failed);
    close_pair(&p);
}

static void test_after_the_peers_end_we_may_still_write(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p);
    assert_int_equal(shutdown(conn_fd(p.a.conn), SHUT_WR), 0);
    assert_true(side_wait(p.loop, side_is_eof, &p.b));
    conn_write(p.b.conn, SPAN("answer"));
    conn_finish(p.b.conn);
    assert_true(side_wait(p.loop, side_is_eof, &p.a));
    assert_string_equal(buf_cstr(&p.a.in), "answer");
    assert_true(side_wait(p.loop, side_is_closed, &p.b));
    close_pair(&p);
}

static void test_a_lost_peer_is_told_once_and_later(void **state)
{
    struct linger hard = { 1, 0 };
    struct pair p;

    (void)state;
    open_pair(&p);
    assert_int_equal(setsockopt(conn_fd(p.b.conn), SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    conn_close(p.b.conn); /* a reset */
    p.a.is_in_verb = true;
    for (int i = 0; i < 3; i++)
        conn_write(p.a.conn, SPAN("anybody there?"));
    p.a.is_in_verb = false;
    assert_true(side_wait(p.loop, side_is_closed, &p.a));
    assert_true(p.a.is_failed);
    assert_int_equal(p.a.err.code, ERR_CLOSED);
    assert_non_null(strstr(p.a.err.msg, "connection lost: "));
    close_pair(&p);
}

/* A server that refuses an upload answers, closes without reading, and so resets us: its words still count. */
static void test_last_words_are_heard_when_writing_fails(void **state)
{
    struct ev_loop *loop;
    struct side a;
    struct err e;
    int fds[2];
    struct buf upload = { 0 };

    (void)state;
    assert_int_equal(ev_loop_new(&loop, &e), 0);
    side_socket_pair(fds);
    side_open(&a, loop, fds[0], NULL);
    side_fill(&upload, 1000);
    conn_write(a.conn, buf_span(&upload));
    (void)usleep(2000);
    assert_int_equal(write(fds[1], "413", 3), 3);
    (void)close(fds[1]); /* unread bytes: the kernel sends a reset */
    (void)usleep(2000);
    conn_write(a.conn, buf_span(&upload));
    conn_write(a.conn, buf_span(&upload));
    assert_true(side_wait(loop, side_is_closed, &a));
    assert_true(a.is_failed);
    assert_string_equal(buf_cstr(&a.in), "413");
    side_done(&a);
    buf_done(&upload);
    ev_loop_free(loop);
}

static void test_closing_inside_an_event_is_fine(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p);
    p.b.close_at_read = true;
    conn_write(p.a.conn, SPAN("x"));
    assert_true(side_wait(p.loop, side_is_closed, &p.b));
    assert_false(p.b.is_failed);
    assert_true(side_wait(p.loop, side_is_eof, &p.a));
    close_pair(&p);
}

static void count_read(void *ctx, struct span in)
{
    *(size_t *)ctx += in.n;
}

static void count_eof(void *ctx)
{
    *(size_t *)ctx += 1000;
}

static void count_close(void *ctx, const struct err *e)
{
    *(size_t *)ctx += e ? 5000000 : 1000000;
}

static bool is_counted(void *ctx)
{
    return *(size_t *)ctx >= 1000000;
}

static bool b_has_2_mib(void *ctx)
{
    struct pair *p = ctx;

    return p->b.in.n >= 2 << 20;
}

static void test_a_slow_reader_is_seen_to_move(void **state)
{
    struct pair p;
    uint64_t sent, moved;

    (void)state;
    open_pair(&p);
    conn_want_read(p.b.conn, false);
    side_fill(&p.sent, 20 << 20);
    conn_write(p.a.conn, buf_span(&p.sent));
    do { /* until the buffers are full: nobody reads, so it comes to a standstill */
        moved = conn_moved(p.a.conn);
        side_idle(p.loop, 30);
    } while (conn_moved(p.a.conn) != moved);
    sent = conn_sent(p.a.conn);
    assert_true(moved < sent);
    p.b.stop_reading_at = 2 << 20;
    conn_want_read(p.b.conn, true);
    assert_true(side_wait(p.loop, b_has_2_mib, &p));
    assert_true(conn_moved(p.a.conn) != moved);
    close_pair(&p);
}

static void test_a_connection_changes_hands(void **state)
{
    static const struct conn_events counting = { count_read, count_eof, NULL, count_close };
    struct pair p;
    size_t seen = 0;

    (void)state;
    open_pair(&p);
    conn_set_events(p.b.conn, &counting, &seen);
    conn_write(p.a.conn, SPAN("1234567"));
    conn_finish(p.a.conn);
    while (seen < 1007)
        ev_loop_turn(p.loop);
    conn_close(p.b.conn);
    assert_true(side_wait(p.loop, is_counted, &seen));
    assert_int_equal(seen, 1001007);
    p.b.conn = NULL;
    p.b.closes = 1;
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_arrive_in_order_and_a_full_queue_drains),
        cmocka_unit_test(test_a_block_handed_over_is_taken),
        cmocka_unit_test(test_reading_can_be_stopped_and_goes_on),
        cmocka_unit_test(test_an_end_right_behind_bytes_is_seen),
        cmocka_unit_test(test_what_one_turn_leaves_is_read_in_the_next),
        cmocka_unit_test(test_files_keep_their_place_between_bytes),
        cmocka_unit_test(test_a_file_that_ends_early_ends_the_connection),
        cmocka_unit_test(test_closing_while_a_file_is_sent_waits_for_the_worker),
        cmocka_unit_test(test_finish_sends_the_rest_then_ends),
        cmocka_unit_test(test_one_side_may_end_alone),
        cmocka_unit_test(test_after_the_peers_end_we_may_still_write),
        cmocka_unit_test(test_a_lost_peer_is_told_once_and_later),
        cmocka_unit_test(test_last_words_are_heard_when_writing_fails),
        cmocka_unit_test(test_closing_inside_an_event_is_fine),
        cmocka_unit_test(test_a_slow_reader_is_seen_to_move),
        cmocka_unit_test(test_a_connection_changes_hands),
    };
    size_t fds = side_fd_count();
    int failed = cmocka_run_group_tests_name("net/conn", tests, NULL, NULL);

    if (!failed && side_fd_count() != fds) {
        (void)fprintf(stderr, "descriptors leaked: %zu before, %zu after\n", fds, side_fd_count());
        return 1;
    }
    return failed;
}
