#include "http/client_rig.h"

/* ---- what a response may look like ---- */

/* status 0: the call fails, and `want` is the message (the port as #). */
static const struct row {
    const char *name, *method;
    struct answer answer;
    int status;
    const char *want, *trailer;
    enum err_code code;
} rows[] = {
    { "a counted body", "GET", ANSWER(OK_HI), 200, "hi", "", ERR_NONE },
    { "an empty body", "GET", ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 200, "", "",
      ERR_NONE },
    { "no body by status", "GET", ANSWER("HTTP/1.1 204 No Content\r\n\r\n"), 204, "", "",
      ERR_NONE },
    { "no body by method", "HEAD", ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"), 200, "",
      "", ERR_NONE },
    { "chunks and a trailer", "GET",
      ANSWER(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Sum: 7\r\n\r\n"),
      200, "abcde", "7", ERR_NONE },
    { "a body until the end", "GET", ANSWER_THEN("HTTP/1.0 200 OK\r\n\r\nall of it", THEN_CLOSE),
      200, "all of it", "", ERR_NONE },
    { "an answer, then the end", "GET", ANSWER_THEN(OK_HI, THEN_CLOSE), 200, "hi", "", ERR_NONE },
    { "an error with a body", "GET",
      ANSWER("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"), 404, "gone", "",
      ERR_NONE },
    { "100 before it", "POST", ANSWER("HTTP/1.1 100 Continue\r\n\r\n" OK_HI), 200, "hi", "",
      ERR_NONE },
    { "103 with fields before it", "GET",
      ANSWER("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" OK_HI), 200, "hi", "", ERR_NONE },
    { "a counted body cut short", "GET",
      ANSWER_THEN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", THEN_CLOSE), 0,
      "bad answer from '127.0.0.1:#': ", "", ERR_CLOSED },
    { "a chunked body cut short", "GET",
      ANSWER_THEN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", THEN_CLOSE), 0,
      "bad answer from '127.0.0.1:#': ", "", ERR_CLOSED },
    { "a head cut short", "GET", ANSWER_THEN("HTTP/1.1 200 OK\r\nConte", THEN_CLOSE), 0,
      "bad answer from '127.0.0.1:#': ", "", ERR_CLOSED },
    { "nothing", "GET", ANSWER_THEN("", THEN_CLOSE), 0,
      "'127.0.0.1:#' closed the connection without an answer", "", ERR_CLOSED },
    { "a reset", "GET", ANSWER_THEN("", THEN_RESET), 0,
      "no whole answer from '127.0.0.1:#': connection lost: ", "", ERR_CLOSED },
    { "another protocol", "GET", ANSWER("SSH-2.0-OpenSSH_9.2\r\n\r\n"), 0,
      "bad answer from '127.0.0.1:#': ", "", ERR_PROTOCOL },
    { "two lengths", "GET",
      ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi"), 0,
      "bad answer from '127.0.0.1:#': ", "", ERR_PROTOCOL },
    { "a switch nobody asked for", "GET",
      ANSWER("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), 0,
      "bad answer from '127.0.0.1:#': it switched protocols, which nobody asked for", "",
      ERR_PROTOCOL },
};

static void test_responses_of_all_shapes(void **state)
{
    (void)state;
    for (int drips = 0; drips < 2; drips++) {
        EACH(row, rows) {
            struct result r = { 0 };
            struct world w;

            print_message("%s%s\n", row->name, drips ? ", byte by byte" : "");
            open_world(&w);
            w.server.drips = drips;
            testserver_script(&w.server, &row->answer, 1);
            call(&w, row->method, SPAN_NONE, &r);
            if (row->status) {
                if (r.is_failed)
                    fail_msg("%s", r.err.msg);
                assert_int_equal(r.status, row->status);
                assert_string_equal(buf_cstr(&r.body), row->want);
                assert_string_equal(r.trailer, row->trailer);
            } else {
                assert_true(r.is_failed);
                assert_message(r.err.msg, row->want, w.server.port);
                assert_int_equal(r.err.code, row->code);
            }
            buf_done(&r.body);
            close_world(&w);
        }
    }
}

static void test_ceilings_on_what_comes_before_a_body(void **state)
{
    OWN(buf_done) struct buf big = BUF_INIT(1 << 20), interims = BUF_INIT(1 << 20);
    struct answer answers[2] = { 0 };
    struct world w;
    struct err e;

    (void)state;
    (void)buf_addf(&big, &e, "HTTP/1.1 200 OK\r\nX: ");
    while (big.n < HTTP_HEAD_MAX_BYTES + 10)
        (void)buf_addc(&big, 'x', &e);
    for (int i = 0; i < 40; i++)
        (void)buf_addf(&interims, &e, "HTTP/1.1 102 Processing\r\n\r\n");
    answers[0].bytes = buf_span(&big);
    answers[1].bytes = buf_span(&interims);
    open_world(&w);
    testserver_script(&w.server, answers, 2);
    for (int i = 0; i < 2; i++) {
        struct result r = { 0 };

        call(&w, "GET", SPAN_NONE, &r);
        assert_int_equal(r.err.code, ERR_LIMIT);
        buf_done(&r.body);
    }
    close_world(&w);
}

/* ---- what goes out ---- */

static void test_the_bytes_of_a_request(void **state)
{
    static const struct answer answers[] = { ANSWER(OK_HI), ANSWER(OK_HI), ANSWER(OK_HI) };
    struct result r = { 0 };
    char want[256];
    struct world w;
    struct err e;

    (void)state;
    open_world(&w);
    assert_int_equal(http_head_add(&w.head, SPAN("Accept"), SPAN("*/*"), &e), 0);
    assert_int_equal(http_head_add(&w.head, SPAN("Content-Length"), SPAN("77"), &e),
                     0); /* not theirs to say */
    testserver_script(&w.server, answers, LEN(answers));
    call(&w, "GET", SPAN_NONE, &r);
    (void)snprintf(want, sizeof want,
                   "GET /path?q=1 HTTP/1.1\r\nhost: 127.0.0.1:%u\r\naccept: */*\r\n\r\n",
                   w.server.port);
    assert_string_equal(buf_cstr(&w.server.heard), want);

    buf_clear(&w.server.heard);
    r = (struct result){ .body = r.body };
    call(&w, "POST", SPAN("{}"), &r);
    (void)snprintf(
        want, sizeof want,
        "POST /path?q=1 HTTP/1.1\r\nhost: 127.0.0.1:%u\r\naccept: */*\r\ncontent-length: 2\r\n\r\n{}",
        w.server.port);
    assert_string_equal(buf_cstr(&w.server.heard), want);

    buf_clear(&w.server.heard);
    r = (struct result){ .body = r.body };
    call(&w, "POST", SPAN_NONE, &r);
    assert_non_null(strstr(buf_cstr(&w.server.heard), "content-length: 0\r\n"));
    buf_done(&r.body);
    close_world(&w);
}

static void test_a_request_that_cannot_be_said(void **state)
{
    struct result r = { 0 };
    struct world w;
    struct err e;

    (void)state;
    open_world(&w);
    assert_int_equal(http_head_add(&w.head, SPAN("x"), SPAN("a\r\nb: c"), &e), 0);
    call(&w, "GET", SPAN_NONE, &r);
    assert_int_equal(r.err.code, ERR_INVALID);
    assert_non_null(strstr(r.err.msg, "control byte"));
    assert_int_equal(w.server.heard.n, 0);
    close_world(&w);
}

static bool has_drained(void *ctx)
{
    return ((struct result *)ctx)->drains > 0;
}

static void test_a_streamed_body_in_chunks_and_counted(void **state)
{
    static const struct answer answers[] = { { "0\r\n", BYTES(OK_HI), THEN_KEEP },
                                             { "abcdef", BYTES(OK_HI), THEN_KEEP } };
    struct http_head trailers;
    struct world w;
    struct err e;

    (void)state;
    open_world(&w);
    http_head_init(&trailers, 1024, 8);
    assert_int_equal(http_head_add(&trailers, SPAN("x-sum"), SPAN("7"), &e), 0);
    testserver_script(&w.server, answers, 2);
    for (int is_counted = 0; is_counted < 2; is_counted++) {
        struct result r = { 0 };
        struct http_call_spec spec = make_spec(&w, "PUT", &r);

        buf_clear(&w.server.heard);
        spec.is_streamed = true;
        spec.stream_length = is_counted ? 6 : HTTP_BODY_CHUNKED;
        start(&w, &spec, &r);
        assert_true(http_call_is_full(r.call));
        http_call_write(r.call, SPAN("abc")); /* before there is a connection */
        assert_true(side_wait(w.loop, has_drained, &r));
        assert_int_equal(r.drains, 1);
        assert_false(http_call_is_full(r.call));
        http_call_write(r.call, SPAN("def"));
        http_call_end(r.call, is_counted ? NULL : &trailers);
        await(&w, &r);
        assert_int_equal(r.status, 200);
        assert_non_null(strstr(
            buf_cstr(&w.server.heard),
            is_counted
                ? "content-length: 6\r\n\r\nabcdef"
                : "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\nx-sum: 7\r\n\r\n"));
        buf_done(&r.body);
    }
    assert_int_equal(w.server.conn_count, 1);
    http_head_done(&trailers);
    close_world(&w);
}

static void test_a_body_must_be_as_long_as_announced(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (int is_long = 0; is_long < 2; is_long++) {
        struct result r = { 0 };
        struct http_call_spec spec = make_spec(&w, "PUT", &r);

        spec.is_streamed = true;
        spec.stream_length = 3;
        start(&w, &spec, &r);
        r.is_in_verb = true;
        http_call_write(r.call, is_long ? SPAN("abcd") : SPAN("ab"));
        http_call_end(r.call, NULL);
        r.is_in_verb = false;
        await(&w, &r);
        assert_int_equal(r.err.code, ERR_INVALID);
        assert_non_null(strstr(r.err.msg, is_long ? "is longer than was announced"
                                                  : "is shorter than was announced"));
    }
    close_world(&w);
}

static void test_a_large_upload_waits_for_the_reader(void **state)
{
    struct answer answer = { "THE END", BYTES(OK_HI), THEN_KEEP };
    struct result r = { 0 };
    struct http_call_spec spec;
    struct world w;
    struct err e;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, &answer, 1);
    side_fill(&r.upload, 20 << 20);
    assert_int_equal(buf_add(&r.upload, SPAN("THE END"), &e), 0);
    spec = make_spec(&w, "PUT", &r);
    spec.is_streamed = true;
    spec.stream_length = r.upload.n;
    start(&w, &spec, &r);
    while (w.server.conn_count == 0)
        ev_loop_turn(w.loop);
    conn_want_read(w.server.conns[0].conn, false);
    side_idle(w.loop, 50);
    assert_true(r.uploaded < 16 << 20); /* what the kernel takes, and our high mark */
    conn_want_read(w.server.conns[0].conn, true);
    await(&w, &r);
    assert_int_equal(r.status, 200);
    assert_true(r.drains > 1);
    buf_done(&r.upload);
    buf_done(&r.body);
    close_world(&w);
}

static void test_an_answer_before_the_upload_is_through(void **state)
{
    static const struct answer answers[] = {
        ANSWER_THEN("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig", THEN_SILENCE),
        ANSWER(OK_HI)
    };
    struct result r = { 0 }, next = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, answers, 2);
    side_fill(&r.upload, 8 << 20);
    spec = make_spec(&w, "PUT", &r);
    spec.is_streamed = true;
    spec.stream_length = 1 << 30; /* never given */
    start(&w, &spec, &r);
    await(&w, &r);
    assert_false(r.is_failed);
    assert_int_equal(r.status, 413);
    assert_string_equal(buf_cstr(&r.body), "big");
    call(&w, "GET", SPAN_NONE, &next); /* not on that connection */
    assert_int_equal(next.status, 200);
    assert_int_equal(w.server.conn_count, 2);
    buf_done(&r.upload);
    buf_done(&r.body);
    buf_done(&next.body);
    close_world(&w);
}

/* ---- fetch ---- */

struct fetched {
    unsigned dones;
    int status;
    char body[64];
    struct err err;
};

static void on_fetched(void *ctx, const struct http_head *head, struct span body,
                       const struct err *e)
{
    struct fetched *f = ctx;

    assert_true(head || e);
    f->dones++;
    f->status = head ? head->status : 0;
    (void)snprintf(f->body, sizeof f->body, "%.*s", SPAN_ARG(body));
    if (e)
        f->err = *e;
}

static bool is_fetched(void *ctx)
{
    return ((struct fetched *)ctx)->dones > 0;
}

static void test_fetch_collects_up_to_a_ceiling(void **state)
{
    static const struct answer answers[] = {
        ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!")
    };
    struct fetched a = { 0 }, b = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    testserver_script(&w.server, answers, 2);
    spec = make_spec(&w, "GET", NULL);
    (void)http_fetch(w.client, &spec, 5, on_fetched, &a);
    assert_true(side_wait(w.loop, is_fetched, &a));
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "hello");
    (void)http_fetch(w.client, &spec, 5, on_fetched, &b);
    assert_true(side_wait(w.loop, is_fetched, &b));
    assert_int_equal(b.err.code, ERR_LIMIT);
    assert_string_equal(b.body, "hello");
    assert_message(b.err.msg, "the answer of '127.0.0.1:#' has more than 5 bytes", w.server.port);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_responses_of_all_shapes),
        cmocka_unit_test(test_ceilings_on_what_comes_before_a_body),
        cmocka_unit_test(test_the_bytes_of_a_request),
        cmocka_unit_test(test_a_request_that_cannot_be_said),
        cmocka_unit_test(test_a_streamed_body_in_chunks_and_counted),
        cmocka_unit_test(test_a_body_must_be_as_long_as_announced),
        cmocka_unit_test(test_a_large_upload_waits_for_the_reader),
        cmocka_unit_test(test_an_answer_before_the_upload_is_through),
        cmocka_unit_test(test_fetch_collects_up_to_a_ceiling),
    };

    return run_all("http/client", tests, LEN(tests));
}
