/* HTTP/1.1 as clients see it, good ones and others. */
#include "http/testdesk.h"

#include <stdio.h>

#define OK_HELLO "HTTP/1.1 200 OK\r\ncontent-length: 6\r\ncontent-type: text/plain\r\n\r\nhello\n"
#define OK_HELLO_CLOSE                                                                              \
    "HTTP/1.1 200 OK\r\ncontent-length: 6\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n" \
    "hello\n"
#define GET_HELLO "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n"
#define GET_LATER "GET /later HTTP/1.1\r\nhost: x\r\n\r\n"
#define DETAIL(status, n, text)                                                                    \
    "HTTP/1.1 " status "\r\ncontent-type: application/json\r\ncontent-length: " n                  \
    "\r\nconnection: close\r\n\r\n{\"detail\":\"" text "\"}"

struct row {
    const char *name;
    const char *in;
    const char *out;
    bool ends; /* the server closes behind it */
};

/* clang-format off */
static const struct row rows[] = {
    { "a request", GET_HELLO, OK_HELLO, false },
    { "a blank line before it", "\r\n" GET_HELLO, OK_HELLO, false },
    { "three in one piece", GET_HELLO GET_HELLO GET_HELLO, OK_HELLO OK_HELLO OK_HELLO, false },
    { "HEAD", "HEAD /hello HTTP/1.1\r\nhost: x\r\n\r\n" GET_HELLO,
      "HTTP/1.1 200 OK\r\ncontent-length: 6\r\ncontent-type: text/plain\r\n\r\n" OK_HELLO, false },
    { "HEAD of unknown length", "HEAD /flow HTTP/1.1\r\nhost: x\r\n\r\n" GET_HELLO,
      "HTTP/1.1 200 OK\r\n\r\n" OK_HELLO, false },
    { "the client closes", "GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n" GET_HELLO,
      OK_HELLO_CLOSE, true },
    { "HTTP/1.0", "GET /hello HTTP/1.0\r\n\r\n", OK_HELLO_CLOSE, true },
    { "HTTP/1.0 that stays", "GET /hello HTTP/1.0\r\nconnection: keep-alive\r\n\r\n" GET_HELLO,
      "HTTP/1.1 200 OK\r\ncontent-length: 6\r\ncontent-type: text/plain\r\nconnection: keep-alive\r\n\r\nhello\n" OK_HELLO,
      false },
    { "HTTP/1.0 and a body without length", "POST /echo HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi",
      "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhi", true },
    { "the target names the server", "GET http://x/hello?a=1 HTTP/1.1\r\nhost: x\r\n\r\n", OK_HELLO, false },
    { "a body is read", "POST /collect HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n12345" GET_HELLO,
      "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-type: text/plain\r\n\r\n5" OK_HELLO, false },
    { "no body to collect", "POST /collect HTTP/1.1\r\nhost: x\r\n\r\n" GET_HELLO,
      "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-type: text/plain\r\n\r\n0" OK_HELLO, false },
    { "chunks are read", "POST /collect HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n3;a=b\r\n123\r\n0\r\nx: y\r\n\r\n" GET_HELLO,
      "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-type: text/plain\r\n\r\n5" OK_HELLO, false },
    { "a short body nobody reads", "POST /hello HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n12345" GET_HELLO,
      OK_HELLO OK_HELLO, false },
    { "chunks nobody reads", "POST /hello HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n" GET_HELLO,
      OK_HELLO OK_HELLO, false },
    { "a long body nobody reads", "POST /hello HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n12345" , OK_HELLO_CLOSE, true },
    { "a body after 100", "POST /collect HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\n", false },
    { "100 and nobody reads", "POST /hello HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n",
      OK_HELLO_CLOSE, true },
    { "HTTP/1.0 knows no 100", "POST /collect HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nhi",
      "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n2", true },
    { "100 is not sent for a body that is too large",
      "POST /collect HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1001\r\n\r\n",
      "HTTP/1.1 413 Request Entity Too Large\r\ncontent-length: 34\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n"
      "the body is larger than 1000 bytes", true },
    { "a body that says it is too large",
      "POST /collect?max=3 HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n12345" GET_HELLO,
      "HTTP/1.1 413 Request Entity Too Large\r\ncontent-length: 31\r\ncontent-type: text/plain\r\n\r\n"
      "the body is larger than 3 bytes" OK_HELLO, false },
    { "a body that becomes too large",
      "POST /collect?max=3 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n" GET_HELLO,
      "HTTP/1.1 413 Request Entity Too Large\r\ncontent-length: 31\r\ncontent-type: text/plain\r\n\r\n"
      "the body is larger than 3 bytes" OK_HELLO, false },
    { "two framings", "POST /hello HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" GET_HELLO,
      DETAIL("400 Bad Request", "54", "both transfer-encoding and content-length"), true },
    { "no host", "GET / HTTP/1.1\r\n\r\n" GET_HELLO, DETAIL("400 Bad Request", "27", "no host header"), true },
    { "an answer, then nonsense", GET_HELLO "\x16\x03\x01 TLS", OK_HELLO DETAIL("400 Bad Request", "54", "not HTTP: a message begins with byte 0x16"), true },
    { "nonsense in a body nobody reads", "POST /hello HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nxx\r\n" GET_HELLO,
      OK_HELLO, true },
};
/* clang-format on */

static void run(const struct row *r, size_t step)
{
    struct side client;
    struct desk d;
    size_t n = strlen(r->in);

    desk_open(&d, NULL);
    desk_connect(&d, &client);
    for (size_t at = 0; at < n && !client.is_closed; at += step) {
        conn_write(client.conn, span_slice(span_of(r->in, n), at, at + MIN(step, n)));
        for (int i = 0; i < 3 && step < n; i++)
            ev_loop_turn(d.loop);
    }
    desk_expect(&client, r->out);
    if (r->ends)
        desk_expect_end(&client);
    assert_int_equal(client.is_eof || client.is_closed, r->ends);
    side_done(&client);
    desk_close(&d);
}

static void test_what_is_said_and_heard(void **state)
{
    (void)state;
    EACH(r, rows) {
        print_message("# %s\n", r->name);
        run(r, SIZE_MAX);
        run(r, 1);
    }
}

/* What two parsers could read differently ends the connection before anything behind it is believed. */
static void test_smuggling_shapes_are_refused(void **state)
{
    static const char *const shapes[] = {
        "content-length: 5\r\ncontent-length: 6",
        "content-length: +5",
        "content-length: 5, 6",
        "content-length : 5",
        "content-length: 0x5",
        "content-length: 99999999999999999999999",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: xchunked",
        "transfer-encoding : chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "x: a\r\n b",
        "x: a\nb: c",
        "x\r\n",
        "x: a\rb",
        "host: y",
        " x: y",
    };

    (void)state;
    EACH(s, shapes) {
        struct side client;
        struct desk d;
        char text[512];

        desk_open(&d, NULL);
        desk_connect(&d, &client);
        (void)snprintf(text, sizeof text, "POST /later HTTP/1.1\r\nhost: x\r\n%s\r\n\r\n" GET_HELLO,
                       *s);
        desk_say(&client, text);
        desk_expect_part(&client, "}");
        if (d.n ||
            (!strstr(desk_heard(&client), "HTTP/1.1 400 ") &&
             !strstr(desk_heard(&client), "HTTP/1.1 501 ")) ||
            !strstr(desk_heard(&client), "connection: close"))
            fail_msg("'%s': %zu calls, '%s'", *s, d.n, desk_heard(&client));
        desk_expect_end(&client);
        side_done(&client);
        desk_close(&d);
    }
}

static void test_large_heads_are_refused(void **state)
{
    const struct http_server_config config = { .head_max_bytes = 2000, .server_name = "desk" };
    static char text[4000];
    struct side a, b;
    struct desk d;

    (void)state;
    desk_open(&d, &config);
    desk_connect(&d, &a);
    desk_connect(&d, &b);
    (void)snprintf(text, sizeof text, "GET /hello HTTP/1.1\r\nhost: x\r\ny: %02000d\r\n\r\n", 0);
    desk_say(&a, text);
    desk_expect_part(&a, "HTTP/1.1 431 Request Header Fields Too Large\r\nserver: desk\r\n");
    desk_expect_end(&a);
    (void)snprintf(text, sizeof text, "GET /hello HTTP/1.1\r\nhost: x\r\ny: %01800d\r\n\r\n", 0);
    desk_say(&b, text);
    desk_expect_part(&b, "hello\n");
    assert_int_equal(d.n, 1);
    side_done(&a);
    side_done(&b);
    desk_close(&d);
}

static void plain_error(void *ctx, int status, const char *message, struct buf *body,
                        const char **ret_type)
{
    struct err e;

    (void)ctx;
    *ret_type = "text/plain";
    (void)buf_addf(body, &e, "%d: %s", status, message);
}

static void test_refusals_speak_the_servers_language(void **state)
{
    const struct http_server_config config = { .error_body = plain_error };
    struct side client;
    struct desk d;

    (void)state;
    desk_open(&d, &config);
    desk_connect(&d, &client);
    desk_say(&client, "GET / HTTP/1.1\r\n\r\n");
    desk_expect(&client,
                "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 19\r\n"
                "connection: close\r\n\r\n400: no host header");
    side_done(&client);
    desk_close(&d);
    /* The default quotes what a peer made us say. */
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    desk_say(&client, "GET / HTTP/1.1\r\nhost: \"\xff\r\n\r\n");
    desk_expect_part(&client, "}");
    assert_non_null(strstr(desk_heard(&client), "\r\n\r\n{\"detail\":\""));
    assert_null(strchr(desk_heard(&client), '\xff'));
    side_done(&client);
    desk_close(&d);
}

/* ---- order and ends ---- */

static void test_answers_keep_the_order_of_requests(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    desk_say(&client,
             "GET /a HTTP/1.1\r\nhost: x\r\n\r\n" GET_HELLO "GET /b HTTP/1.1\r\nhost: x\r\n\r\n");
    (void)desk_wait_call(&d, 0);
    side_idle(d.loop, 5);
    assert_int_equal(d.n, 1); /* the next waits for the answer to this one */
    assert_int_equal(client.in.n, 0);
    desk_answer(d.calls[0], 200, "a");
    (void)desk_wait_call(&d, 2);
    desk_expect(
        &client,
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-type: text/plain\r\n\r\na" OK_HELLO);
    desk_answer(d.calls[2], 404, "b");
    desk_expect(&client,
                "HTTP/1.1 404 Not Found\r\ncontent-length: 1\r\ncontent-type: text/plain\r\n\r\nb");
    side_done(&client);
    desk_close(&d);
}

static void test_a_client_that_ended_its_side_is_answered(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    desk_say(&client, GET_LATER GET_HELLO GET_HELLO GET_LATER GET_HELLO);
    (void)shutdown(conn_fd(client.conn), SHUT_WR);
    desk_answer(desk_wait_call(&d, 0), 200, "1");
    desk_answer(desk_wait_call(&d, 3), 200, "2");
    desk_expect_end(&client);
    assert_int_equal(d.n, 5);
    assert_int_equal(d.calls[3]->gones + d.calls[0]->gones, 0);
    desk_expect(
        &client,
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-type: text/plain\r\n\r\n1" OK_HELLO
            OK_HELLO
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-type: text/plain\r\n\r\n2" OK_HELLO);
    side_done(&client);
    desk_close(&d);
}

static bool is_over(void *ctx)
{
    return ((struct desk_call *)ctx)->is_over;
}

static bool has_end(void *ctx)
{
    return ((struct desk_call *)ctx)->ends == 1;
}

static bool has_data(void *ctx)
{
    return ((struct desk_call *)ctx)->body.n > 0;
}

static void test_work_without_a_reader_can_be_given_up(void **state)
{
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    for (int is_late = 0; is_late < 2; is_late++) {
        desk_open(&d, NULL);
        desk_connect(&d, &client);
        desk_say(&client, GET_LATER);
        c = desk_wait_call(&d, 0);
        if (!is_late)
            VERB(&d, http_eof_is_gone(c->x));
        (void)shutdown(conn_fd(client.conn), SHUT_WR);
        side_idle(d.loop, 5);
        if (is_late)
            VERB(&d, http_eof_is_gone(c->x));
        assert_true(desk_wait(&d, is_over, c));
        assert_int_equal(c->gones, 1);
        side_done(&client);
        desk_close(&d);
    }
}

static void test_a_body_cut_by_the_peers_end_is_told_and_answered(void **state)
{
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    for (int is_paused = 0; is_paused < 2; is_paused++) {
        desk_open(&d, NULL);
        d.pauses = is_paused;
        desk_connect(&d, &client);
        desk_say(&client, "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n1234");
        c = desk_wait_call(&d, 0);
        assert_true(desk_wait(&d, has_data, c));
        desk_say(&client, "56");
        (void)shutdown(conn_fd(client.conn), SHUT_WR);
        side_idle(d.loop, 5);
        if (is_paused) {
            assert_int_equal(c->ends, 0);
            assert_int_equal(c->body.n, 4);
            VERB(&d, http_body_pause(c->x, false));
        }
        assert_true(desk_wait(&d, has_end, c));
        assert_int_equal(c->body.n, 6);
        assert_int_equal(c->err.code, ERR_CLOSED);
        desk_answer(c, 400, "cut");
        desk_expect(&client,
                    "HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\ncontent-type: text/plain\r\n"
                    "connection: close\r\n\r\ncut");
        desk_expect_end(&client);
        side_done(&client);
        desk_close(&d);
    }
}

static void test_a_broken_body_is_told_once(void **state)
{
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    desk_say(
        &client,
        "POST /read HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\nxx\r\n");
    c = desk_wait_call(&d, 0);
    assert_true(desk_wait(&d, has_end, c));
    assert_int_equal(c->err.code, ERR_PROTOCOL);
    desk_say(&client, "2\r\nhi\r\n0\r\n\r\n");
    side_idle(d.loop, 5);
    assert_int_equal(c->body.n, 2);
    desk_answer(c, 400, "bad");
    desk_expect_part(&client, "connection: close\r\n\r\nbad");
    desk_expect_end(&client);
    side_done(&client);
    desk_close(&d);
}

static void test_a_client_that_goes_is_told_once(void **state)
{
    const struct linger at_once = { .l_onoff = 1 };
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    desk_say(&client, "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n1234");
    c = desk_wait_call(&d, 0);
    assert_true(desk_wait(&d, has_data, c));
    (void)setsockopt(conn_fd(client.conn), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    conn_close(client.conn);
    assert_true(desk_wait(&d, is_over, c));
    assert_int_equal(c->gones, 1);
    assert_int_equal(c->ends, 0);
    assert_int_equal(http_server_connections(d.server), 0);
    side_done(&client);
    desk_close(&d);
}

/* ---- back-pressure ---- */

static bool body_is_whole(void *ctx)
{
    return ((struct desk_call *)ctx)->body.n >= 20 << 20;
}

static void test_a_paused_body_holds_the_peer_up(void **state)
{
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);
    struct side client;
    struct desk d;
    struct desk_call *c;
    size_t had;

    (void)state;
    desk_open(&d, NULL);
    d.pauses = true;
    desk_connect(&d, &client);
    side_fill(&content, 20 << 20);
    desk_say(&client, "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 20971520\r\n\r\n");
    conn_write(client.conn, buf_span(&content));
    c = desk_wait_call(&d, 0);
    assert_true(desk_wait(&d, has_data, c));
    side_idle(d.loop, 30);
    had = c->body.n;
    assert_in_range(had, 1, 64 * 1024);
    assert_true(conn_queued(client.conn) > 1 << 20); /* the kernel's buffers hold the rest */
    VERB(&d, http_body_pause(c->x, false));
    assert_int_equal(c->body.n, had);
    assert_true(desk_wait(&d, body_is_whole, c));
    assert_true(desk_wait(&d, has_end, c));
    assert_memory_equal(c->body.p, content.p, content.n);
    desk_answer(c, 200, "all");
    desk_expect_part(&client, "all");
    side_done(&client);
    desk_close(&d);
}

/* The taker of the last piece pauses: what is left to tell is only that this was all. */
static void test_a_pause_at_the_last_piece(void **state)
{
    static const char *const bodies[] = {
        "content-length: 4\r\n\r\n1234", "transfer-encoding: chunked\r\n\r\n4\r\n1234\r\n0\r\n\r\n"
    };

    (void)state;
    EACH(body, bodies) {
        struct side client;
        struct desk d;
        struct desk_call *c;

        desk_open(&d, NULL);
        d.pauses = true;
        desk_connect(&d, &client);
        desk_say(&client, "POST /read HTTP/1.1\r\nhost: x\r\n");
        desk_say(&client, *body);
        c = desk_wait_call(&d, 0);
        assert_true(desk_wait(&d, has_data, c));
        side_idle(d.loop, 5);
        assert_int_equal(c->ends, 0);
        VERB(&d, http_body_pause(c->x, false));
        assert_true(desk_wait(&d, has_end, c));
        assert_int_equal(c->body.n, 4);
        desk_answer(c, 200, "all");
        desk_expect_part(&client, "all");
        side_done(&client);
        desk_close(&d);
    }
}

static void test_an_answer_ends_a_pause(void **state)
{
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    desk_open(&d, NULL);
    d.pauses = true;
    desk_connect(&d, &client);
    desk_say(&client, "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 8\r\n\r\n1234");
    c = desk_wait_call(&d, 0);
    assert_true(desk_wait(&d, has_data, c));
    desk_answer(c, 409, "no");
    desk_say(&client, "5678" GET_HELLO);
    desk_expect(
        &client,
        "HTTP/1.1 409 Conflict\r\ncontent-length: 2\r\ncontent-type: text/plain\r\n\r\nno" OK_HELLO);
    side_done(&client);
    desk_close(&d);
}

static bool body_left(void *ctx)
{
    struct side *client = ctx;

    return conn_queued(client->conn) == 0;
}

static void test_an_early_answer_reaches_a_client_that_uploads(void **state)
{
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);
    struct side client;
    struct desk d;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    side_fill(&content, 30 << 20);
    conn_want_read(client.conn,
                   false); /* as clients do that look for an answer behind their upload */
    desk_say(&client, "POST /hello HTTP/1.1\r\nhost: x\r\ncontent-length: 31457280\r\n\r\n");
    conn_write(client.conn, buf_span(&content));
    assert_true(desk_wait(&d, body_left, &client));
    conn_want_read(client.conn, true);
    desk_expect_part(&client, OK_HELLO_CLOSE);
    desk_expect_end(&client);
    side_done(&client);
    desk_close(&d);
}

static void test_chunks_behind_an_answer_are_read_over_for_a_while_only(void **state)
{
    OWN(buf_done) struct buf chunk = BUF_INIT(1 << 20);
    struct side client;
    struct desk d;
    struct err e;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    assert_int_equal(buf_addf(&chunk, &e, "8000\r\n%032768d\r\n", 0), 0);
    desk_say(&client, "POST /hello HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    desk_expect(&client, OK_HELLO);
    for (int i = 0; i < 3; i++)
        conn_write(client.conn, buf_span(&chunk));
    desk_expect_end(&client);
    assert_int_equal(d.n, 1);
    side_done(&client);
    desk_close(&d);
}

static bool has_30_mb(void *ctx)
{
    return ((struct side *)ctx)->in.n >= 30000000;
}

static void test_an_answer_waits_for_a_slow_reader(void **state)
{
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    conn_want_read(client.conn, false);
    desk_say(&client, "GET /flow?n=30000000 HTTP/1.0\r\n\r\n");
    c = desk_wait_call(&d, 0);
    side_idle(d.loop, 50);
    assert_true(c->left >
                10000000); /* what the kernel's buffers hold, and one high mark, are gone */
    assert_false(c->is_over);
    conn_want_read(client.conn, true);
    assert_true(desk_wait(&d, has_30_mb, &client));
    assert_true(c->is_over && c->gones == 0 && c->drains > 0);
    desk_expect_end(&client);
    side_done(&client);
    desk_close(&d);
}

static bool has_all_big(void *ctx)
{
    return ((struct side *)ctx)->in.n >= (size_t)500 * 100000;
}

static void test_a_client_that_asks_and_never_reads_is_held_up(void **state)
{
    struct side client;
    struct desk d;
    size_t calls;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    conn_want_read(client.conn, false);
    for (int i = 0; i < 500; i++)
        desk_say(&client, "GET /big?n=100000 HTTP/1.1\r\nhost: x\r\n\r\n");
    side_idle(d.loop, 60);
    calls = d.n;
    assert_in_range(calls, 3, 200); /* kernel buffers are some 6 MB, the queue 256 KiB */
    side_idle(d.loop, 10);
    assert_int_equal(d.n, calls);
    conn_want_read(client.conn, true);
    assert_true(desk_wait(&d, has_all_big, &client));
    assert_int_equal(d.n, 500);
    side_done(&client);
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_what_is_said_and_heard),
        cmocka_unit_test(test_smuggling_shapes_are_refused),
        cmocka_unit_test(test_large_heads_are_refused),
        cmocka_unit_test(test_refusals_speak_the_servers_language),
        cmocka_unit_test(test_answers_keep_the_order_of_requests),
        cmocka_unit_test(test_a_client_that_ended_its_side_is_answered),
        cmocka_unit_test(test_work_without_a_reader_can_be_given_up),
        cmocka_unit_test(test_a_body_cut_by_the_peers_end_is_told_and_answered),
        cmocka_unit_test(test_a_broken_body_is_told_once),
        cmocka_unit_test(test_a_client_that_goes_is_told_once),
        cmocka_unit_test(test_a_paused_body_holds_the_peer_up),
        cmocka_unit_test(test_a_pause_at_the_last_piece),
        cmocka_unit_test(test_an_answer_ends_a_pause),
        cmocka_unit_test(test_an_early_answer_reaches_a_client_that_uploads),
        cmocka_unit_test(test_chunks_behind_an_answer_are_read_over_for_a_while_only),
        cmocka_unit_test(test_an_answer_waits_for_a_slow_reader),
        cmocka_unit_test(test_a_client_that_asks_and_never_reads_is_held_up),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
