#include "http/client_rig.h"

/* ---- connections are kept ---- */

static void test_calls_share_a_connection_one_after_another(void **state)
{
    static const struct answer answers[] = {
        ANSWER(OK_HI), ANSWER(OK_HI),
        ANSWER("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"), ANSWER(OK_HI)
    };
    static const size_t conns[] = { 1, 1, 1, 2 };
    struct world w;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, answers, LEN(answers));
    for (size_t i = 0; i < LEN(answers); i++) {
        struct result r = { 0 };

        call(&w, "GET", SPAN_NONE, &r);
        assert_int_equal(r.status, 200);
        assert_int_equal(w.server.conn_count, conns[i]);
        buf_done(&r.body);
    }
    assert_int_equal(http_client_connections(w.client), 1);
    http_client_forget_idle(w.client);
    side_idle(w.loop, 10);
    assert_int_equal(http_client_connections(w.client), 0);
    close_world(&w);
}

/* On its way before the verb returns; what becomes of it, even that it cannot be said, is told later all the same. */
static void test_a_whole_request_leaves_at_once(void **state)
{
    static const struct answer answers[] = { ANSWER(OK_HI), ANSWER(OK_HI), ANSWER(OK_HI) };
    struct result first = { 0 }, second = { 0 }, bad = { 0 };
    struct http_call_spec spec;
    struct http_head head;
    struct world w;
    struct err e;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, answers, LEN(answers));
    spec = make_spec(&w, "GET", &first);
    start(&w, &spec, &first);
    assert_false(http_call_has_left(first.call)); /* there is no connection yet */
    await(&w, &first);
    spec = make_spec(&w, "GET", &second);
    start(&w, &spec, &second);
    assert_true(http_call_has_left(second.call));
    await(&w, &second);
    assert_int_equal(second.status, 200);
    http_head_init(&head, 1024, 8);
    assert_int_equal(http_head_set_request(&head, SPAN("GET"), SPAN("/a blank"), &e), 0);
    spec = make_spec(&w, "GET", &bad);
    spec.head = &head;
    start(&w, &spec, &bad);
    assert_int_equal(bad.dones, 0);
    await(&w, &bad);
    assert_true(bad.is_failed);
    assert_int_equal(bad.err.code, ERR_INVALID);
    assert_int_equal(w.server.conn_count, 1);
    http_head_done(&head);
    buf_done(&first.body);
    buf_done(&second.body);
    buf_done(&bad.body);
    close_world(&w);
}

static void test_bytes_behind_an_answer_end_the_connection(void **state)
{
    static const struct answer answers[] = {
        ANSWER(OK_HI "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"), ANSWER(OK_HI)
    };
    struct result a = { 0 }, b = { 0 };
    struct world w;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, answers, 2);
    call(&w, "GET", SPAN_NONE, &a);
    call(&w, "GET", SPAN_NONE, &b);
    assert_string_equal(buf_cstr(&b.body), "hi");
    assert_int_equal(w.server.conn_count, 2);
    buf_done(&a.body);
    buf_done(&b.body);
    close_world(&w);
}

static const struct retry_row {
    const char *name, *method;
    bool is_idempotent, is_streamed, is_retried;
    enum after then;
} retry_rows[] = {
    { "GET", "GET", false, false, true, THEN_CLOSE },
    { "GET and a reset", "GET", false, false, true, THEN_RESET },
    { "POST", "POST", false, false, false, THEN_CLOSE },
    { "POST that may be repeated", "POST", true, false, true, THEN_CLOSE },
    { "a streamed body", "PUT", true, true, false, THEN_CLOSE },
};

/* The server closes a kept connection at the moment we use it again. */
static void test_what_is_said_again_on_a_fresh_connection(void **state)
{
    (void)state;
    EACH(row, retry_rows) {
        const struct answer answers[] = { ANSWER(OK_HI), ANSWER_THEN("", row->then),
                                          ANSWER(OK_HI) };
        struct result first = { 0 }, second = { 0 };
        struct http_call_spec spec;
        struct world w;

        print_message("%s\n", row->name);
        open_world(&w);
        testserver_script(&w.server, answers, 3);
        call(&w, "GET", SPAN_NONE, &first);
        spec = make_spec(&w, row->method, &second);
        spec.is_idempotent = row->is_idempotent;
        spec.is_streamed = row->is_streamed;
        spec.stream_length = row->is_streamed ? 3 : 0;
        start(&w, &spec, &second);
        if (row->is_streamed)
            http_call_write(second.call, SPAN("abc"));
        if (row->is_streamed)
            http_call_end(second.call, NULL);
        await(&w, &second);
        assert_int_equal(second.is_failed, !row->is_retried);
        assert_int_equal(w.server.conn_count, row->is_retried ? 2 : 1);
        if (second.is_failed)
            assert_int_equal(second.err.code, ERR_CLOSED);
        buf_done(&first.body);
        buf_done(&second.body);
        close_world(&w);
    }
}

static void test_nothing_is_said_a_third_time(void **state)
{
    static const struct answer answers[] = { ANSWER(OK_HI), ANSWER_THEN("", THEN_CLOSE),
                                             ANSWER_THEN("", THEN_CLOSE), ANSWER(OK_HI) };
    struct result a = { 0 }, b = { 0 };
    struct world w;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, answers, LEN(answers));
    call(&w, "GET", SPAN_NONE, &a);
    call(&w, "GET", SPAN_NONE, &b);
    assert_true(b.is_failed);
    assert_int_equal(w.server.conn_count, 2);
    buf_done(&a.body);
    close_world(&w);
}

static void test_a_connection_the_server_closed_meanwhile_is_not_used(void **state)
{
    static const struct answer answers[] = { ANSWER(OK_HI), ANSWER(OK_HI) };
    struct result a = { 0 }, b = { 0 };
    struct world w;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, answers, 2);
    call(&w, "GET", SPAN_NONE, &a);
    conn_close(w.server.conns[0].conn);
    side_idle(w.loop, 5);
    call(&w, "POST", SPAN("x"), &b); /* may not be repeated, and need not */
    assert_int_equal(b.status, 200);
    buf_done(&a.body);
    buf_done(&b.body);
    close_world(&w);
}

/* As open_world does, but for the idle. */
static void open_idle_world(struct world *w, struct http_client_config config)
{
    open_world(w);
    http_client_free(w->client);
    w->client = http_client_new(w->loop, &config);
}

static void test_idle_connections_have_a_ceiling(void **state)
{
    enum { CALLS = 6 };
    struct answer answers[CALLS];
    struct result r[CALLS] = { 0 };
    struct world w;

    (void)state;
    open_idle_world(&w, (struct http_client_config){
                            .idle_max = 3, .idle_per_target_max = 2, .idle_ms = 60000 });
    for (int i = 0; i < CALLS; i++)
        answers[i] = (struct answer)ANSWER(OK_HI);
    testserver_script(&w.server, answers, CALLS);
    for (int i = 0; i < CALLS; i++) {
        struct http_call_spec spec = make_spec(&w, "GET", &r[i]);

        start(&w, &spec, &r[i]);
    }
    for (int i = 0; i < CALLS; i++) {
        await(&w, &r[i]);
        assert_int_equal(r[i].status, 200);
        buf_done(&r[i].body);
    }
    assert_int_equal(w.server.conn_count, CALLS);
    side_idle(w.loop, 10);
    assert_int_equal(http_client_connections(w.client), 2);
    close_world(&w);
}

static bool has_no_connection(void *ctx)
{
    const struct world *w = ctx;

    return http_client_connections(w->client) == 0;
}

static void test_idle_connections_have_a_time(void **state)
{
    struct answer answer = ANSWER(OK_HI);
    struct result r = { 0 };
    struct world w;

    (void)state;
    open_idle_world(
        &w, (struct http_client_config){ .idle_max = 3, .idle_per_target_max = 2, .idle_ms = 60 });
    testserver_script(&w.server, &answer, 1);
    call(&w, "GET", SPAN_NONE, &r);
    assert_int_equal(r.status, 200);
    buf_done(&r.body);
    assert_true(side_wait(w.loop, has_no_connection, &w));
    close_world(&w);
}

/* From its last use, not from its first. */
static void test_idle_time_begins_anew_with_each_call(void **state)
{
    struct answer answers[] = { ANSWER(OK_HI), ANSWER(OK_HI) };
    struct world w;

    (void)state;
    open_idle_world(&w, (struct http_client_config){ .idle_ms = 1000 });
    testserver_script(&w.server, answers, LEN(answers));
    for (size_t i = 0; i < LEN(answers); i++) {
        struct result r = { 0 };

        call(&w, "GET", SPAN_NONE, &r);
        assert_int_equal(r.status, 200);
        buf_done(&r.body);
        side_idle(w.loop, 600);
        assert_int_equal(http_client_connections(w.client), 1);
    }
    assert_int_equal(w.server.conn_count, 1);
    assert_true(side_wait(w.loop, has_no_connection, &w));
    close_world(&w);
}

/* The memory of its last answer's head is given back meanwhile. */
static void test_a_connection_that_rested_takes_the_next_call(void **state)
{
    struct answer answers[] = { ANSWER(OK_HI), ANSWER(OK_HI), ANSWER(OK_HI) };
    struct world w;

    (void)state;
    open_idle_world(&w, (struct http_client_config){ .idle_ms = 60000 });
    testserver_script(&w.server, answers, LEN(answers));
    for (size_t i = 0; i < LEN(answers); i++) {
        struct result r = { 0 };

        call(&w, "GET", SPAN_NONE, &r);
        assert_int_equal(r.status, 200);
        assert_string_equal(buf_cstr(&r.body), "hi");
        buf_done(&r.body);
        side_idle(w.loop, HTTP_REST_MS + 100);
    }
    assert_int_equal(w.server.conn_count, 1);
    close_world(&w);
}

/* A head that is lent comes back empty, whatever became of the call. */
static void test_a_lent_head_comes_back(void **state)
{
    static const struct answer answers[] = { ANSWER(OK_HI), ANSWER_THEN("", THEN_CLOSE),
                                             ANSWER_THEN("", THEN_CLOSE), ANSWER(OK_HI) };
    struct http_head lent;
    struct world w;
    struct err e;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, answers, LEN(answers));
    http_head_init(&lent, HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
    for (int i = 0; i < 4; i++) {
        struct result r = { 0 };
        struct http_call_spec spec = make_spec(&w, "GET", &r);

        assert_int_equal(http_head_set_request(&lent, SPAN("GET"), SPAN("/lent"), &e), 0);
        assert_int_equal(http_head_add(&lent, SPAN("x-which"), SPAN("this"), &e), 0);
        spec.head = NULL;
        spec.lent_head = &lent;
        start(&w, &spec, &r);
        if (i == 2)
            http_call_cancel(r.call);
        await(&w, &r);
        assert_int_equal(r.status, i == 0 || i == 3 ? 200 : 0);
        assert_int_equal(http_head_count(&lent), 0);
        assert_int_equal(lent.text.n, 0);
        assert_int_equal(lent.text.max, HTTP_HEAD_MAX_BYTES);
        assert_true(lent.text.cap > 0);
        buf_done(&r.body);
    }
    assert_non_null(strstr(buf_cstr(&w.server.heard), "GET /lent HTTP/1.1\r\n"));
    assert_non_null(strstr(buf_cstr(&w.server.heard), "x-which: this\r\n"));
    http_head_done(&lent);
    close_world(&w);
}

/* Whatever of a target differs: its connection is another's. */
static void test_targets_that_differ_share_nothing(void **state)
{
    enum { CALLS = 5 };
    struct answer answers[CALLS];
    struct world w;

    (void)state;
    open_world(&w);
    for (int i = 0; i < CALLS; i++)
        answers[i] = (struct answer)ANSWER(OK_HI);
    testserver_script(&w.server, answers, CALLS);
    for (int i = 0; i < CALLS; i++) {
        struct result r = { 0 };
        struct http_call_spec spec = make_spec(&w, "GET", &r);
        struct net_addr addr;
        char at[NET_ADDR_TEXT_BYTES];
        struct err e;

        (void)snprintf(at, sizeof at, "127.0.0.1:%u", spec.to.port);
        assert_int_equal(net_addr_parse(at, &addr, &e), 0);
        if (i == 1)
            spec.to.peer_name = "other";
        if (i >= 2)
            spec.to.addr = &addr;
        if (i == 3)
            spec.to.host = "a.example";
        if (i == 4)
            spec.to.host = "[a.example]"; /* the same name */
        start(&w, &spec, &r);
        await(&w, &r);
        assert_int_equal(r.status, 200);
        buf_done(&r.body);
    }
    assert_int_equal(w.server.conn_count, 4);
    assert_int_equal(http_client_connections(w.client), 4);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_share_a_connection_one_after_another),
        cmocka_unit_test(test_a_whole_request_leaves_at_once),
        cmocka_unit_test(test_bytes_behind_an_answer_end_the_connection),
        cmocka_unit_test(test_what_is_said_again_on_a_fresh_connection),
        cmocka_unit_test(test_nothing_is_said_a_third_time),
        cmocka_unit_test(test_a_connection_the_server_closed_meanwhile_is_not_used),
        cmocka_unit_test(test_idle_connections_have_a_ceiling),
        cmocka_unit_test(test_idle_connections_have_a_time),
        cmocka_unit_test(test_idle_time_begins_anew_with_each_call),
        cmocka_unit_test(test_a_connection_that_rested_takes_the_next_call),
        cmocka_unit_test(test_a_lent_head_comes_back),
        cmocka_unit_test(test_targets_that_differ_share_nothing),
    };

    return run_all("http/client_keep", tests, LEN(tests));
}
