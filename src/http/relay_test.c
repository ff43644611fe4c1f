/* A server in front (the desk), which passes requests on to one behind; both in one loop. What comes back, what is passed
 * and what is not, and every way in which one of the three leaves early. */
#include "http/relay.h"

#include "base/log.h"
#include "http/testdesk.h"
#include "net/listen.h"

#include <string.h>

#define ASK                                                                                         \
    "POST /switch?q=1 HTTP/1.1\r\nhost: front\r\nconnection: Upgrade\r\nupgrade: echo\r\n"          \
    "x-kept: yes\r\nauthorization: Bearer secret\r\ncookie: secret\r\nimpersonate-user: secret\r\n" \
    "x-remote-user: secret\r\ncontent-length: 0\r\n\r\n"

#define PLAIN                                                                                      \
    "GET /old?q=1 HTTP/1.1\r\nhost: front\r\nauthorization: Bearer secret\r\n"                     \
    "x-mine: secret\r\n"

#define FLOOD_BYTES (32 << 20) /* more than the kernel holds for two connections */

enum behaviour { SWITCHES, REFUSES, HANGS, SWITCHES_AND_GOES, FLOWS, FLOODS };

static struct world {
    struct desk desk;
    struct http_server *back;
    struct net_listener *listener;
    struct http_client *client;
    struct side client_side, back_side;
    struct buf seen; /* the request as the server behind got it */
    struct buf rest; /* bytes it got with the connection */
    enum behaviour behaviour;
    uint16_t port;
    struct http_relay *relay;
    struct http_exchange *hanging;
    const char *target;
    size_t flooded;
    unsigned dones, fails, answers;
    int status;
    bool is_taken;
} w;

/* ---- the server behind ---- */

static void back_taken(void *ctx, struct conn *conn, struct span rest)
{
    struct err e;

    (void)ctx;
    if (!conn)
        return;
    w.is_taken = true;
    assert_int_equal(buf_add(&w.rest, rest, &e), 0);
    side_adopt(&w.back_side, conn);
    if (w.behaviour == SWITCHES_AND_GOES)
        conn_close(conn);
}

static void back_gone(void *ctx)
{
    (void)ctx;
    w.hanging = NULL;
}

/* As much as is taken, and more when there is room again. */
static void flood(void *ctx)
{
    static const uint8_t piece[64 * 1024];
    struct http_exchange *x = ctx;

    for (; w.flooded < FLOOD_BYTES && !http_answer_is_full(x); w.flooded += sizeof piece)
        http_answer_write(x, span_of(piece, sizeof piece));
    if (w.flooded < FLOOD_BYTES)
        return;
    w.hanging = NULL;
    http_answer_end(x, NULL);
}

static void begin_flow(struct http_exchange *x)
{
    w.hanging = x;
    http_on_gone(x, back_gone, NULL);
    http_eof_is_gone(x);
    http_answer_field(x, "content-type", SPAN("text/plain"));
    http_answer_begin(x, 200, UINT64_MAX);
    if (w.behaviour == FLOODS) {
        http_on_drain(x, flood, x);
        flood(x);
    } else {
        http_answer_write(x, SPAN("first\n"));
    }
}

static void back_request(void *ctx, struct http_exchange *x)
{
    struct span name, value;
    struct err e;

    (void)ctx;
    assert_int_equal(buf_addf(&w.seen, &e, "%.*s %.*s?%.*s\n", SPAN_ARG(http_method(x)),
                              SPAN_ARG(http_path(x)), SPAN_ARG(http_query(x))),
                     0);
    for (size_t i = 0; i < http_head_count(http_req(x)); i++) {
        http_head_field(http_req(x), i, &name, &value);
        assert_int_equal(buf_addf(&w.seen, &e, "%.*s=%.*s\n", SPAN_ARG(name), SPAN_ARG(value)), 0);
    }
    switch (w.behaviour) {
    case SWITCHES:
    case SWITCHES_AND_GOES:
        http_answer_field(x, "x-back", SPAN("1"));
        http_answer_switch(x, "echo", back_taken, NULL);
        return;
    case REFUSES:
        http_answer(x, 403, "application/json", SPAN("{\"no\":1}"));
        return;
    case HANGS:
        w.hanging = x;
        http_on_gone(x, back_gone, NULL);
        http_eof_is_gone(x);
        return;
    case FLOWS:
    case FLOODS:
        begin_flow(x);
        return;
    }
}

/* ---- the one in front ---- */

static void on_failed(void *ctx, struct http_exchange *x, const struct err *e)
{
    (void)ctx;
    w.fails++;
    http_answer(x, 502, "text/plain", span_cstr(e->msg));
}

static void on_answered(void *ctx)
{
    (void)ctx;
    assert_false(w.desk.is_in_verb);
    w.answers++;
}

static void on_done(void *ctx)
{
    (void)ctx;
    w.dones++;
    w.status = http_relay_status(w.relay);
    w.relay = NULL;
}

static void front_request(struct desk *d, struct http_exchange *x)
{
    const struct http_relay_spec spec = { .client = w.client,
                                          .to = { .host = "127.0.0.1", .port = w.port },
                                          .target = w.target ? span_cstr(w.target) : SPAN_NONE,
                                          .on_failed = on_failed,
                                          .on_answered = on_answered,
                                          .on_done = on_done };

    VERB(d, w.relay = http_relay_start(x, &spec));
}

static void open_world(enum behaviour behaviour)
{
    const struct http_server_config config = { .on_request = back_request };
    const struct http_client_config calls = { 0 };
    struct net_addr at;
    struct err e;

    w = (struct world){ .behaviour = behaviour, .seen = BUF_INIT(4096), .rest = BUF_INIT(4096) };
    desk_open(&w.desk, NULL);
    w.desk.serve = front_request;
    w.back = http_server_new(w.desk.loop, &config);
    assert_int_equal(net_addr_parse("127.0.0.1:0", &at, &e), 0);
    assert_int_equal(net_listen(w.desk.loop, &at, http_server_accept, w.back, &w.listener, &e), 0);
    w.port = net_addr_port(net_listener_addr(w.listener));
    w.client = http_client_new(w.desk.loop, &calls);
    desk_connect(&w.desk, &w.client_side);
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return w.dones > 0;
}

static bool is_taken(void *ctx)
{
    (void)ctx;
    return w.is_taken;
}

static bool is_hanging(void *ctx)
{
    (void)ctx;
    return w.hanging != NULL;
}

static void close_world(void)
{
    assert_true(desk_wait(&w.desk, is_done, NULL));
    side_done(&w.client_side);
    if (w.is_taken)
        side_done(&w.back_side);
    net_listener_close(w.listener);
    http_client_free(w.client);
    http_server_free(w.back);
    conn_close_orphans(w.desk.loop);
    ev_loop_turn(w.desk.loop);
    desk_close(&w.desk);
    assert_int_equal(w.dones, 1);
    buf_done(&w.seen);
    buf_done(&w.rest);
}

static bool has_five(void *ctx)
{
    struct buf *rest = ctx;

    return rest->n + w.back_side.in.n >= 5;
}

static void test_bytes_both_ways(void **state)
{
    struct err e;

    (void)state;
    open_world(SWITCHES);
    desk_say(&w.client_side, ASK "ear");
    assert_true(desk_wait(&w.desk, is_taken, NULL));
    desk_expect(&w.client_side, "HTTP/1.1 101 Switching Protocols\r\nx-back: 1\r\n"
                                "connection: Upgrade\r\nupgrade: echo\r\n\r\n");
    desk_say(&w.client_side, "ly");
    assert_true(desk_wait(&w.desk, has_five, &w.rest));
    assert_int_equal(buf_add(&w.rest, buf_span(&w.back_side.in), &e), 0);
    assert_string_equal(buf_cstr(&w.rest), "early");
    conn_write(w.back_side.conn, SPAN("back"));
    desk_expect(&w.client_side, "back");
    assert_null(strstr(buf_cstr(&w.seen), "secret"));
    assert_non_null(strstr(buf_cstr(&w.seen), "POST /switch?q=1\n"));
    assert_non_null(strstr(buf_cstr(&w.seen), "x-kept=yes\n"));
    assert_null(strstr(buf_cstr(&w.seen), "host=front"));
    conn_close(w.client_side.conn);
    assert_true(desk_wait(&w.desk, side_is_eof, &w.back_side));
    conn_close(w.back_side.conn);
    close_world();
    assert_int_equal(w.status, 101);
    assert_int_equal(w.answers, 1);
}

static void test_a_refusal_is_given_back(void **state)
{
    (void)state;
    open_world(REFUSES);
    desk_say(&w.client_side, ASK);
    desk_expect_part(&w.client_side, "HTTP/1.1 403 Forbidden\r\n");
    desk_expect_part(&w.client_side, "{\"no\":1}");
    close_world();
    assert_int_equal(w.fails, 0);
    assert_int_equal(w.status, 403);
    assert_int_equal(w.answers, 1);
}

static void test_a_server_that_is_not_there(void **state)
{
    (void)state;
    open_world(SWITCHES);
    w.port = 1;
    desk_say(&w.client_side, ASK);
    desk_expect_part(&w.client_side, "HTTP/1.1 502 ");
    close_world();
    assert_int_equal(w.fails, 1);
    assert_int_equal(w.status, 0);
    assert_int_equal(w.answers, 0);
}

static void test_an_answer_in_pieces(void **state)
{
    (void)state;
    open_world(FLOWS);
    w.target = "/new?a=b";
    desk_say(&w.client_side, PLAIN "\r\n");
    desk_expect_part(&w.client_side, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n");
    desk_expect_part(&w.client_side, "first\n");
    assert_true(desk_wait(&w.desk, is_hanging, NULL));
    http_answer_write(w.hanging, SPAN("second\n"));
    desk_expect_part(&w.client_side, "second\n");
    http_answer_end(take_ptr(&w.hanging), NULL);
    desk_expect_part(&w.client_side, "0\r\n\r\n");
    close_world();
    assert_int_equal(w.status, 200);
}

/* Only what was asked for is passed on: neither fields, nor who asks, nor that there was a body. */
static void test_a_plain_request_is_bare(void **state)
{
    (void)state;
    open_world(REFUSES);
    w.target = "/new?a=b";
    desk_say(&w.client_side, PLAIN "transfer-encoding: chunked\r\n\r\n0\r\n\r\n");
    desk_expect_part(&w.client_side, "{\"no\":1}");
    assert_non_null(strstr(buf_cstr(&w.seen), "GET /new?a=b\nhost=127.0.0.1"));
    assert_null(strstr(strstr(buf_cstr(&w.seen), "host=") + 5, "="));
    close_world();
}

static void test_an_answer_that_breaks_off(void **state)
{
    (void)state;
    open_world(FLOWS);
    desk_say(&w.client_side, PLAIN "\r\n");
    desk_expect_part(&w.client_side, "first\n");
    http_answer_abort(take_ptr(&w.hanging));
    desk_expect_end(&w.client_side);
    assert_null(strstr(buf_cstr(&w.client_side.in), "0\r\n\r\n"));
    close_world();
    assert_int_equal(w.fails, 0);
}

static bool is_gone(void *ctx)
{
    (void)ctx;
    return w.hanging == NULL;
}

static void test_a_client_that_leaves_a_silent_answer(void **state)
{
    (void)state;
    open_world(FLOWS);
    desk_say(&w.client_side, PLAIN "\r\n");
    desk_expect_part(&w.client_side, "first\n");
    conn_close(w.client_side.conn);
    assert_true(desk_wait(&w.desk, is_gone, NULL));
    close_world();
}

static bool is_flooded(void *ctx)
{
    (void)ctx;
    return w.flooded >= FLOOD_BYTES;
}

/* A reader that does not read holds the server behind up, and gets all of it in the end. */
static void test_a_slow_reader(void **state)
{
    (void)state;
    open_world(FLOODS);
    desk_say(&w.client_side, PLAIN "\r\n");
    desk_expect_part(&w.client_side, "HTTP/1.1 200 OK\r\n");
    conn_want_read(w.client_side.conn, false);
    side_idle(w.desk.loop, 100);
    assert_true(w.flooded < FLOOD_BYTES);
    conn_want_read(w.client_side.conn, true);
    assert_true(desk_wait(&w.desk, is_flooded, NULL));
    close_world();
}

static void test_a_client_that_goes_while_it_waits(void **state)
{
    (void)state;
    open_world(HANGS);
    desk_say(&w.client_side, ASK);
    assert_true(desk_wait(&w.desk, is_hanging, NULL));
    http_relay_close(w.relay);
    desk_expect_part(&w.client_side, "HTTP/1.1 502 ");
    close_world();
}

static void test_a_server_that_goes_at_once(void **state)
{
    (void)state;
    open_world(SWITCHES_AND_GOES);
    desk_say(&w.client_side, ASK);
    desk_expect_end(&w.client_side);
    close_world();
}

static void test_close_ends_both(void **state)
{
    (void)state;
    open_world(SWITCHES);
    desk_say(&w.client_side, ASK);
    desk_expect_part(&w.client_side, "HTTP/1.1 101 ");
    assert_true(desk_wait(&w.desk, is_taken, NULL));
    side_idle(w.desk.loop, 20);
    http_relay_close(w.relay);
    desk_expect_end(&w.client_side);
    close_world();
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_bytes_both_ways),
        cmocka_unit_test(test_a_refusal_is_given_back),
        cmocka_unit_test(test_a_server_that_is_not_there),
        cmocka_unit_test(test_an_answer_in_pieces),
        cmocka_unit_test(test_a_plain_request_is_bare),
        cmocka_unit_test(test_an_answer_that_breaks_off),
        cmocka_unit_test(test_a_client_that_leaves_a_silent_answer),
        cmocka_unit_test(test_a_slow_reader),
        cmocka_unit_test(test_a_client_that_goes_while_it_waits),
        cmocka_unit_test(test_a_server_that_goes_at_once),
        cmocka_unit_test(test_close_ends_both),
    };

    log_set_level(LOG_OFF);
    return cmocka_run_group_tests(all, NULL, NULL);
}
