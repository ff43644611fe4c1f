#include "http/client_rig.h"

/* ---- back-pressure, deadlines, cancel ---- */

static bool has_head(void *ctx)
{
    return ((struct result *)ctx)->heads > 0;
}

static bool has_thousand(void *ctx)
{
    return ((struct result *)ctx)->body.n >= 1000;
}

static void test_a_paused_body_waits_and_goes_on(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(SIDE_MAX_BYTES);
    struct buf payload = { 0 };
    struct answer answer = { 0 };
    struct err e;

    (void)state;
    side_fill(&payload, 10 << 20);
    assert_int_equal(
        buf_addf(&text, &e, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", payload.n), 0);
    assert_int_equal(buf_add(&text, buf_span(&payload), &e), 0);
    answer.bytes = buf_span(&text);
    for (int in_head = 0; in_head < 2; in_head++) {
        struct result r = { .pause_in_head = in_head, .pause_at = 1000 };
        struct http_call_spec spec;
        struct world w;
        size_t had;

        open_world(&w);
        testserver_script(&w.server, &answer, 1);
        spec = make_spec(&w, "GET", &r);
        spec.idle_ms = 300; /* does not run while we are the ones who wait */
        start(&w, &spec, &r);
        assert_true(side_wait(w.loop, in_head ? has_head : has_thousand, &r));
        side_idle(w.loop, 400);
        had = r.body.n;
        assert_in_range(had, in_head ? 0 : 1000, in_head ? 0 : 64 * 1024);
        http_call_pause(r.call, false);
        http_call_pause(r.call, true);
        http_call_pause(r.call, false);
        if (in_head) { /* stops once more, at 1000 */
            assert_true(side_wait(w.loop, has_thousand, &r));
            side_idle(w.loop, 10);
            assert_in_range(r.body.n, 1000, 64 * 1024);
            http_call_pause(r.call, false);
        }
        await(&w, &r);
        assert_false(r.is_failed);
        assert_int_equal(r.body.n, payload.n);
        assert_memory_equal(r.body.p, payload.p, payload.n);
        buf_done(&r.body);
        close_world(&w);
    }
    buf_done(&payload);
}

static void test_a_pause_at_the_very_end_holds_back_the_end(void **state)
{
    static const struct answer answers[] = { ANSWER(OK_HI),
                                             ANSWER("HTTP/1.1 204 No Content\r\n\r\n"),
                                             ANSWER(OK_HI) };
    struct world w;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, answers, 3);
    for (int i = 0; i < 3; i++) {
        struct result r = { .pause_at = i == 0 ? 2 : 0, .pause_in_head = i == 1 };
        struct http_call_spec spec = make_spec(&w, "GET", &r);

        start(&w, &spec, &r);
        if (i < 2) {
            assert_true(side_wait(w.loop, has_head, &r));
            side_idle(w.loop, 20);
            assert_int_equal(r.dones, 0);
            http_call_pause(r.call, false);
        }
        await(&w, &r);
        assert_false(r.is_failed);
        buf_done(&r.body);
    }
    assert_int_equal(w.server.conn_count, 1);
    close_world(&w);
}

static const struct late_row {
    const char *name;
    struct answer answer;
    uint64_t head_ms, idle_ms, total_ms;
    const char *want;
} late_rows[] = {
    { "no head", ANSWER(""), 40, 0, 0, "no answer from '127.0.0.1:#' within 40 ms" },
    { "half a head", ANSWER("HTTP/1.1 200 OK\r\nCont"), 40, 5000, 0,
      "no answer from '127.0.0.1:#' within 40 ms" },
    { "a body that stops", ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"), 5000, 40, 0,
      "'127.0.0.1:#' sent nothing for 40 ms" },
    { "all of it", ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"), 0, 0, 40,
      "the call to '127.0.0.1:#' took too long" },
};

static void test_every_wait_has_its_deadline(void **state)
{
    (void)state;
    EACH(row, late_rows) {
        struct result r = { 0 };
        struct http_call_spec spec;
        struct world w;

        print_message("%s\n", row->name);
        open_world(&w);
        testserver_script(&w.server, &row->answer, 1);
        spec = make_spec(&w, "GET", &r);
        spec.head_ms = row->head_ms, spec.idle_ms = row->idle_ms, spec.total_ms = row->total_ms;
        start(&w, &spec, &r);
        await(&w, &r);
        assert_int_equal(r.err.code, ERR_TIMEOUT);
        assert_message(r.err.msg, row->want, w.server.port);
        buf_done(&r.body);
        close_world(&w);
    }
}

static void test_an_upload_nobody_takes_has_a_deadline(void **state)
{
    struct result r = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    side_fill(&r.upload, 20 << 20);
    spec = make_spec(&w, "PUT", &r);
    spec.is_streamed = true;
    spec.stream_length = r.upload.n;
    spec.idle_ms = 80;
    start(&w, &spec, &r);
    while (w.server.conn_count == 0)
        ev_loop_turn(w.loop);
    conn_want_read(w.server.conns[0].conn, false);
    await(&w, &r);
    assert_int_equal(r.err.code, ERR_TIMEOUT);
    buf_done(&r.upload);
    close_world(&w);
}

static void test_a_slow_producer_is_not_the_servers_fault(void **state)
{
    struct answer answer = { "end", BYTES(OK_HI), THEN_KEEP };
    struct result r = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, &answer, 1);
    spec = make_spec(&w, "PUT", &r);
    spec.is_streamed = true;
    spec.stream_length = 3;
    spec.idle_ms = spec.head_ms = 30;
    start(&w, &spec, &r);
    side_idle(w.loop, 100);
    assert_int_equal(r.dones, 0);
    http_call_write(r.call, SPAN("end"));
    http_call_end(r.call, NULL);
    await(&w, &r);
    assert_int_equal(r.status, 200);
    buf_done(&r.body);
    close_world(&w);
}

static void test_cancel_completes_once_at_every_stage(void **state)
{
    static const struct answer answer = ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab");

    (void)state;
    for (int stage = 0; stage < 6; stage++) {
        struct result r = { .cancel_in_head = stage == 3,
                            .cancel_in_data = stage == 4,
                            .pause_in_head = stage == 5 };
        struct http_call_spec spec;
        struct world w;

        print_message("stage %d\n", stage);
        open_world(&w);
        testserver_script(&w.server, &answer, stage == 2 ? 0 : 1);
        spec = make_spec(&w, "GET", &r);
        start(&w, &spec, &r);
        if (stage == 1)
            ev_loop_turn(w.loop); /* dialing */
        if (stage == 2 || stage == 5)
            side_idle(w.loop, 10); /* waiting for an answer; paused */
        r.is_in_verb = true;
        if (stage < 3 || stage == 5)
            http_call_cancel(r.call);
        if (stage < 3 || stage == 5)
            http_call_cancel(r.call); /* harmless */
        r.is_in_verb = false;
        await(&w, &r);
        assert_int_equal(r.err.code, ERR_CANCELED);
        assert_int_equal(http_client_connections(w.client), 0);
        buf_done(&r.body);
        close_world(&w);
    }
}

static void test_freeing_the_client_ends_its_calls(void **state)
{
    struct result waiting = { 0 }, fresh = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    spec = make_spec(&w, "GET", &waiting);
    start(&w, &spec, &waiting);
    side_idle(w.loop, 10);
    spec.ctx = &fresh;
    start(&w, &spec, &fresh);
    waiting.is_in_verb = fresh.is_in_verb = true;
    http_client_free(take_ptr(&w.client));
    waiting.is_in_verb = fresh.is_in_verb = false;
    await(&w, &waiting);
    await(&w, &fresh);
    assert_int_equal(waiting.err.code, ERR_CANCELED);
    assert_int_equal(fresh.err.code, ERR_CANCELED);
    close_world(&w);
}

static void test_a_unix_socket_is_a_target_too(void **state)
{
    static const struct answer answer = ANSWER(OK_HI);
    char dir[] = "/tmp/silica-client-XXXXXX", text[64];
    struct testserver server;
    struct result r = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(text, sizeof text, "unix:%s/s", dir);
    open_world(&w);
    testserver_open(&server, w.loop, text);
    testserver_script(&server, &answer, 1);
    spec = make_spec(&w, "GET", &r);
    spec.to = (struct http_target){ .addr = &server.addr };
    start(&w, &spec, &r);
    await(&w, &r);
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(buf_cstr(&server.heard), "\r\nhost: localhost\r\n"));
    buf_done(&r.body);
    testserver_close(&server);
    (void)unlink(text + 5);
    (void)rmdir(dir);
    close_world(&w);
}

static void test_a_dial_that_fails_is_told_with_its_words(void **state)
{
    struct result r = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    spec = make_spec(&w, "GET", &r);
    spec.to = (struct http_target){ .host = "no.resolver.test", .port = 80 };
    start(&w, &spec, &r);
    await(&w, &r);
    assert_string_equal(
        r.err.msg,
        "cannot connect to 'no.resolver.test': it is not an IP address, and names are not resolved here");
    close_world(&w);
}

/* ---- another protocol ---- */

static void on_upgrade(void *ctx, const struct http_head *head, struct conn *conn, struct span rest)
{
    struct result *r = ctx;
    struct err e;

    assert_false(r->is_in_verb);
    assert_int_equal(r->heads + r->dones, 0);
    r->upgrades++;
    r->status = head->status;
    copy_field(r->type, head, "upgrade");
    r->call = NULL;
    assert_int_equal(buf_add(&r->body, rest, &e), 0);
    side_adopt(&r->tunnel, conn);
}

static bool tunnel_has_pong(void *ctx)
{
    struct result *r = ctx;

    return r->tunnel.in.n >= 4;
}

static void test_an_upgrade_hands_the_connection_over(void **state)
{
    static const struct http_call_events upgrading = { on_head, on_data, on_drain, on_done,
                                                       on_upgrade };
    static const struct answer answers[] = {
        ANSWER(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly"),
        { "ping", BYTES("pong"), THEN_KEEP }
    };
    struct http_call_spec spec;
    struct err e;

    (void)state;
    for (int drips = 0; drips < 2; drips++) {
        struct result r = { 0 };
        struct world w;

        open_world(&w);
        w.server.drips = drips;
        testserver_script(&w.server, answers, 2);
        assert_int_equal(http_head_add(&w.head, SPAN("connection"), SPAN("Upgrade"), &e), 0);
        assert_int_equal(http_head_add(&w.head, SPAN("upgrade"), SPAN("echo"), &e), 0);
        spec = make_spec(&w, "GET", &r);
        spec.events = &upgrading;
        start(&w, &spec, &r);
        await(&w, &r);
        assert_int_equal(r.status, 101);
        assert_string_equal(r.type, "echo");
        assert_int_equal(http_client_connections(w.client), 0);
        side_idle(w.loop, 10);
        assert_int_equal(buf_add(&r.body, buf_span(&r.tunnel.in), &e), 0);
        assert_string_equal(buf_cstr(&r.body), "early");
        buf_clear(&r.tunnel.in);
        conn_write(r.tunnel.conn, SPAN("ping"));
        assert_true(side_wait(w.loop, tunnel_has_pong, &r));
        assert_string_equal(buf_cstr(&r.tunnel.in), "pong");
        side_done(&r.tunnel);
        buf_done(&r.body);
        close_world(&w);
    }
}

static void test_a_refused_upgrade_is_an_ordinary_answer(void **state)
{
    static const struct http_call_events upgrading = { on_head, on_data, on_drain, on_done,
                                                       on_upgrade };
    static const struct answer answer =
        ANSWER("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    struct result r = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, &answer, 1);
    spec = make_spec(&w, "GET", &r);
    spec.events = &upgrading;
    start(&w, &spec, &r);
    await(&w, &r);
    assert_int_equal(r.status, 403);
    assert_string_equal(buf_cstr(&r.body), "no");
    buf_done(&r.body);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_paused_body_waits_and_goes_on),
        cmocka_unit_test(test_a_pause_at_the_very_end_holds_back_the_end),
        cmocka_unit_test(test_every_wait_has_its_deadline),
        cmocka_unit_test(test_an_upload_nobody_takes_has_a_deadline),
        cmocka_unit_test(test_a_slow_producer_is_not_the_servers_fault),
        cmocka_unit_test(test_cancel_completes_once_at_every_stage),
        cmocka_unit_test(test_freeing_the_client_ends_its_calls),
        cmocka_unit_test(test_a_unix_socket_is_a_target_too),
        cmocka_unit_test(test_a_dial_that_fails_is_told_with_its_words),
        cmocka_unit_test(test_an_upgrade_hands_the_connection_over),
        cmocka_unit_test(test_a_refused_upgrade_is_an_ordinary_answer),
    };

    return run_all("http/client_wait", tests, LEN(tests));
}
