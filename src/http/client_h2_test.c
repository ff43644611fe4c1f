#include "http/client.h"

#include "http/limits.h"
#include "http/serve.h"
#include "http/testserver.h"
#include "net/testca.h"
#include "net/tls.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BIG_BYTES (6 << 20)

/* ---- a real server of ours ---- */

struct world {
    struct ev_loop *loop;
    struct net_listener *l;
    struct http_server *server;
    struct http_client *client;
    uint16_t port;
    struct http_head head;
    struct buf big;
    size_t accepted, gone, echoed;
    struct tls *server_tls, *client_tls;
    struct http_exchange *held; /* of /hold: answered by the test */
};

static struct world *the_world; /* exchanges have no other way to it */

static void echo_data(void *ctx, struct span bytes)
{
    the_world->echoed += bytes.n;
    http_answer_write(ctx, bytes);
    if (http_answer_is_full(ctx))
        http_body_pause(ctx, true);
}

static void echo_go_on(void *ctx)
{
    http_body_pause(ctx, false);
}

static void echo_end(void *ctx, const struct err *e)
{
    struct http_head trailers;
    struct err ignored;

    if (e) {
        http_answer_abort(ctx);
        return;
    }
    http_head_init(&trailers, 256, 4);
    assert_int_equal(http_head_add(&trailers, SPAN("x-sum"), SPAN("42"), &ignored), 0);
    http_answer_end(ctx, &trailers);
    http_head_done(&trailers);
}

static void note_gone(void *ctx)
{
    (void)ctx;
    the_world->gone++;
    the_world->held = NULL;
}

static void on_request(void *ctx, struct http_exchange *x)
{
    static const struct http_body_events echo = { echo_data, echo_end };
    struct world *w = ctx;
    struct span path = http_path(x);

    if (span_is(path, "/echo")) {
        http_answer_begin(x, 200, UINT64_MAX);
        http_on_drain(x, echo_go_on, x);
        http_on_gone(x, note_gone, w);
        http_body_read(x, &echo, x);
    } else if (span_is(path, "/big")) {
        http_answer(x, 200, "text/big", buf_span(&w->big));
    } else if (span_is(path, "/abort")) {
        http_answer_begin(x, 200, 100);
        http_answer_write(x, SPAN("half"));
        http_answer_abort(x);
    } else if (span_is(path, "/hold")) {
        w->held = x;
        http_on_gone(x, note_gone, w);
    } else {
        http_answer(x, 200, "text/plain", path);
    }
}

static void on_accept(void *ctx, int fd, const struct net_addr *peer)
{
    struct world *w = ctx;
    struct conn_filter *f = NULL;
    struct err e;

    w->accepted++;
    if (w->server_tls)
        assert_int_equal(tls_filter_new(w->server_tls, fd, NULL, &f, &e), 0);
    http_server_take(w->server, fd, f, peer);
}

static void open_world(struct world *w)
{
    struct net_addr a;
    struct err e;

    *w = (struct world){ 0 };
    the_world = w;
    assert_int_equal(ev_loop_new(&w->loop, &e), 0);
    w->server = http_server_new(
        w->loop, &(struct http_server_config){ .on_request = on_request,
                                               .ctx = w,
                                               .head_max_bytes = HTTP_SERVER_HEAD_MAX_BYTES,
                                               .head_timeout_ms = HTTP_SERVER_HEAD_TIMEOUT_MS,
                                               .idle_timeout_ms = HTTP_SERVER_IDLE_TIMEOUT_MS,
                                               .stall_timeout_ms = HTTP_SERVER_STALL_TIMEOUT_MS });
    w->client = http_client_new(w->loop, &(struct http_client_config){ 0 });
    assert_int_equal(net_addr_parse("127.0.0.1:0", &a, &e), 0);
    assert_int_equal(net_listen(w->loop, &a, on_accept, w, &w->l, &e), 0);
    w->port = net_addr_port(net_listener_addr(w->l));
    side_fill(&w->big, BIG_BYTES);
    http_head_init(&w->head, HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
}

static void close_world(struct world *w)
{
    http_client_free(w->client);
    side_idle(w->loop, 5);
    http_server_free(w->server);
    net_listener_close(w->l);
    side_idle(w->loop, 5);
    http_head_done(&w->head);
    buf_done(&w->big);
    ev_loop_free(w->loop);
    tls_free(w->server_tls);
    tls_free(w->client_tls);
}

/* ---- one call ---- */

struct result {
    struct http_call *call;
    unsigned dones, heads;
    bool is_in_verb, is_failed;
    int status;
    struct buf body;
    struct err err;
    char trailer[64];
    size_t pause_at;
    bool cancel_in_data;
    const struct buf *upload;
    size_t uploaded;
};

static void on_head(void *ctx, const struct http_head *head)
{
    struct result *r = ctx;

    assert_false(r->is_in_verb || r->dones);
    r->heads++;
    r->status = head->status;
}

static void on_data(void *ctx, struct span bytes)
{
    struct result *r = ctx;
    struct err e;

    assert_false(r->is_in_verb || r->dones);
    assert_int_equal(buf_add(&r->body, bytes, &e), 0);
    if (r->pause_at && r->body.n >= r->pause_at) {
        r->pause_at = 0;
        http_call_pause(r->call, true);
    }
    if (r->cancel_in_data)
        http_call_cancel(r->call);
}

static void on_drain(void *ctx)
{
    struct result *r = ctx;

    assert_false(r->is_in_verb || r->dones);
    while (r->upload && r->uploaded < r->upload->n && !http_call_is_full(r->call)) {
        size_t to = MIN(r->uploaded + 30000, r->upload->n);

        http_call_write(r->call, span_slice(buf_span(r->upload), r->uploaded, to));
        r->uploaded = to;
    }
    if (r->upload && r->uploaded == r->upload->n)
        http_call_end(r->call, NULL);
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct result *r = ctx;
    struct span sum = trailers ? http_head_get(trailers, "x-sum") : SPAN_NONE;

    assert_false(r->is_in_verb);
    r->dones++;
    r->is_failed = e != NULL;
    if (e)
        r->err = *e;
    (void)snprintf(r->trailer, sizeof r->trailer, "%.*s", SPAN_ARG(sum));
    r->call = NULL;
}

static const struct http_call_events events = { on_head, on_data, on_drain, on_done, NULL };

static bool is_done(void *ctx)
{
    return ((struct result *)ctx)->dones > 0;
}

static struct http_call_spec make_spec(struct world *w, const char *method, const char *path,
                                       struct result *r)
{
    struct err e;

    assert_int_equal(http_head_set_request(&w->head, span_cstr(method), span_cstr(path), &e), 0);
    return (struct http_call_spec){
        .to = { .host = "127.0.0.1", .port = w->port, .version = HTTP_V2 },
        .head = &w->head,
        .head_ms = 8000,
        .idle_ms = 8000,
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
    assert_true(side_wait(w->loop, is_done, r));
    assert_int_equal(r->dones, 1);
}

static void get(struct world *w, const char *path, struct result *r)
{
    struct http_call_spec spec = make_spec(w, "GET", path, r);

    start(w, &spec, r);
    await(w, r);
}

static void assert_body(const struct result *r, struct span want)
{
    if (r->is_failed)
        fail_msg("%s", r->err.msg);
    assert_int_equal(r->body.n, want.n);
    assert_memory_equal(r->body.p, want.p, want.n);
}

static void test_many_calls_on_one_connection(void **state)
{
    enum { CALLS = 60 };
    struct result r[CALLS] = { 0 };
    struct world w;

    (void)state;
    open_world(&w);
    for (int i = 0; i < CALLS; i++) {
        struct http_call_spec spec = make_spec(&w, "GET", i % 10 ? "/small" : "/big", &r[i]);

        start(&w, &spec, &r[i]);
    }
    for (int i = 0; i < CALLS; i++) {
        await(&w, &r[i]);
        assert_body(&r[i], i % 10 ? SPAN("/small") : buf_span(&w.big));
        buf_done(&r[i].body);
    }
    assert_int_equal(w.accepted, 1);
    close_world(&w);
}

static void test_both_ways_at_once_with_trailers(void **state)
{
    struct result r = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    r.upload = &w.big;
    spec = make_spec(&w, "POST", "/echo", &r);
    spec.is_streamed = true;
    spec.stream_length = HTTP_BODY_CHUNKED;
    start(&w, &spec, &r);
    await(&w, &r);
    assert_body(&r, buf_span(&w.big));
    assert_string_equal(r.trailer, "42");
    buf_done(&r.body);
    close_world(&w);
}

static void test_a_whole_body_and_a_counted_one(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (int is_streamed = 0; is_streamed < 2; is_streamed++) {
        struct result r = { 0 };
        struct http_call_spec spec = make_spec(&w, "PUT", "/echo", &r);

        spec.is_streamed = is_streamed;
        spec.stream_length = 5;
        spec.body = is_streamed ? SPAN_NONE : SPAN("whole");
        start(&w, &spec, &r);
        if (is_streamed) {
            http_call_write(r.call, SPAN("who"));
            http_call_write(r.call, SPAN("le"));
            http_call_end(r.call, NULL);
        }
        await(&w, &r);
        assert_body(&r, SPAN("whole"));
        buf_done(&r.body);
    }
    close_world(&w);
}

static void test_a_paused_call_waits_and_the_others_go_on(void **state)
{
    struct result paused = { .pause_at = 1 }, other = { 0 };
    struct http_call_spec spec;
    struct world w;
    size_t had;

    (void)state;
    open_world(&w);
    spec = make_spec(&w, "GET", "/big", &paused);
    spec.idle_ms = 200; /* does not run while paused */
    start(&w, &spec, &paused);
    get(&w, "/big", &other);
    assert_body(&other, buf_span(&w.big));
    had = paused.body.n;
    assert_in_range(had, 1, 64 * 1024);
    side_idle(w.loop, 250);
    assert_int_equal(paused.body.n, had);
    http_call_pause(paused.call, false);
    await(&w, &paused);
    assert_body(&paused, buf_span(&w.big));
    assert_int_equal(w.accepted, 1);
    buf_done(&paused.body);
    buf_done(&other.body);
    close_world(&w);
}

/* The whole answer is here when the caller pauses: its end must wait too. */
static void test_an_end_waits_for_a_paused_caller(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    for (int cancels = 0; cancels < 2; cancels++) {
        struct result r = { 0 };
        struct http_call_spec spec = make_spec(&w, "GET", "/small", &r);

        start(&w, &spec, &r);
        http_call_pause(r.call, true);
        side_idle(w.loop, 50);
        assert_int_equal(r.dones, 0);
        assert_int_equal(r.body.n, 0);
        if (cancels)
            http_call_cancel(r.call);
        else
            http_call_pause(r.call, false);
        await(&w, &r);
        if (cancels)
            assert_int_equal(r.err.code, ERR_CANCELED);
        else
            assert_body(&r, SPAN("/small"));
        buf_done(&r.body);
    }
    close_world(&w);
}

static bool is_gone(void *ctx)
{
    return ((struct world *)ctx)->gone > 0;
}

static bool is_held(void *ctx)
{
    return ((struct world *)ctx)->held != NULL;
}

static void test_cancel_ends_one_call_and_no_other(void **state)
{
    struct result held = { 0 }, big = { .cancel_in_data = true }, other = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    spec = make_spec(&w, "GET", "/hold", &held);
    start(&w, &spec, &held);
    assert_true(side_wait(w.loop, is_held, &w));
    spec = make_spec(&w, "GET", "/big", &big);
    start(&w, &spec, &big);
    await(&w, &big);
    assert_int_equal(big.err.code, ERR_CANCELED);
    held.is_in_verb = true;
    http_call_cancel(held.call);
    held.is_in_verb = false;
    await(&w, &held);
    assert_int_equal(held.err.code, ERR_CANCELED);
    assert_true(side_wait(w.loop, is_gone, &w)); /* the server was told */
    get(&w, "/small", &other);
    assert_body(&other, SPAN("/small"));
    assert_int_equal(w.accepted, 1);
    buf_done(&big.body);
    buf_done(&other.body);
    close_world(&w);
}

static void test_deadlines_hold_on_a_stream(void **state)
{
    struct result r = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    spec = make_spec(&w, "GET", "/hold", &r);
    spec.head_ms = 50;
    start(&w, &spec, &r);
    await(&w, &r);
    assert_int_equal(r.err.code, ERR_TIMEOUT);
    assert_non_null(strstr(r.err.msg, "no answer from '127.0.0.1:"));
    assert_true(side_wait(w.loop, is_gone, &w));
    close_world(&w);
}

static void test_a_reset_is_an_error_with_its_number(void **state)
{
    struct result r = { 0 };
    struct world w;

    (void)state;
    open_world(&w);
    get(&w, "/abort", &r);
    assert_true(r.is_failed);
    assert_int_equal(r.err.code, ERR_CLOSED);
    assert_non_null(strstr(r.err.msg, "' ended the call: HTTP/2 error "));
    buf_done(&r.body);
    close_world(&w);
}

static void note_drained(void *ctx)
{
    *(bool *)ctx = true;
}

static void test_a_leaving_server_serves_what_it_has_and_gets_no_more(void **state)
{
    struct result held = { 0 }, later = { 0 };
    struct http_call_spec spec;
    bool is_drained = false;
    struct world w;

    (void)state;
    open_world(&w);
    spec = make_spec(&w, "GET", "/hold", &held);
    start(&w, &spec, &held);
    assert_true(side_wait(w.loop, is_held, &w));
    http_server_drain(w.server, note_drained, &is_drained);
    side_idle(w.loop, 20);
    get(&w, "/small", &later);
    assert_int_equal(
        w.accepted,
        2); /* not on the one that leaves; that this server takes no new ones is its affair */
    http_answer(w.held, 200, NULL, SPAN("late"));
    await(&w, &held);
    assert_body(&held, SPAN("late"));
    buf_done(&held.body);
    buf_done(&later.body);
    close_world(&w);
}

static void test_a_lost_connection_ends_all_its_calls(void **state)
{
    struct result r[3] = { 0 };
    struct world w;

    (void)state;
    open_world(&w);
    for (int i = 0; i < 3; i++) {
        struct http_call_spec spec = make_spec(&w, "POST", "/hold", &r[i]);

        start(&w, &spec, &r[i]);
    }
    assert_true(side_wait(w.loop, is_held, &w));
    http_server_free(w.server);
    w.server = NULL;
    for (int i = 0; i < 3; i++) {
        await(&w, &r[i]);
        assert_int_equal(r[i].err.code, ERR_CLOSED);
    }
    close_world(&w);
}

static void test_freeing_the_client_ends_its_calls(void **state)
{
    struct result r = { 0 };
    struct http_call_spec spec;
    struct world w;

    (void)state;
    open_world(&w);
    spec = make_spec(&w, "GET", "/hold", &r);
    start(&w, &spec, &r);
    assert_true(side_wait(w.loop, is_held, &w));
    r.is_in_verb = true;
    http_client_free(take_ptr(&w.client));
    r.is_in_verb = false;
    await(&w, &r);
    assert_int_equal(r.err.code, ERR_CANCELED);
    close_world(&w);
}

/* ---- ALPN ---- */

static void test_alpn_decides_and_no_connection_is_wasted(void **state)
{
    struct testca *ca = testca_new("client test CA");
    struct testcert cert;

    (void)state;
    testca_issue(ca, &(struct testcert_spec){ "server", NULL, "DNS:localhost", -60, 3600 }, &cert);
    for (int is_old = 0; is_old < 2; is_old++) {
        struct tls_config server = { .role = TLS_SERVER,
                                     .cert_pem = buf_span(&cert.cert_pem),
                                     .key_pem = buf_span(&cert.key_pem) };
        struct tls_config client = { .role = TLS_CLIENT,
                                     .ca_pem = testca_pem(ca),
                                     .alpn = "h2,http/1.1" };
        struct result r[4] = { 0 };
        struct world w;
        struct err e;

        server.alpn = is_old ? "http/1.1" : "h2,http/1.1";
        open_world(&w);
        assert_int_equal(tls_new(&server, &w.server_tls, &e), 0);
        assert_int_equal(tls_new(&client, &w.client_tls, &e), 0);
        for (int i = 0; i < 4; i++) {
            struct http_call_spec spec = make_spec(&w, "GET", "/big", &r[i]);

            spec.to = (struct http_target){ .host = "localhost",
                                            .port = w.port,
                                            .maker = tls_maker(w.client_tls),
                                            .version = HTTP_BY_ALPN };
            start(&w, &spec, &r[i]);
        }
        for (int i = 0; i < 4; i++) {
            await(&w, &r[i]);
            assert_body(&r[i], buf_span(&w.big));
            buf_done(&r[i].body);
        }
        assert_int_equal(w.accepted, is_old ? 4 : 1);
        close_world(&w);
    }
    testcert_done(&cert);
    testca_free(ca);
}

/* ---- servers that behave oddly, byte for byte ---- */

#define PREFACE  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define SETTINGS "\0\0\0\4\0\0\0\0\0"
#define GOAWAY                                                                                     \
    "\0\0\10\7\0\0\0\0\0"                                                                          \
    "\0\0\0\0"                                                                                     \
    "\0\0\0\0" /* no stream was served */
#define REFUSED                                                                                    \
    "\0\0\4\3\0\0\0\0\1"                                                                           \
    "\0\0\0\7"                            /* RST_STREAM of the first */
#define OK_EMPTY "\0\0\1\1\5\0\0\0\1\x88" /* :status 200, end of stream 1 */

static const struct odd_row {
    const char *name, *method;
    struct answer first;
    bool is_retried;
    const char *want;
} odd_rows[] = {
    { "GOAWAY before anything was served",
      "POST",
      { PREFACE, BYTES(SETTINGS GOAWAY), THEN_CLOSE },
      true,
      NULL },
    { "the stream is refused",
      "POST",
      { PREFACE, BYTES(SETTINGS REFUSED), THEN_KEEP },
      true,
      NULL },
    { "it speaks HTTP/1.1",
      "GET",
      { PREFACE, BYTES("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), THEN_CLOSE },
      false,
      "no whole answer from '127.0.0.1:" },
    { "it closes at once",
      "GET",
      { PREFACE, BYTES(""), THEN_CLOSE },
      false,
      "' closed the connection without an answer" },
};

static void test_odd_servers(void **state)
{
    (void)state;
    EACH(row, odd_rows) {
        const struct answer answers[] = { row->first,
                                          { PREFACE, BYTES(SETTINGS OK_EMPTY), THEN_KEEP } };
        struct testserver server;
        struct result r = { 0 };
        struct http_call_spec spec;
        struct world w;

        print_message("%s\n", row->name);
        open_world(&w);
        testserver_open(&server, w.loop, "127.0.0.1:0");
        testserver_script(&server, answers, 2);
        spec = make_spec(&w, row->method, "/", &r);
        spec.to.port = server.port;
        start(&w, &spec, &r);
        await(&w, &r);
        if (row->want) {
            assert_true(r.is_failed);
            if (!strstr(r.err.msg, row->want))
                fail_msg("'%s' does not say '%s'", r.err.msg, row->want);
        } else {
            if (r.is_failed)
                fail_msg("%s", r.err.msg);
            assert_int_equal(r.status, 200);
        }
        assert_int_equal(server.conn_count, row->is_retried ? 2 : 1);
        http_client_free(take_ptr(&w.client));
        testserver_close(&server);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_calls_on_one_connection),
        cmocka_unit_test(test_both_ways_at_once_with_trailers),
        cmocka_unit_test(test_a_whole_body_and_a_counted_one),
        cmocka_unit_test(test_a_paused_call_waits_and_the_others_go_on),
        cmocka_unit_test(test_an_end_waits_for_a_paused_caller),
        cmocka_unit_test(test_cancel_ends_one_call_and_no_other),
        cmocka_unit_test(test_deadlines_hold_on_a_stream),
        cmocka_unit_test(test_a_reset_is_an_error_with_its_number),
        cmocka_unit_test(test_a_leaving_server_serves_what_it_has_and_gets_no_more),
        cmocka_unit_test(test_a_lost_connection_ends_all_its_calls),
        cmocka_unit_test(test_freeing_the_client_ends_its_calls),
        cmocka_unit_test(test_alpn_decides_and_no_connection_is_wasted),
        cmocka_unit_test(test_odd_servers),
    };
    size_t fds = side_fd_count();
    int failed = cmocka_run_group_tests_name("http/client_h2", tests, NULL, NULL);

    if (!failed && side_fd_count() != fds) {
        (void)fprintf(stderr, "descriptors leaked: %zu before, %zu after\n", fds, side_fd_count());
        return 1;
    }
    return failed;
}
