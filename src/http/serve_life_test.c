/* Deadlines, files, ends: what becomes of a connection over time. HTTP/1.1. */
#include "http/testdesk.h"

#include "http/limits.h"

#include <fcntl.h>
#include <stdio.h>

#define GET_HELLO "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n"
#define GET_LATER "GET /later HTTP/1.1\r\nhost: x\r\n\r\n"

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

static bool is_empty(void *ctx)
{
    return http_server_connections(((struct desk *)ctx)->server) == 0;
}

static bool is_ended(const struct side *client)
{
    return client->is_eof || client->is_closed;
}

/* ---- deadlines ---- */

static const struct http_server_config quick = {
    .head_timeout_ms = 60,
    .idle_timeout_ms = 120,
    .stall_timeout_ms = 60,
};

static void test_an_idle_connection_is_closed(void **state)
{
    struct side fresh, used;
    struct desk d;

    (void)state;
    desk_open(&d, &quick);
    desk_connect(&d, &fresh);
    desk_connect(&d, &used);
    side_idle(d.loop, 80);
    desk_say(&used, GET_HELLO);
    desk_expect_part(&used, "hello\n");
    desk_expect_end(&fresh);
    assert_false(is_ended(&used)); /* its time began anew */
    desk_expect_end(&used);
    assert_true(desk_wait(&d, is_empty, &d));
    side_done(&fresh);
    side_done(&used);
    desk_close(&d);
}

/* The memory of its last request's head is given back meanwhile. */
static void test_a_connection_that_rested_takes_the_next_request(void **state)
{
    struct http_server_config config = quick;
    struct side client;
    struct desk d;

    (void)state;
    config.idle_timeout_ms = 2 * HTTP_REST_MS;
    desk_open(&d, &config);
    desk_connect(&d, &client);
    for (int i = 0; i < 2; i++) {
        desk_say(&client, GET_HELLO);
        desk_expect_part(&client, "hello\n");
        side_idle(d.loop, HTTP_REST_MS + 100);
        assert_false(is_ended(&client));
        buf_clear(&client.in);
    }
    desk_expect_end(&client); /* the time of its rest counts */
    side_done(&client);
    desk_close(&d);
}

static void test_a_slow_head_is_told_so(void **state)
{
    static const char *const starts[] = { "GET / HT", "P", "PRI * HTTP/2.0\r\n", GET_HELLO "GET" };

    (void)state;
    EACH(s, starts) {
        struct side client;
        struct desk d;

        desk_open(&d, &quick);
        desk_connect(&d, &client);
        desk_say(&client, *s);
        desk_expect_part(&client, "HTTP/1.1 408 Request Timeout\r\n");
        desk_expect_end(&client);
        side_done(&client);
        desk_close(&d);
    }
}

static void test_a_long_running_handler_is_left_alone(void **state)
{
    struct side client, poster;
    struct desk d;

    (void)state;
    desk_open(&d, &quick);
    desk_connect(&d, &client);
    desk_connect(&d, &poster);
    desk_say(&client, GET_LATER);
    desk_say(&poster, "POST /later HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n12345");
    (void)desk_wait_call(&d, 1);
    side_idle(d.loop, 400);
    assert_false(is_ended(&client) || is_ended(&poster));
    desk_answer(d.calls[0], 200, "at last");
    desk_answer(d.calls[1], 200, "at last");
    desk_expect_part(&client, "at last");
    desk_expect_part(&poster, "at last");
    side_done(&client);
    side_done(&poster);
    desk_close(&d);
}

static void test_a_body_that_stops_is_told_and_answered(void **state)
{
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    desk_open(&d, &quick);
    desk_connect(&d, &client);
    desk_say(&client, "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n1234");
    c = desk_wait_call(&d, 0);
    assert_true(desk_wait(&d, has_end, c));
    assert_int_equal(c->err.code, ERR_TIMEOUT);
    desk_say(&client, "567"); /* too late: the handler has heard the end */
    side_idle(d.loop, 5);
    assert_int_equal(c->body.n, 4);
    desk_answer(c, 408, "slow");
    desk_expect_part(&client, "connection: close\r\n\r\nslow");
    desk_expect_end(&client);
    side_done(&client);
    desk_close(&d);
}

static void test_a_body_that_may_rest_is_waited_for(void **state)
{
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    desk_open(&d, &quick);
    desk_connect(&d, &client);
    desk_say(&client, "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 8\r\n\r\n1234");
    c = desk_wait_call(&d, 0);
    VERB(&d, http_body_may_rest(c->x));
    side_idle(d.loop, 300);
    assert_int_equal(c->ends, 0);
    desk_say(&client, "5678");
    assert_true(desk_wait(&d, has_end, c));
    assert_int_equal(c->err.code, ERR_NONE);
    desk_answer(c, 200, "done");
    desk_expect_part(&client, "done");
    side_done(&client);
    desk_close(&d);
}

static void test_a_slow_body_that_moves_is_never_cut(void **state)
{
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    desk_open(&d, &quick);
    desk_connect(&d, &client);
    desk_say(&client, "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n");
    c = desk_wait_call(&d, 0);
    for (int i = 0; i < 10; i++) {
        desk_say(&client, "x");
        side_idle(d.loop, 40);
    }
    assert_int_equal(c->ends, 1);
    assert_int_equal(c->err.code, ERR_NONE);
    assert_int_equal(c->body.n, 10);
    desk_answer(c, 200, "done");
    desk_expect_part(&client, "done");
    side_done(&client);
    desk_close(&d);
}

/* What a client reads of a large answer, some every few milliseconds. */
static void read_slowly(struct desk *d, struct side *client, size_t want)
{
    while (client->in.n < want && !is_ended(client)) {
        client->stop_reading_at = client->in.n + 400000;
        conn_want_read(client->conn, true);
        side_idle(d->loop, 20);
    }
    conn_want_read(client->conn, true);
}

static void test_a_slow_reader_that_moves_is_never_cut(void **state)
{
    static const char *const asks[] = {
        "GET /big?n=10000000 HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /flow?n=10000000 HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /file?n=8388608 HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /big?n=10000000 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    };
    /* Much shorter than the reading takes. */
    const struct http_server_config config = { .stall_timeout_ms = 250 };
    static const size_t sizes[] = { 10000000, 10000000, 8388608, 10000000 };

    (void)state;
    for (size_t i = 0; i < LEN(asks); i++) {
        struct side client;
        struct desk d;

        desk_open(&d, &config);
        desk_connect(&d, &client);
        conn_want_read(client.conn, false);
        desk_say(&client, asks[i]);
        read_slowly(&d, &client, sizes[i]);
        side_idle(d.loop, 20);
        assert_in_range(client.in.n, sizes[i], sizes[i] + 50000);
        assert_false(client.is_failed);
        assert_int_equal(d.calls[0]->gones, 0);
        side_done(&client);
        desk_close(&d);
    }
}

static void test_a_reader_that_stopped_is_given_up(void **state)
{
    static const char *const asks[] = {
        "GET /big?n=20000000 HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /flow?n=30000000 HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /file?n=8388608 HTTP/1.1\r\nhost: x\r\n\r\n",
    };

    (void)state;
    EACH(ask, asks) {
        const int small = 65536; /* so that a file of 8 MiB does not fit the kernel's buffers */
        struct side client;
        struct desk d;

        desk_open(&d, &quick);
        desk_connect(&d, &client);
        (void)setsockopt(conn_fd(client.conn), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        conn_want_read(client.conn, false);
        desk_say(&client, *ask);
        assert_true(desk_wait(&d, is_empty, &d));
        assert_int_equal(d.calls[0]->gones, strstr(*ask, "flow") != NULL);
        side_done(&client);
        desk_close(&d);
    }
}

/* ---- files ---- */

static bool has_file(void *ctx)
{
    return span_ends(buf_span(&((struct side *)ctx)->in), "hello\n");
}

static void test_files_are_answers_like_others(void **state)
{
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);
    struct side client;
    struct desk d;
    size_t at;

    (void)state;
    side_fill(&content, DESK_FILE_BYTES);
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    desk_say(&client, "HEAD /file?n=8388608 HTTP/1.1\r\nhost: x\r\n\r\n");
    desk_expect(&client, "HTTP/1.1 200 OK\r\ncontent-length: 8388608\r\n\r\n");
    desk_say(&client, "GET /file?n=0 HTTP/1.1\r\nhost: x\r\n\r\n");
    desk_expect(&client, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    desk_say(&client, "GET /file?n=5000000&at=3000000 HTTP/1.1\r\nhost: x\r\n\r\n" GET_HELLO);
    assert_true(desk_wait(&d, has_file, &client));
    at = span_find_str(buf_span(&client.in), SPAN("\r\n\r\n")) + 4;
    assert_memory_equal(client.in.p + at, content.p + 3000000, 5000000);
    assert_memory_equal(client.in.p + at + 5000000, "HTTP/1.1 200 OK", 15);
    side_done(&client);
    desk_close(&d);
}

static void test_a_file_shorter_than_announced_closes(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    desk_say(&client, "GET /file?n=9000000 HTTP/1.1\r\nhost: x\r\n\r\n" GET_HELLO);
    assert_true(desk_wait(&d, is_empty, &d));
    desk_expect_end(&client);
    assert_in_range(client.in.n, DESK_FILE_BYTES, DESK_FILE_BYTES + 200);
    side_done(&client);
    desk_close(&d);
}

static void test_a_client_may_go_while_its_file_is_sent(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    for (int i = 0; i < 20; i++) {
        desk_open(&d, NULL);
        desk_connect(&d, &client);
        client.close_at_read = true;
        desk_say(&client, "GET /file?n=8388608 HTTP/1.1\r\nhost: x\r\n\r\n");
        if (i % 2)
            assert_true(desk_wait(&d, is_empty, &d));
        else
            (void)desk_wait_call(&d, 0); /* the server goes too */
        side_done(&client);
        desk_close(&d);
    }
}

/* ---- ends ---- */

static void test_a_broken_off_answer_shows_as_one(void **state)
{
    struct side client;
    struct desk d;
    struct desk_call *c;

    (void)state;
    desk_open(&d, NULL);
    /* before it began */
    desk_connect(&d, &client);
    desk_say(&client, GET_LATER GET_HELLO);
    c = desk_wait_call(&d, 0);
    VERB(&d, http_answer_abort(desk_take(c)));
    desk_expect_end(&client);
    desk_expect(&client, "");
    assert_int_equal(d.n, 1); /* what was asked behind it is not served */
    side_done(&client);
    /* in chunks: the last one is missing */
    desk_connect(&d, &client);
    desk_say(&client, GET_LATER);
    c = desk_wait_call(&d, 1);
    VERB(&d, http_answer_begin(c->x, 200, UINT64_MAX));
    VERB(&d, http_answer_write(c->x, SPAN("abc")));
    desk_expect(&client, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    VERB(&d, http_answer_abort(desk_take(c)));
    desk_expect_end(&client);
    assert_int_equal(client.in.n, 0);
    side_done(&client);
    /* until the end of the connection: only a reset tells */
    desk_connect(&d, &client);
    desk_say(&client, "GET /later HTTP/1.0\r\n\r\n");
    c = desk_wait_call(&d, 2);
    VERB(&d, http_answer_begin(c->x, 200, UINT64_MAX));
    VERB(&d, http_answer_write(c->x, SPAN("abc")));
    desk_expect_part(&client, "abc");
    VERB(&d, http_answer_abort(desk_take(c)));
    assert_true(desk_wait(&d, side_is_closed, &client));
    assert_true(client.is_failed);
    side_done(&client);
    /* shorter than announced */
    desk_connect(&d, &client);
    desk_say(&client, GET_LATER);
    c = desk_wait_call(&d, 3);
    VERB(&d, http_answer_begin(c->x, 200, 10));
    VERB(&d, http_answer_write(c->x, SPAN("abc")));
    VERB(&d, http_answer_end(desk_take(c), NULL));
    desk_expect_end(&client);
    side_done(&client);
    desk_close(&d);
}

static void test_statuses_without_a_body(void **state)
{
    static const struct row {
        int status;
        const char *line;
    } rows[] = { { 204, "HTTP/1.1 204 No Content\r\n\r\n" },
                 { 304, "HTTP/1.1 304 Not Modified\r\n\r\n" } };
    struct side client;
    struct desk d;
    size_t n = 0;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    EACH(r, rows) {
        struct http_exchange *x;

        desk_say(&client, GET_LATER);
        x = desk_take(desk_wait_call(&d, n++));
        VERB(&d, http_answer(x, r->status, NULL, SPAN("dropped")));
        desk_expect(&client, r->line);
        desk_say(&client, GET_LATER);
        x = desk_take(desk_wait_call(&d, n++));
        VERB(&d, http_answer_begin(x, r->status, UINT64_MAX));
        VERB(&d, http_answer_write(x, SPAN("dropped")));
        VERB(&d, http_answer_end(x, NULL));
        desk_expect(&client, r->line);
    }
    side_done(&client);
    desk_close(&d);
}

static void test_fields_of_an_answer(void **state)
{
    const struct http_server_config config = { .server_name = "desk" };
    struct http_head trailers;
    struct side client;
    struct desk d;
    struct desk_call *c;
    struct err e;

    (void)state;
    desk_open(&d, &config);
    desk_connect(&d, &client);
    desk_say(&client, "GET /later?a=1&b&c=%20&a=2 HTTP/1.1\r\nhost: x\r\n\r\n");
    c = desk_wait_call(&d, 0);
    assert_true(span_is(http_path(c->x), "/later"));
    assert_true(span_is(http_query(c->x), "a=1&b&c=%20&a=2"));
    assert_true(span_is(http_query_get(c->x, "a"), "1"));
    assert_true(http_query_get(c->x, "b").p && http_query_get(c->x, "b").n == 0);
    assert_true(span_is(http_query_get(c->x, "c"), "%20"));
    assert_null(http_query_get(c->x, "d").p);
    assert_true(span_is(http_field(c->x, "host"), "x"));
    assert_int_equal(http_body_length(c->x), 0);
    assert_false(http_is_h2(c->x));
    http_answer_field(c->x, "x-one", SPAN("1"));
    http_answer_field(c->x, "x-split", SPAN("1\r\nx-evil: 1")); /* dropped, and logged */
    http_answer_fieldf(c->x, "x-two", "%d", 2);
    http_answer_field(c->x, "server", SPAN("mine"));
    VERB(&d, http_answer_begin(c->x, 200, UINT64_MAX));
    VERB(&d, http_answer_write(c->x, SPAN("abc")));
    VERB(&d, http_answer_write(c->x, SPAN_NONE));
    http_head_init(&trailers, 100, 4);
    assert_int_equal(http_head_add(&trailers, SPAN("x-sum"), SPAN("9"), &e), 0);
    VERB(&d, http_answer_end(desk_take(c), &trailers));
    http_head_done(&trailers);
    desk_expect(&client, "HTTP/1.1 200 OK\r\nx-one: 1\r\nx-two: 2\r\nserver: mine\r\n"
                         "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 9\r\n\r\n");
    desk_say(&client, GET_LATER);
    c = desk_wait_call(&d, 1);
    VERB(&d, http_answer_head(desk_take(c), 200));
    desk_expect(&client, "HTTP/1.1 200 OK\r\nserver: desk\r\ncontent-length: 0\r\n\r\n");
    side_done(&client);
    desk_close(&d);
}

static void drained(void *ctx)
{
    struct desk *d = ctx;

    assert_false(d->is_drained);
    assert_int_equal(http_server_connections(d->server), 0);
    d->is_drained = true;
}

static bool is_drained(void *ctx)
{
    return ((struct desk *)ctx)->is_drained;
}

static void test_draining_answers_what_is_under_way(void **state)
{
    struct side idle, busy, begun, late;
    struct desk d;
    struct desk_call *b, *c;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &idle);
    desk_connect(&d, &busy);
    desk_connect(&d, &begun);
    desk_say(&idle, GET_HELLO);
    desk_expect_part(&idle, "hello\n");
    desk_say(&busy, GET_LATER GET_HELLO);
    b = desk_wait_call(&d, 1);
    desk_say(&begun, GET_LATER);
    c = desk_wait_call(&d, 2);
    VERB(&d, http_answer_begin(c->x, 200, 2));
    VERB(&d, http_server_drain(d.server, drained, &d));
    desk_expect_end(&idle);
    side_done(&idle);
    side_idle(d.loop, 5);
    assert_false(d.is_drained || is_ended(&busy) || is_ended(&begun));
    desk_connect(&d, &late);
    desk_expect_end(&late);
    side_done(&late);
    desk_answer(b, 200, "done");
    desk_expect(
        &busy,
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\ndone");
    desk_expect_end(&busy);
    VERB(&d, http_answer_write(c->x, SPAN("ok")));
    VERB(&d, http_answer_end(desk_take(c), NULL));
    desk_expect(&begun, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    desk_expect_end(&begun);
    side_done(&busy);
    side_done(&begun);
    assert_true(desk_wait(&d, is_drained, &d));
    assert_int_equal(d.n, 3);
    desk_close(&d);
}

static void test_draining_nothing_is_told_too(void **state)
{
    struct desk d;

    (void)state;
    desk_open(&d, NULL);
    VERB(&d, http_server_drain(d.server, drained, &d));
    VERB(&d, http_server_drain(d.server, drained, &d)); /* twice is once */
    assert_false(d.is_drained);
    assert_true(desk_wait(&d, is_drained, &d));
    desk_close(&d);
}

static void test_a_server_that_is_freed_tells_every_handler(void **state)
{
    struct side a, b;
    struct desk d;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &a);
    desk_connect(&d, &b);
    desk_say(&a, GET_LATER);
    desk_say(&b, "POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n123");
    (void)desk_wait_call(&d, 1);
    assert_true(desk_wait(
        &d, has_data,
        d.calls[0]->body.max && strcmp(d.calls[0]->path, "/read") == 0 ? d.calls[0] : d.calls[1]));
    http_server_free(take_ptr(&d.server));
    assert_true(is_over(d.calls[0]) && is_over(d.calls[1]));
    assert_int_equal(d.calls[0]->gones + d.calls[1]->gones, 2);
    side_done(&a);
    side_done(&b);
    desk_close(&d);
}

static void test_one_connection_too_many(void **state)
{
    const struct http_server_config config = { .max_connections = 2 };
    struct side a, b, c, busy;
    struct desk d;

    (void)state;
    desk_open(&d, &config);
    desk_connect(&d, &a);
    desk_connect(&d, &b);
    desk_say(&a, "GET /hel"); /* half a head is no request */
    side_idle(d.loop, 5);
    desk_connect(&d, &c);
    desk_expect_end(&a); /* the oldest that no request is under way on */
    assert_int_equal(http_server_connections(d.server), 2);
    desk_say(&b, "GET /wait-b HTTP/1.1\r\nHost: h\r\n\r\n");
    desk_say(&c, "GET /wait-c HTTP/1.1\r\nHost: h\r\n\r\n");
    (void)desk_wait_call(&d, 1);
    desk_connect(&d, &busy);
    desk_expect_end(&busy); /* all are busy: it is the new one */
    desk_answer(d.calls[0], 200, "one");
    desk_answer(d.calls[1], 200, "two");
    desk_expect_part(strcmp(d.calls[0]->path, "/wait-b") == 0 ? &b : &c, "one");
    desk_expect_part(strcmp(d.calls[0]->path, "/wait-b") == 0 ? &c : &b, "two");
    side_done(&a);
    side_done(&b);
    side_done(&c);
    side_done(&busy);
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_an_idle_connection_is_closed),
        cmocka_unit_test(test_a_connection_that_rested_takes_the_next_request),
        cmocka_unit_test(test_a_slow_head_is_told_so),
        cmocka_unit_test(test_a_long_running_handler_is_left_alone),
        cmocka_unit_test(test_a_body_that_stops_is_told_and_answered),
        cmocka_unit_test(test_a_body_that_may_rest_is_waited_for),
        cmocka_unit_test(test_a_slow_body_that_moves_is_never_cut),
        cmocka_unit_test(test_a_slow_reader_that_moves_is_never_cut),
        cmocka_unit_test(test_a_reader_that_stopped_is_given_up),
        cmocka_unit_test(test_files_are_answers_like_others),
        cmocka_unit_test(test_a_file_shorter_than_announced_closes),
        cmocka_unit_test(test_a_client_may_go_while_its_file_is_sent),
        cmocka_unit_test(test_a_broken_off_answer_shows_as_one),
        cmocka_unit_test(test_statuses_without_a_body),
        cmocka_unit_test(test_fields_of_an_answer),
        cmocka_unit_test(test_draining_answers_what_is_under_way),
        cmocka_unit_test(test_draining_nothing_is_told_too),
        cmocka_unit_test(test_a_server_that_is_freed_tells_every_handler),
        cmocka_unit_test(test_one_connection_too_many),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
