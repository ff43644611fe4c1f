/* HTTP/2 as clients see it. */
#include "http/testcaller.h"

#include <stdio.h>

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

static bool has_10_mb(void *ctx)
{
    return ((struct reply *)ctx)->body.n >= 10000000;
}

struct stage {
    struct desk d;
    struct caller c;
};

static void up(struct stage *s, const struct http_server_config *config)
{
    desk_open(&s->d, config);
    caller_open(&s->c, &s->d);
}

static void down(struct stage *s)
{
    caller_close(&s->c);
    desk_close(&s->d);
}

static void test_requests_are_answered(void **state)
{
    const struct http_server_config config = { .server_name = "desk" };
    static struct stage s;
    struct reply *r;

    (void)state;
    up(&s, &config);
    r = caller_ask(&s.c, "GET", "/hello?a=1", NULL, true);
    reply_expect(r, 200, "hello\n");
    assert_true(span_is(http_head_get(&r->head, "content-length"), "6"));
    assert_true(span_is(http_head_get(&r->head, "content-type"), "text/plain"));
    assert_true(span_is(http_head_get(&r->head, "server"), "desk"));
    assert_int_equal(http_head_get(&r->head, "date").n, 29);
    r = caller_ask(&s.c, "HEAD", "/hello", NULL, true);
    reply_expect(r, 200, "");
    assert_true(r->ends_with_head);
    assert_true(span_is(http_head_get(&r->head, "content-length"), "6"));
    r = caller_ask(&s.c, "POST", "/collect", "content-length: 5", false);
    caller_send(r, SPAN("123"), false);
    caller_send(r, SPAN("45"), true);
    reply_expect(r, 200, "5");
    r = caller_ask(&s.c, "POST", "/collect", NULL, true);
    reply_expect(r, 200, "0");
    r = caller_ask(&s.c, "POST", "/echo", NULL, false);
    caller_send(r, SPAN("abc"), true);
    reply_expect(r, 200, "abc");
    assert_null(http_head_get(&r->head, "content-length").p);
    r = caller_ask(&s.c, "POST", "/collect?max=3", NULL, false);
    caller_send(r, SPAN("12345"), true);
    reply_expect(r, 413, "the body is larger than 3 bytes");
    r = caller_ask(&s.c, "POST", "/collect?max=3", "content-length: 5\nexpect: 100-continue",
                   false);
    reply_expect(r, 413, "the body is larger than 3 bytes");
    caller_reset(r);
    r = caller_ask(&s.c, "GET", "/later", NULL, true);
    (void)desk_wait_call(&s.d, 7);
    VERB(&s.d, http_answer_head(desk_take(s.d.calls[7]), 204));
    reply_expect(r, 204, "");
    assert_true(r->ends_with_head);
    assert_null(http_head_get(&r->head, "content-length").p);
    assert_true(http_server_connections(s.d.server) == 1);
    down(&s);
}

static void test_a_preface_may_come_in_pieces(void **state)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    struct side client;
    struct desk d;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    for (size_t i = 0; i < sizeof hello - 1; i++) {
        conn_write(client.conn, span_of(hello + i, 1));
        for (int k = 0; k < 3; k++)
            ev_loop_turn(d.loop);
    }
    side_idle(d.loop, 10);
    assert_true(client.in.n > 9 && client.in.p[3] == 4); /* SETTINGS */
    side_done(&client);
    desk_close(&d);
}

static bool has_ended(void *ctx)
{
    struct side *client = ctx;

    return client->is_eof || client->is_closed;
}

static void test_other_things_behind_a_preface_end_the_connection(void **state)
{
    static const struct span rows[] = {
        BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n"),
        BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\4\0\0\0\0\0\1abcd"),
        BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\4\0\0\0\0\0"),
        BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\1\1\5\0\0\0\1\xff"),
        BYTES("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"),
    };

    (void)state;
    EACH(r, rows) {
        struct side client;
        struct desk d;

        desk_open(&d, NULL);
        desk_connect(&d, &client);
        conn_write(client.conn, *r);
        assert_true(desk_wait(&d, has_ended, &client));
        assert_int_equal(d.n, 0);
        side_done(&client);
        desk_close(&d);
    }
}

static void test_many_at_once(void **state)
{
    static struct stage s;

    (void)state;
    up(&s, NULL);
    for (int i = 0; i < 300; i++)
        (void)caller_start(&s.c, "GET", i % 3 ? "/later" : "/hello", NULL, true);
    caller_flush(&s.c);
    (void)desk_wait_call(&s.d, 299);
    for (size_t i = 300; i-- > 0;) {
        if (!s.d.calls[i]->is_over)
            desk_answer(s.d.calls[i], 200, "late");
    }
    for (size_t i = 0; i < 300; i++)
        reply_expect(s.c.replies[i], 200, i % 3 ? "late" : "hello\n");
    down(&s);
}

/* ---- bodies ---- */

static bool has_5_mib(void *ctx)
{
    return ((struct desk_call *)ctx)->body.n >= 5 << 20;
}

static void test_a_paused_body_holds_its_stream_up(void **state)
{
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);
    static struct stage s;
    struct reply *r;
    struct desk_call *call;
    size_t had;

    (void)state;
    up(&s, NULL);
    s.d.pauses = true;
    side_fill(&content, 5 << 20);
    r = caller_ask(&s.c, "POST", "/read", NULL, false);
    caller_send(r, buf_span(&content), true);
    call = desk_wait_call(&s.d, 0);
    assert_true(desk_wait(&s.d, has_data, call));
    side_idle(s.d.loop, 20);
    had = call->body.n;
    assert_in_range(had, 1, 65536);
    assert_true(h2_queued(r->stream) >= 3 << 20); /* a window went, no more */
    reply_expect(caller_ask(&s.c, "GET", "/hello", NULL, true), 200, "hello\n"); /* others go on */
    VERB(&s.d, http_body_pause(call->x, false));
    assert_int_equal(call->body.n, had);
    assert_true(desk_wait(&s.d, has_5_mib, call));
    assert_true(desk_wait(&s.d, has_end, call));
    assert_memory_equal(call->body.p, content.p, content.n);
    desk_answer(call, 200, "all");
    reply_expect(r, 200, "all");
    down(&s);
}

static void late_data(void *ctx, struct span bytes)
{
    struct desk_call *call = ctx;
    struct err e;

    assert_false(call->desk->is_in_verb);
    assert_int_equal(buf_add(&call->body, bytes, &e), 0);
}

static void late_end(void *ctx, const struct err *e)
{
    struct desk_call *call = ctx;

    assert_false(call->desk->is_in_verb);
    assert_null(e);
    call->ends++;
    desk_answer(call, 200, buf_cstr(&call->body));
}

static void test_a_body_waits_for_its_reader(void **state)
{
    static const struct http_body_events events = { late_data, late_end };
    static struct stage s;
    struct reply *r;
    struct desk_call *call;

    (void)state;
    up(&s, NULL);
    r = caller_ask(&s.c, "POST", "/later", NULL, false);
    caller_send(r, SPAN("abc"), true);
    call = desk_wait_call(&s.d, 0);
    side_idle(s.d.loop, 5);
    VERB(&s.d, http_body_read(call->x, &events, call));
    reply_expect(r, 200, "abc");
    assert_int_equal(call->ends, 1);
    down(&s);
}

static void test_an_early_answer_is_read(void **state)
{
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);
    static struct stage s;
    struct reply *r;

    (void)state;
    up(&s, NULL);
    side_fill(&content, 5 << 20);
    r = caller_ask(&s.c, "POST", "/hello", NULL, false);
    caller_send(r, buf_span(&content), true);
    reply_expect(r, 200, "hello\n");
    reply_expect(caller_ask(&s.c, "GET", "/hello", NULL, true), 200, "hello\n");
    down(&s);
}

/* ---- answers ---- */

static void test_an_answer_waits_for_credit(void **state)
{
    static struct stage s;
    struct reply *r;
    struct desk_call *call;
    size_t had;

    (void)state;
    up(&s, NULL);
    r = caller_ask(&s.c, "GET", "/flow?n=10000000", NULL, true);
    r->holds = true;
    call = desk_wait_call(&s.d, 0);
    side_idle(s.d.loop, 30);
    had = 10000000 - (size_t)call->left;
    assert_in_range(had, r->body.n, H2_STREAM_WINDOW_BYTES + H2_SEND_HIGH_BYTES + 10000);
    reply_expect(caller_ask(&s.c, "GET", "/hello", NULL, true), 200, "hello\n");
    r->holds = false;
    h2_consume(r->stream, r->body.n);
    caller_flush(&s.c);
    assert_true(desk_wait(&s.d, has_10_mb, r));
    reply_expect(r, 200, NULL);
    assert_true(call->drains > 0);
    down(&s);
}

/* The connection is full for a stream that is not: it must still hear when it may go on. */
static void test_streams_share_a_full_connection(void **state)
{
    static struct stage s;

    (void)state;
    up(&s, NULL);
    conn_want_read(s.c.conn, false);
    for (int i = 0; i < 4; i++)
        (void)caller_start(&s.c, "GET", "/flow?n=10000000", NULL, true);
    caller_flush(&s.c);
    (void)desk_wait_call(&s.d, 3);
    side_idle(s.d.loop, 20);
    (void)caller_ask(&s.c, "GET", "/flow?n=10000000", NULL, true);
    (void)desk_wait_call(&s.d, 4);
    side_idle(s.d.loop, 20);
    for (size_t i = 0; i < 5; i++)
        assert_false(s.d.calls[i]->is_over);
    conn_want_read(s.c.conn, true);
    for (size_t i = 0; i < 5; i++) {
        assert_true(desk_wait(&s.d, has_10_mb, s.c.replies[i]));
        reply_expect(s.c.replies[i], 200, NULL);
    }
    down(&s);
}

static void test_files_are_answers_like_others(void **state)
{
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);
    static struct stage s;
    struct reply *r[3];

    (void)state;
    side_fill(&content, DESK_FILE_BYTES);
    up(&s, NULL);
    r[0] = caller_start(&s.c, "GET", "/file?n=8388608", NULL, true);
    r[1] = caller_start(&s.c, "GET", "/file?n=5000000&at=3000000", NULL, true);
    r[2] = caller_start(&s.c, "HEAD", "/file?n=8388608", NULL, true);
    caller_flush(&s.c);
    for (int i = 0; i < 3; i++)
        reply_expect(r[i], 200, NULL);
    assert_int_equal(r[0]->body.n, DESK_FILE_BYTES);
    assert_memory_equal(r[0]->body.p, content.p, content.n);
    assert_int_equal(r[1]->body.n, 5000000);
    assert_memory_equal(r[1]->body.p, content.p + 3000000, 5000000);
    assert_int_equal(r[2]->body.n, 0);
    assert_true(span_is(http_head_get(&r[2]->head, "content-length"), "8388608"));
    down(&s);
}

static void test_a_file_shorter_than_announced_resets(void **state)
{
    static struct stage s;
    struct reply *r;

    (void)state;
    up(&s, NULL);
    r = caller_ask(&s.c, "GET", "/file?n=9000000", NULL, true);
    assert_true(desk_wait(&s.d, reply_is_closed, r));
    assert_false(r->is_ended);
    assert_int_equal(r->code, H2_INTERNAL_ERROR);
    reply_expect(caller_ask(&s.c, "GET", "/hello", NULL, true), 200, "hello\n");
    down(&s);
}

static void test_clients_may_go_while_a_worker_reads(void **state)
{
    static struct stage s;

    (void)state;
    for (int i = 0; i < 30; i++) {
        struct reply *r;

        up(&s, NULL);
        r = caller_ask(&s.c, "GET", "/file?n=8388608", NULL, true);
        (void)desk_wait_call(&s.d, 0);
        for (int k = 0; k < i; k++)
            ev_loop_turn(s.d.loop);
        if (i % 3 == 0 && r->stream)
            caller_reset(r);
        if (i % 3 == 1)
            conn_close(s.c.conn);
        if (i % 3 == 2)
            http_server_free(take_ptr(&s.d.server));
        for (int k = 0; k < i % 4; k++)
            ev_loop_turn(s.d.loop);
        down(&s);
    }
}

static void test_a_broken_off_answer_is_reset(void **state)
{
    static struct stage s;
    struct desk_call *call;

    (void)state;
    up(&s, NULL);
    (void)caller_ask(&s.c, "GET", "/later", NULL, true);
    call = desk_wait_call(&s.d, 0);
    VERB(&s.d, http_answer_abort(desk_take(call)));
    assert_true(desk_wait(&s.d, reply_is_closed, s.c.replies[0]));
    assert_int_equal(s.c.replies[0]->code, H2_CANCEL);
    (void)caller_ask(&s.c, "GET", "/later", NULL, true);
    call = desk_wait_call(&s.d, 1);
    VERB(&s.d, http_answer_begin(call->x, 200, 10));
    VERB(&s.d, http_answer_write(call->x, SPAN("abc")));
    VERB(&s.d, http_answer_end(desk_take(call), NULL)); /* seven bytes short */
    assert_true(desk_wait(&s.d, reply_is_closed, s.c.replies[1]));
    assert_int_equal(s.c.replies[1]->code, H2_INTERNAL_ERROR);
    assert_false(s.c.replies[1]->is_ended);
    down(&s);
}

/* ---- clients that go ---- */

static void test_a_reset_is_told_once(void **state)
{
    static struct stage s;
    struct desk_call *call;

    (void)state;
    up(&s, NULL);
    (void)caller_ask(&s.c, "GET", "/later", NULL, true);
    call = desk_wait_call(&s.d, 0);
    caller_reset(s.c.replies[0]);
    assert_true(desk_wait(&s.d, is_over, call));
    assert_int_equal(call->gones, 1);
    /* in the middle of an answer */
    (void)caller_ask(&s.c, "GET", "/flow?n=30000000", NULL, true);
    s.c.replies[1]->holds = true;
    call = desk_wait_call(&s.d, 1);
    side_idle(s.d.loop, 10);
    caller_reset(s.c.replies[1]);
    assert_true(desk_wait(&s.d, is_over, call));
    assert_int_equal(call->gones, 1);
    /* in the middle of a body */
    (void)caller_ask(&s.c, "POST", "/read", NULL, false);
    caller_send(s.c.replies[2], SPAN("abc"), false);
    call = desk_wait_call(&s.d, 2);
    assert_true(desk_wait(&s.d, has_data, call));
    caller_reset(s.c.replies[2]);
    assert_true(desk_wait(&s.d, is_over, call));
    assert_int_equal(call->gones, 1);
    assert_int_equal(call->ends, 0);
    /* while it is answered: either way, once */
    (void)caller_ask(&s.c, "GET", "/later", NULL, true);
    call = desk_wait_call(&s.d, 3);
    caller_reset(s.c.replies[3]);
    desk_answer(call, 200, "too late");
    side_idle(s.d.loop, 10);
    assert_int_equal(call->gones, 0);
    down(&s);
}

static void test_a_lost_connection_is_told_to_every_stream(void **state)
{
    static struct stage s;

    (void)state;
    up(&s, NULL);
    for (int i = 0; i < 50; i++)
        (void)caller_start(&s.c, "POST", i % 2 ? "/read" : "/later", NULL, false);
    caller_flush(&s.c);
    (void)desk_wait_call(&s.d, 49);
    conn_close(s.c.conn);
    assert_true(desk_wait(&s.d, is_empty, &s.d));
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(s.d.calls[i]->gones, 1);
    down(&s);
}

static void test_a_freed_server_tells_every_stream(void **state)
{
    static struct stage s;

    (void)state;
    up(&s, NULL);
    for (int i = 0; i < 50; i++)
        (void)caller_start(&s.c, "POST", i % 2 ? "/read" : "/later", NULL, false);
    caller_flush(&s.c);
    (void)desk_wait_call(&s.d, 49);
    http_server_free(take_ptr(&s.d.server));
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(s.d.calls[i]->gones, 1);
    down(&s);
}

/* ---- floods ---- */

static void test_rapid_resets_end_the_connection(void **state)
{
    static struct stage s;

    (void)state;
    up(&s, NULL);
    for (int i = 0; i < 100 && s.c.conn; i++) {
        for (int k = 0; k < 80 && s.c.n < CALLER_REPLIES_MAX; k++) {
            struct reply *r = caller_start(&s.c, "GET", "/later", NULL, true);

            caller_flush(&s.c);
            h2_reset(r->stream, H2_CANCEL);
            caller_flush(&s.c);
        }
        for (int k = 0; k < 5; k++)
            ev_loop_turn(s.d.loop);
        if (s.c.has_goaway)
            break;
    }
    assert_true(desk_wait(&s.d, is_empty, &s.d));
    assert_true(s.c.has_goaway && s.c.goaway_code == H2_ENHANCE_YOUR_CALM);
    for (size_t i = 0; i < s.d.n; i++)
        assert_int_equal(s.d.calls[i]->gones, 1);
    down(&s);
}

static void test_a_flood_of_pings_ends_the_connection(void **state)
{
    static const uint8_t ping[17] = { 0, 0, 8, 6 };
    OWN(buf_done) struct buf flood = BUF_INIT(SIDE_MAX_BYTES);
    struct side client;
    struct desk d;
    struct err e;

    (void)state;
    desk_open(&d, NULL);
    desk_connect(&d, &client);
    conn_want_read(client.conn, false); /* the answers are not read either */
    assert_int_equal(
        buf_add(&flood, SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"), &e), 0);
    for (int i = 0; i < 300000; i++)
        assert_int_equal(buf_add(&flood, span_of(ping, sizeof ping), &e), 0);
    conn_write(client.conn, buf_span(&flood));
    side_idle(d.loop, 100);
    conn_want_read(client.conn, true);
    assert_true(desk_wait(&d, has_ended, &client));
    side_done(&client);
    desk_close(&d);
}

/* ---- deadlines ---- */

static const struct http_server_config quick = { .idle_timeout_ms = 100, .stall_timeout_ms = 100 };

static void test_an_idle_connection_is_ended_politely(void **state)
{
    static struct stage s;

    (void)state;
    up(&s, &quick);
    reply_expect(caller_ask(&s.c, "GET", "/hello", NULL, true), 200, "hello\n");
    side_idle(s.d.loop, 60);
    reply_expect(caller_ask(&s.c, "GET", "/hello", NULL, true), 200, "hello\n");
    side_idle(s.d.loop, 60);
    assert_non_null(s.c.conn);
    assert_false(s.c.has_goaway);
    assert_true(desk_wait(&s.d, caller_is_closed, &s.c));
    assert_true(s.c.has_goaway && s.c.goaway_code == H2_NO_ERROR);
    assert_int_equal(s.c.goaway_last, 3); /* what crossed it may be sent again */
    down(&s);
}

static void test_a_head_that_never_ends_is_idle(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    desk_open(&d, &quick);
    desk_connect(&d, &client);
    /* HEADERS without END_HEADERS */
    conn_write(client.conn,
               SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\1\1\1\0\0\0\1\x82"));
    assert_true(desk_wait(&d, has_ended, &client));
    side_done(&client);
    desk_close(&d);
}

static void test_a_long_running_handler_is_left_alone(void **state)
{
    static struct stage s;
    struct reply *r, *resting;

    (void)state;
    up(&s, &quick);
    r = caller_ask(&s.c, "GET", "/later", NULL, true);
    resting = caller_ask(&s.c, "POST", "/read", NULL, false);
    (void)desk_wait_call(&s.d, 1);
    VERB(&s.d, http_body_may_rest(s.d.calls[1]->x));
    side_idle(s.d.loop, 450);
    desk_answer(s.d.calls[0], 200, "at last");
    reply_expect(r, 200, "at last");
    caller_send(resting, SPAN("x"), true);
    assert_true(desk_wait(&s.d, has_end, s.d.calls[1]));
    desk_answer(s.d.calls[1], 200, "rested");
    reply_expect(resting, 200, "rested");
    down(&s);
}

static void test_streams_that_stop_are_given_up(void **state)
{
    static struct stage s;
    struct reply *body, *credit;

    (void)state;
    up(&s, &quick);
    body = caller_ask(&s.c, "POST", "/read", NULL, false);
    caller_send(body, SPAN("abc"), false);
    credit = caller_ask(&s.c, "GET", "/flow?n=10000000", NULL, true);
    credit->holds = true;
    assert_true(desk_wait(&s.d, has_end, desk_wait_call(&s.d, 0)));
    assert_int_equal(s.d.calls[0]->err.code, ERR_TIMEOUT);
    desk_answer(s.d.calls[0], 408, "slow");
    reply_expect(body, 408, "slow");
    assert_true(desk_wait(&s.d, is_over, s.d.calls[1]));
    assert_int_equal(s.d.calls[1]->gones, 1);
    assert_true(desk_wait(&s.d, reply_is_closed, credit));
    assert_false(credit->is_ended);
    reply_expect(caller_ask(&s.c, "GET", "/hello", NULL, true), 200, "hello\n");
    caller_reset(body);
    down(&s);
}

static void test_a_connection_nobody_reads_is_given_up(void **state)
{
    static struct stage s;

    (void)state;
    up(&s, &quick);
    conn_want_read(s.c.conn, false);
    for (int i = 0; i < 20; i++)
        (void)caller_start(&s.c, "GET", "/flow?n=10000000", NULL, true);
    caller_flush(&s.c);
    (void)desk_wait_call(&s.d, 19);
    assert_true(desk_wait(&s.d, is_empty, &s.d));
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(s.d.calls[i]->gones, 1);
    down(&s);
}

/* ---- drain ---- */

static void drained(void *ctx)
{
    ((struct desk *)ctx)->is_drained = true;
}

static bool is_drained(void *ctx)
{
    return ((struct desk *)ctx)->is_drained;
}

static void test_draining_answers_what_is_under_way(void **state)
{
    static struct stage s;
    static struct caller idle;
    struct reply *r;

    (void)state;
    up(&s, NULL);
    caller_open(&idle, &s.d);
    reply_expect(caller_ask(&idle, "GET", "/hello", NULL, true), 200, "hello\n");
    r = caller_ask(&s.c, "GET", "/later", NULL, true);
    (void)desk_wait_call(&s.d, 1);
    VERB(&s.d, http_server_drain(s.d.server, drained, &s.d));
    assert_true(desk_wait(&s.d, caller_is_closed, &idle));
    assert_true(idle.has_goaway);
    side_idle(s.d.loop, 10);
    assert_true(s.c.has_goaway && s.c.conn && !s.d.is_drained);
    desk_answer(s.d.calls[1], 200, "done");
    reply_expect(r, 200, "done");
    assert_true(desk_wait(&s.d, caller_is_closed, &s.c));
    assert_true(desk_wait(&s.d, is_drained, &s.d));
    caller_close(&idle);
    down(&s);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_requests_are_answered),
        cmocka_unit_test(test_a_preface_may_come_in_pieces),
        cmocka_unit_test(test_other_things_behind_a_preface_end_the_connection),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_a_paused_body_holds_its_stream_up),
        cmocka_unit_test(test_a_body_waits_for_its_reader),
        cmocka_unit_test(test_an_early_answer_is_read),
        cmocka_unit_test(test_an_answer_waits_for_credit),
        cmocka_unit_test(test_streams_share_a_full_connection),
        cmocka_unit_test(test_files_are_answers_like_others),
        cmocka_unit_test(test_a_file_shorter_than_announced_resets),
        cmocka_unit_test(test_clients_may_go_while_a_worker_reads),
        cmocka_unit_test(test_a_broken_off_answer_is_reset),
        cmocka_unit_test(test_a_reset_is_told_once),
        cmocka_unit_test(test_a_lost_connection_is_told_to_every_stream),
        cmocka_unit_test(test_a_freed_server_tells_every_stream),
        cmocka_unit_test(test_rapid_resets_end_the_connection),
        cmocka_unit_test(test_a_flood_of_pings_ends_the_connection),
        cmocka_unit_test(test_an_idle_connection_is_ended_politely),
        cmocka_unit_test(test_a_head_that_never_ends_is_idle),
        cmocka_unit_test(test_a_long_running_handler_is_left_alone),
        cmocka_unit_test(test_streams_that_stop_are_given_up),
        cmocka_unit_test(test_a_connection_nobody_reads_is_given_up),
        cmocka_unit_test(test_draining_answers_what_is_under_way),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
