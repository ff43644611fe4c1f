/* A request that becomes another protocol: 101, and the connection changes hands. */
#include "http/testdesk.h"

#include "base/log.h"

#define ASK "GET /switch HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n"
#define SWITCHED                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nx-mine: 1\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n"

/* What the handler of a switch got. */
static struct taker {
    struct desk *desk;
    struct side side;
    struct buf rest;
    unsigned calls;
    bool has_conn;
    struct desk_call *waits; /* an exchange to be switched later */
} taker;

static void taken(void *ctx, struct conn *conn, struct span rest)
{
    struct taker *t = ctx;
    struct err e;

    assert_false(t->desk->is_in_verb);
    t->calls++;
    t->has_conn = conn != NULL;
    if (!conn)
        return;
    assert_int_equal(buf_add(&t->rest, rest, &e), 0);
    side_adopt(&t->side, conn);
}

static void serve(struct desk *d, struct http_exchange *x)
{
    taker.desk = d;
    if (!http_upgrade(x).p) {
        http_answer(x, 400, NULL, SPAN("no"));
        return;
    }
    assert_true(span_is(http_upgrade(x), "echo"));
    http_answer_field(x, "x-mine", SPAN("1"));
    VERB(d, http_answer_switch(x, "echo", taken, &taker));
}

static void open_desk(struct desk *d)
{
    static const struct http_server_config quick = { .head_timeout_ms = 60,
                                                     .idle_timeout_ms = 60,
                                                     .stall_timeout_ms = 60 };

    taker = (struct taker){ .rest = BUF_INIT(1 << 20) };
    desk_open(d, &quick);
    d->serve = serve;
}

static bool is_taken(void *ctx)
{
    (void)ctx;
    return taker.calls > 0;
}

static bool has_said(void *ctx)
{
    return taker.rest.n + taker.side.in.n >= *(size_t *)ctx;
}

static void test_the_connection_changes_hands(void **state)
{
    static const struct row {
        const char *first, *then;
    } rows[] = { { ASK, "hello" }, { ASK "hel", "lo" }, { ASK "hello", "" } };

    (void)state;
    EACH(r, rows) {
        struct side client;
        struct desk d;
        size_t five = 5;
        struct err e;

        open_desk(&d);
        desk_connect(&d, &client);
        desk_say(&client, r->first);
        assert_true(desk_wait(&d, is_taken, NULL));
        assert_true(taker.has_conn);
        assert_int_equal(http_server_connections(d.server), 0);
        desk_expect(&client, SWITCHED);
        desk_say(&client, r->then);
        assert_true(desk_wait(&d, has_said, &five));
        assert_int_equal(buf_add(&taker.rest, buf_span(&taker.side.in), &e), 0);
        assert_string_equal(buf_cstr(&taker.rest), "hello");
        side_idle(d.loop, 200); /* no deadline of the server is left on it */
        assert_false(client.is_eof || client.is_closed);
        conn_write(taker.side.conn, SPAN("back"));
        desk_expect(&client, "back");
        assert_int_equal(taker.calls, 1);
        side_done(&taker.side);
        buf_done(&taker.rest);
        side_done(&client);
        desk_close(&d);
    }
}

/* Byte by byte: the head ends exactly where the other protocol begins. */
static void test_cut_anywhere(void **state)
{
    static const char all[] = ASK "hello";
    struct side client;
    struct desk d;
    size_t five = 5;
    struct err e;

    (void)state;
    open_desk(&d);
    desk_connect(&d, &client);
    for (const char *c = all; *c; c++) {
        conn_write(client.conn, span_of(c, 1));
        side_idle(d.loop, 0);
    }
    assert_true(desk_wait(&d, has_said, &five));
    assert_int_equal(buf_add(&taker.rest, buf_span(&taker.side.in), &e), 0);
    assert_string_equal(buf_cstr(&taker.rest), "hello");
    side_done(&taker.side);
    buf_done(&taker.rest);
    side_done(&client);
    desk_close(&d);
}

static void test_what_cannot_be_switched(void **state)
{
    static const char *const asks[] = {
        "GET /switch HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /switch HTTP/1.1\r\nhost: x\r\nupgrade: echo\r\n\r\n",
        "GET /switch HTTP/1.0\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n",
        "POST /switch HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: echo\r\n"
        "content-length: 1\r\n\r\nx",
        "POST /switch HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: echo\r\n"
        "transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    };

    (void)state;
    EACH(ask, asks) {
        struct side client;
        struct desk d;

        open_desk(&d);
        desk_connect(&d, &client);
        desk_say(&client, *ask);
        desk_expect_part(&client, "HTTP/1.1 400 ");
        assert_int_equal(taker.calls, 0);
        side_done(&client);
        desk_close(&d);
    }
}

static void test_an_empty_post_can(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    open_desk(&d);
    desk_connect(&d, &client);
    desk_say(&client, "POST /switch HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: echo\r\n"
                      "content-length: 0\r\n\r\n");
    assert_true(desk_wait(&d, is_taken, NULL));
    desk_expect(&client, SWITCHED);
    side_done(&taker.side);
    buf_done(&taker.rest);
    side_done(&client);
    desk_close(&d);
}

/* Behind a request that was answered on the same connection. */
static void test_a_kept_connection_can(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    open_desk(&d);
    desk_connect(&d, &client);
    desk_say(&client, "GET /a HTTP/1.1\r\nhost: x\r\n\r\n" ASK "x");
    assert_true(desk_wait(&d, is_taken, NULL));
    desk_expect_part(&client, SWITCHED);
    assert_string_equal(buf_cstr(&taker.rest), "x");
    side_done(&taker.side);
    buf_done(&taker.rest);
    side_done(&client);
    desk_close(&d);
}

static void serve_later(struct desk *d, struct http_exchange *x)
{
    static struct desk_call later;

    taker.desk = d;
    later.x = x;
    taker.waits = &later;
}

static bool is_waiting(void *ctx)
{
    (void)ctx;
    return taker.waits != NULL;
}

/* The handler is told although there is no connection to give. */
static void test_a_peer_that_went_first(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    open_desk(&d);
    d.serve = serve_later;
    desk_connect(&d, &client);
    desk_say(&client, ASK);
    assert_true(desk_wait(&d, is_waiting, NULL));
    conn_finish_writing(client.conn);
    side_idle(d.loop, 20);
    VERB(&d, http_answer_switch(taker.waits->x, "echo", taken, &taker));
    assert_true(desk_wait(&d, is_taken, NULL));
    assert_false(taker.has_conn);
    side_done(&client);
    desk_close(&d);
}

static void test_a_server_that_is_freed_first(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    open_desk(&d);
    d.serve = serve_later;
    desk_connect(&d, &client);
    desk_say(&client, ASK);
    assert_true(desk_wait(&d, is_waiting, NULL));
    VERB(&d, http_answer_switch(taker.waits->x, "echo", taken, &taker));
    http_server_free(d.server); /* in the same turn */
    d.server = NULL;
    assert_int_equal(taker.calls, 1);
    assert_false(taker.has_conn);
    side_done(&client);
    desk_close(&d);
}

/* ---- what never was HTTP ---- */

static unsigned closed;

static void count_closed(void *ctx)
{
    (void)ctx;
    closed++;
}

static void take_stranger(void *ctx, struct conn *conn, struct span first)
{
    taker.desk = ctx;
    taken(&taker, conn, first);
}

static void test_a_stranger_is_given_away(void **state)
{
    static const struct http_server_config config = { .idle_timeout_ms = 60,
                                                      .on_stranger = take_stranger,
                                                      .on_closed = count_closed };
    struct side client;
    struct desk d;
    size_t five = 5;

    (void)state;
    taker = (struct taker){ .rest = BUF_INIT(1 << 20) };
    closed = 0;
    desk_open(&d, &config);
    desk_connect(&d, &client);
    conn_write(client.conn, SPAN("\0ab"));
    assert_true(desk_wait(&d, is_taken, NULL));
    assert_int_equal(http_server_connections(d.server), 0);
    assert_true(span_eq(buf_span(&taker.rest), SPAN("\0ab")));
    conn_write(client.conn, SPAN("cd"));
    assert_true(desk_wait(&d, has_said, &five));
    side_idle(d.loop, 200); /* no deadline of the server is left on it */
    assert_false(client.is_eof || client.is_closed);
    conn_write(taker.side.conn, SPAN("back"));
    desk_expect(&client, "back");
    assert_int_equal(closed, 0);
    side_done(&taker.side);
    side_done(&client);
    /* HTTP is HTTP as ever, and only the first byte counts. */
    desk_connect(&d, &client);
    conn_write(client.conn, SPAN("G\0\r\n\r\n"));
    desk_expect_part(&client, "HTTP/1.1 400");
    assert_int_equal(taker.calls, 1);
    buf_done(&taker.rest);
    side_done(&client);
    desk_close(&d);
    assert_int_equal(closed, 1);
}

/* Where nobody wants one. */
static void test_a_stranger_is_refused(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    open_desk(&d);
    desk_connect(&d, &client);
    conn_write(client.conn, SPAN("\0ab\r\n\r\n"));
    desk_expect_part(&client, "HTTP/1.1 400");
    assert_int_equal(taker.calls, 0);
    buf_done(&taker.rest);
    side_done(&client);
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_the_connection_changes_hands),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_what_cannot_be_switched),
        cmocka_unit_test(test_an_empty_post_can),
        cmocka_unit_test(test_a_kept_connection_can),
        cmocka_unit_test(test_a_peer_that_went_first),
        cmocka_unit_test(test_a_server_that_is_freed_first),
        cmocka_unit_test(test_a_stranger_is_given_away),
        cmocka_unit_test(test_a_stranger_is_refused),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(all, NULL, NULL);
}
