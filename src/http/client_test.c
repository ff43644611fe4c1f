#include "http/client.h"

#include "ev/timer.h"
#include "http/limits.h"
#include "http/testserver.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ANSWER(text)                                                                               \
    {                                                                                              \
        NULL, BYTES(text), THEN_KEEP                                                               \
    }
#define ANSWER_THEN(text, t)                                                                       \
    {                                                                                              \
        NULL, BYTES(text), t                                                                       \
    }
#define OK_HI "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

/* One call as the test sees it. */
struct result {
    struct http_call *call;
    unsigned dones, heads, drains, upgrades;
    bool is_in_verb;
    int status;
    struct buf body;
    char type[64], trailer[64];
    bool is_failed;
    struct err err;
    /* what to do in events */
    bool cancel_in_head, cancel_in_data, pause_in_head;
    size_t pause_at; /* bytes of the body */
    struct buf upload;
    size_t uploaded;
    struct side tunnel;
};

struct world {
    struct ev_loop *loop;
    struct http_client *client;
    struct testserver server;
    struct http_head head; /* of the next request */
};

static void copy_field(char out[64], const struct http_head *h, const char *name)
{
    struct span v = h ? http_head_get(h, name) : SPAN_NONE;

    (void)snprintf(out, 64, "%.*s", SPAN_ARG(v));
}

static void on_head(void *ctx, const struct http_head *head)
{
    struct result *r = ctx;

    assert_false(r->is_in_verb || r->dones || r->upgrades);
    r->heads++;
    r->status = head->status;
    copy_field(r->type, head, "content-type");
    if (r->pause_in_head)
        http_call_pause(r->call, true);
    if (r->cancel_in_head)
        http_call_cancel(r->call);
}

static void on_data(void *ctx, struct span bytes)
{
    struct result *r = ctx;
    struct err e;

    assert_false(r->is_in_verb || r->dones);
    assert_int_equal(r->heads, 1);
    assert_int_equal(buf_add(&r->body, bytes, &e), 0);
    if (r->pause_at && r->body.n >= r->pause_at) {
        r->pause_at = 0;
        http_call_pause(r->call, true);
    }
    if (r->cancel_in_data)
        http_call_cancel(r->call);
}

static void upload_more(struct result *r)
{
    while (r->uploaded < r->upload.n && !http_call_is_full(r->call)) {
        size_t to = MIN(r->uploaded + 50000, r->upload.n);

        http_call_write(r->call, span_slice(buf_span(&r->upload), r->uploaded, to));
        r->uploaded = to;
    }
    if (r->upload.n && r->uploaded == r->upload.n)
        http_call_end(r->call, NULL);
}

static void on_drain(void *ctx)
{
    struct result *r = ctx;

    assert_false(r->is_in_verb || r->dones);
    r->drains++;
    if (r->upload.n)
        upload_more(r);
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct result *r = ctx;

    assert_false(r->is_in_verb);
    r->dones++;
    r->is_failed = e != NULL;
    if (e)
        r->err = *e;
    copy_field(r->trailer, trailers, "x-sum");
    r->call = NULL;
}

static const struct http_call_events events = { on_head, on_data, on_drain, on_done, NULL };

static bool is_done(void *ctx)
{
    struct result *r = ctx;

    return r->dones || r->upgrades;
}

static void open_world(struct world *w)
{
    struct err e;

    *w = (struct world){ 0 };
    assert_int_equal(ev_loop_new(&w->loop, &e), 0);
    w->client = http_client_new(w->loop, &(struct http_client_config){ 0 });
    testserver_open(&w->server, w->loop, "127.0.0.1:0");
    http_head_init(&w->head, HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
}

static void close_world(struct world *w)
{
    http_client_free(w->client);
    testserver_close(&w->server);
    http_head_done(&w->head);
    ev_loop_free(w->loop);
}

static struct http_call_spec make_spec(struct world *w, const char *method, struct result *r)
{
    struct err e;

    assert_int_equal(http_head_set_request(&w->head, span_cstr(method), SPAN("/path?q=1"), &e), 0);
    return (struct http_call_spec){
        .to = { .host = "127.0.0.1", .port = w->server.port },
        .head = &w->head,
        .head_ms = 5000,
        .idle_ms = 5000,
        .events = &events,
        .ctx = r,
    };
}

static void start(struct world *w, const struct http_call_spec *spec, struct result *r)
{
    r->body.max = SIDE_MAX_BYTES;
    r->is_in_verb = true;
    r->call = http_call_start(w->client, spec);
    r->is_in_verb = false;
}

static void await(struct world *w, struct result *r)
{
    if (!side_wait(w->loop, is_done, r))
        fail_msg("the call did not end; the server heard: %s", buf_cstr(&w->server.heard));
    side_idle(w->loop, 3);
    assert_int_equal(r->dones + r->upgrades, 1);
}

static void call(struct world *w, const char *method, struct span body, struct result *r)
{
    struct http_call_spec spec = make_spec(w, method, r);

    spec.body = body;
    start(w, &spec, r);
    await(w, r);
}

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

static void assert_message(const char *got, const char *want, uint16_t port)
{
    char text[480];
    const char *hash = strchr(want, '#');

    (void)snprintf(text, sizeof text, "%.*s%u%s", (int)(hash - want), want, port, hash + 1);
    if (strncmp(got, text, strlen(text)) != 0)
        fail_msg("'%s' does not begin with '%s'", got, text);
}

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

static void test_idle_connections_have_a_ceiling_and_a_time(void **state)
{
    enum { CALLS = 6 };
    struct answer answers[CALLS];
    struct result r[CALLS] = { 0 };
    struct world w;

    (void)state;
    open_world(&w);
    http_client_free(w.client);
    w.client = http_client_new(
        w.loop,
        &(struct http_client_config){ .idle_max = 3, .idle_per_target_max = 2, .idle_ms = 60 });
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
    side_idle(w.loop, 200);
    assert_int_equal(http_client_connections(w.client), 0);
    close_world(&w);
}

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
        cmocka_unit_test(test_calls_share_a_connection_one_after_another),
        cmocka_unit_test(test_bytes_behind_an_answer_end_the_connection),
        cmocka_unit_test(test_what_is_said_again_on_a_fresh_connection),
        cmocka_unit_test(test_nothing_is_said_a_third_time),
        cmocka_unit_test(test_a_connection_the_server_closed_meanwhile_is_not_used),
        cmocka_unit_test(test_idle_connections_have_a_ceiling_and_a_time),
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
        cmocka_unit_test(test_fetch_collects_up_to_a_ceiling),
    };
    size_t fds = side_fd_count();
    int failed = cmocka_run_group_tests_name("http/client", tests, NULL, NULL);

    if (!failed && side_fd_count() != fds) {
        (void)fprintf(stderr, "descriptors leaked: %zu before, %zu after\n", fds, side_fd_count());
        return 1;
    }
    return failed;
}
