/* What two ends that keep the rules see of each other. */
#include "http/h2_pair.h"

static void test_preface(void **state)
{
    static const struct row {
        const char *name;
        struct span in;
        enum h2_preface want;
    } rows[] = {
        { "nothing yet", BYTES(""), H2_PREFACE_MORE },
        { "first byte", BYTES("P"), H2_PREFACE_MORE },
        { "POST", BYTES("PO"), H2_PREFACE_NO },
        { "PRI of HTTP/1", BYTES("PRI * HTTP/1.1\r\n"), H2_PREFACE_NO },
        { "all but one", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r"), H2_PREFACE_MORE },
        { "all", BYTES(PREFACE), H2_PREFACE_YES },
        { "and more", BYTES(PREFACE "\0\0\0"), H2_PREFACE_YES },
        { "lower case", BYTES("pri * HTTP/2.0"), H2_PREFACE_NO },
    };

    (void)state;
    EACH(r, rows) {
        if (h2_preface_match(r->in) != r->want)
            fail_msg("%s: %d, not %d", r->name, h2_preface_match(r->in), r->want);
    }
}

static void echo_serve(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    respond(s, 200, false);
    h2_send(s, SPAN("hello "));
    h2_send(s, SPAN("world"));
    finish_with(s, "grpc-status", "0");
}

static void test_exchange_cut_anywhere(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 300; step = step < 64 ? step + 1 : step + 118) {
        struct end server, client;
        struct h2_stream *s;

        end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
        end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
        s = request(&client, "POST", "/a%2Fb?q=%zz", false);
        assert_ptr_equal(h2_user(s), &client);
        assert_int_equal(h2_id(s), 1);
        h2_send(s, SPAN("body"));
        finish_with(s, "x-sum", "1");
        talk(&client, &server, step);
        assert_true(server.last && h2_stream_count(server.h) == 1);
        /* Piece borders are the transport's: look at the sum. */
        assert_int_equal(server.got, 4);
        echo_serve(&server, server.last, NULL);
        talk(&client, &server, step);
        assert_int_equal(client.got, 11);
        if (step == 300) {
            expect(&server,
                   "head POST /a%2Fb?q=%zz box:80\ndata body\ntrailers x-sum=1\nend\nclose 0\n");
            expect(&client, "head 200\ndata hello world\ntrailers grpc-status=0\nend\nclose 0\n");
        }
        assert_int_equal(h2_stream_count(server.h), 0);
        assert_int_equal(h2_stream_count(client.h), 0);
        assert_false(server.is_failed || client.is_failed);
        end_close(&client);
        end_close(&server);
    }
}

/* All the ways of answering, each with the events the client must see. */
static void answer_end(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    respond(s, 204, true);
}

static void answer_empty(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    struct err e;

    respond(s, 200, false);
    assert_int_equal(h2_finish(s, NULL, &e), 0);
}

static void answer_trailers(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    respond(s, 200, false);
    finish_with(s, "grpc-status", "5");
    assert_int_equal(h2_send(s, SPAN("too late")), 0);
}

static void answer_body_first(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    OWN(buf_done) struct buf block = BUF_INIT(100);
    struct err e;

    assert_int_equal(h2_send(s, SPAN("a")), 1);
    assert_int_equal(buf_addf(&block, &e, "%s", "bc"), 0);
    assert_int_equal(h2_send_buf(s, &block), 3);
    assert_int_equal(block.n, 0);
    assert_int_equal(h2_send(s, SPAN("d")), 4);
    assert_int_equal(h2_finish(s, NULL, &e), 0);
    respond(s, 200, false);
}

static void answer_after_info(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    respond(s, 100, false);
    respond(s, 103, false);
    respond(s, 200, true);
}

static void answer_reset(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    respond(s, 200, false);
    h2_send(s, SPAN("never sent"));
    h2_reset(s, H2_INTERNAL_ERROR);
    h2_reset(s, H2_CANCEL);
}

static void answer_bound_fields(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    static const char *const names[] = { "connection", "keep-alive", "transfer-encoding",
                                         "upgrade",    "te",         "proxy-connection" };
    OWN(http_head_done) struct http_head h;
    struct err e;

    http_head_init(&h, 4096, 16);
    http_head_set_status(&h, 200);
    EACH(n, names)
        assert_int_equal(http_head_add(&h, span_cstr(*n), SPAN("x"), &e), 0);
    assert_int_equal(http_head_add(&h, SPAN("Set-Cookie"), SPAN("a=1"), &e), 0);
    assert_int_equal(http_head_add(&h, SPAN("set-cookie"), SPAN(""), &e), 0);
    assert_int_equal(h2_respond(s, &h, true, &e), 0);
    assert_int_equal(h2_respond(s, &h, true, &e), -1);
    assert_string_equal(e.msg, "answered twice");
}

static void answer_bad_field(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    OWN(http_head_done) struct http_head h;
    struct err e;

    http_head_init(&h, 4096, 16);
    http_head_set_status(&h, 200);
    assert_int_equal(http_head_add(&h, SPAN("x"), SPAN("a\r\nb"), &e), 0);
    assert_int_equal(h2_respond(s, &h, false, &e), -1);
    assert_string_equal(e.msg, "field 'x' holds a control byte");
    respond(s, 500, false);
    assert_int_equal(h2_finish(s, &h, &e), -1);
}

static void test_answers(void **state)
{
    static const struct row {
        const char *name;
        void (*serve)(struct end *end, struct h2_stream *s, const struct http_head *head);
        const char *client, *server;
    } rows[] = {
        { "head only", answer_end, "head 204 .\nend\nclose 0\n", "close 0\n" },
        { "empty body", answer_empty, "head 200\nend\nclose 0\n", "close 0\n" },
        { "trailers without a body", answer_trailers,
          "head 200\ntrailers grpc-status=5\nend\nclose 0\n", "close 0\n" },
        { "body queued before the head", answer_body_first, "head 200\ndata abcd\nend\nclose 0\n",
          "close 0\n" },
        { "1xx heads are dropped", answer_after_info, "head 200 .\nend\nclose 0\n", "close 0\n" },
        { "reset drops what is queued, head and all", answer_reset, "close 2\n", "close 2\n" },
        { "connection-bound fields stay behind", answer_bound_fields,
          "head 200 set-cookie=a=1 set-cookie= .\nend\nclose 0\n", "close 0\n" },
        { "fields that cannot be sent", answer_bad_field, "close 2\n", "close 2\n" },
    };

    (void)state;
    EACH(r, rows) {
        struct end server, client;
        char want[256];

        end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
        end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
        server.serve = r->serve;
        request(&client, "GET", "/", true);
        talk(&client, &server, SIZE_MAX / 4);
        if (strcmp(buf_cstr(&client.log), r->client) != 0)
            fail_msg("%s: the client saw\n%s", r->name, buf_cstr(&client.log));
        (void)snprintf(want, sizeof want, "head GET / box:80 .\n%s%s",
                       r->serve == answer_reset || r->serve == answer_bad_field ? "" : "end\n",
                       r->server);
        if (strcmp(buf_cstr(&server.log), want) != 0)
            fail_msg("%s: the server saw\n%s", r->name, buf_cstr(&server.log));
        end_close(&client);
        end_close(&server);
    }
}

static void test_early_answer_stops_the_upload(void **state)
{
    struct end server, client;
    struct h2_stream *s;
    OWN_MEM uint8_t *big = own_new(4 << 20);

    (void)state;
    end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    server.is_greedy = false;
    server.serve = answer_end;
    s = request(&client, "PUT", "/", false);
    h2_send(s, span_of(big, 4 << 20));
    talk(&client, &server, 64 * 1024);
    expect(&client, "head 204 .\nend\nclose 0\n");
    assert_true(strstr(buf_cstr(&server.log), "close 0\n") != NULL);
    assert_int_equal(h2_stream_count(client.h), 0);
    /* What was not consumed went back to the connection: another stream has all of it. */
    buf_clear(&server.log);
    server.serve = NULL;
    server.is_greedy = true;
    server.got = 0;
    s = request(&client, "PUT", "/", false);
    h2_send(s, span_of(big, 4 << 20));
    talk(&client, &server, 64 * 1024);
    assert_int_equal(server.got, 4 << 20);
    end_close(&client);
    end_close(&server);
}

/* A small rest is dropped, so that the client can finish in peace and read its answer. */
static void test_early_answer_lets_a_small_upload_end(void **state)
{
    struct end server, client;
    struct h2_stream *s;

    (void)state;
    end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    server.serve = answer_end;
    s = request(&client, "PUT", "/", false);
    h2_send(s, SPAN("a"));
    talk(&client, &server, 4096);
    expect(&client, "head 204 .\nend\n");
    expect(&server, "head PUT / box:80\ndata a\nclose 0\n");
    assert_int_equal(h2_stream_count(server.h), 0);
    h2_send(s, SPAN("b"));
    finish_with(s, "x", "y");
    talk(&client, &server, 4096);
    expect(&client, "close 0\n");
    expect(&server, "");
    /* One that never ends must not keep a server from going. */
    s = request(&client, "PUT", "/", false);
    talk(&client, &server, 4096);
    expect(&client, "head 204 .\nend\n");
    h2_shutdown(server.h);
    talk(&client, &server, 4096);
    expect(&client, "close 0\ngoaway soon 0\n"); /* with no stream left it hears no more */
    assert_false(h2_wants_read(server.h) || h2_wants_write(server.h));
    end_close(&client);
    end_close(&server);
}

static void test_windows(void **state)
{
    struct h2_config config = H2_CONFIG_INIT(H2_SERVER);
    OWN_MEM uint8_t *big = own_new(1 << 20);
    struct end server, client;
    struct h2_stream *a, *b;
    struct h2_stream *at_server[2];

    (void)state;
    config.stream_window = 100000;
    config.conn_window = 150000;
    end_open(&server, config);
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    server.is_greedy = false;
    talk(&client, &server, 1000); /* the settings must be there before the first byte counts */
    a = request(&client, "PUT", "/a", false);
    h2_send(a, span_of(big, 1 << 20));
    talk(&client, &server, 5000);
    assert_int_equal(server.got, 100000); /* the stream's window */
    at_server[0] = server.last;
    b = request(&client, "PUT", "/b", false);
    h2_send(b, span_of(big, 1 << 20));
    talk(&client, &server, 5000);
    assert_int_equal(server.got, 150000); /* the connection's */
    at_server[1] = server.last;
    h2_reset(at_server[0], H2_CANCEL); /* gives back what nobody will read */
    talk(&client, &server, 5000);
    assert_int_equal(server.got, 200000);
    server.is_greedy = true;
    h2_consume(at_server[1], SIZE_MAX); /* more than there is does no harm */
    talk(&client, &server, 5000);
    assert_int_equal(server.got, 100000 + (1 << 20));
    assert_int_equal(h2_queued(b), 0);
    end_close(&client);
    end_close(&server);
}

static void serve_big(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    OWN_MEM uint8_t *big = own_new(300000);
    struct err e;

    respond(s, 200, false);
    assert_int_equal(h2_send(s, span_of(big, 99999)), 99999);
    assert_false(h2_is_full(s));
    assert_int_equal(h2_send(s, span_of(big, 200001)), 300000);
    assert_true(h2_is_full(s));
    assert_int_equal(h2_finish(s, NULL, &e), 0);
}

static void test_drain(void **state)
{
    struct h2_config config = H2_CONFIG_INIT(H2_SERVER), client_config = H2_CONFIG_INIT(H2_CLIENT);
    struct end server, client;

    (void)state;
    config.send_high = 100000;
    config.send_low = 50000;
    client_config.stream_window = 200000;
    end_open(&server, config);
    end_open(&client, client_config);
    talk(&client, &server, 4096);
    client.is_greedy = false;
    server.serve = serve_big;
    request(&client, "GET", "/", true);
    talk(&client, &server, 4096);
    expect(&server, "head GET / box:80 .\nend\n"); /* 100,000 are still queued */
    assert_int_equal(h2_queued(server.last), 100000);
    client.is_greedy = true;
    h2_consume(client.last, client.got);
    talk(&client, &server, 4096);
    assert_int_equal(client.got, 300000);
    assert_true(strncmp(buf_cstr(&server.log), "drain ", 6) == 0);
    assert_true(strstr(buf_cstr(&server.log) + 1, "drain") == NULL); /* once */
    assert_true(strstr(buf_cstr(&server.log), "close 0\n") != NULL);
    end_close(&client);
    end_close(&server);
}

static void test_pull_keeps_to_what_is_wanted(void **state)
{
    struct end server, client;
    OWN(buf_done) struct buf tiny = BUF_INIT(100), out = BUF_INIT(1 << 20);
    struct err e;

    (void)state;
    end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    talk(&client, &server, 4096);
    server.serve = serve_big;
    request(&client, "GET", "/", true);
    (void)carry(&client, &server, 4096);
    assert_int_equal(h2_pull(server.h, &out, 20000, &e), 1);
    assert_true(out.n >= 20000 && out.n < 20000 + 16384 + 9);
    assert_int_equal(h2_pull(server.h, &tiny, 20000, &e), -1); /* no frame fits */
    assert_int_equal(e.code, ERR_LIMIT);
    while (h2_pull(server.h, &out, 20000, &e) == 1)
        continue;
    assert_int_equal(h2_feed(client.h, buf_span(&out), &e), 0);
    assert_int_equal(client.got, 300000); /* the refused pull lost nothing */
    end_close(&client);
    end_close(&server);
}

static void test_client_cancels(void **state)
{
    struct end server, client;
    struct h2_stream *s;

    (void)state;
    end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    s = request(&client, "POST", "/", false);
    h2_reset(s, H2_CANCEL); /* it never left */
    talk(&client, &server, 4096);
    expect(&client, "close 8\n");
    expect(&server, "");
    s = request(&client, "POST", "/", false);
    talk(&client, &server, 4096);
    h2_send(s, SPAN("lost"));
    h2_reset(s, H2_CANCEL);
    h2_send(server.last, SPAN("crossing"));
    talk(&client, &server, 4096);
    expect(&client, "close 8\n");
    expect(&server, "head POST / box:80\nclose 8\n");
    end_close(&client);
    end_close(&server);
}

static void test_free_closes_streams(void **state)
{
    struct end server, client;

    (void)state;
    end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    request(&client, "GET", "/1", true);
    request(&client, "GET", "/2", true);
    talk(&client, &server, 4096);
    request(&client, "GET", "/3", true); /* not sent */
    buf_clear(&server.log);
    h2_free(take_ptr(&server.h));
    h2_free(take_ptr(&client.h));
    expect(&server, "close 8\nclose 8\n");
    expect(&client, "close 8\nclose 8\nclose 8\n");
    h2_free(NULL);
    end_close(&client);
    end_close(&server);
}

static void test_concurrency_limit(void **state)
{
    struct h2_config config = H2_CONFIG_INIT(H2_SERVER);
    struct end server, client;

    (void)state;
    config.max_streams = 2;
    end_open(&server, config);
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    talk(&client, &server, 4096);
    assert_int_equal(h2_request_room(client.h), 2);
    for (int i = 0; i < 3; i++)
        request(&client, "GET", "/", true);
    assert_int_equal(h2_request_room(client.h), 0);
    talk(&client, &server, 4096);
    assert_int_equal(h2_stream_count(server.h), 2); /* the third waits */
    respond(server.last, 200, true);
    talk(&client, &server, 4096);
    assert_int_equal(h2_stream_count(server.h), 2);
    assert_int_equal(h2_stream_count(client.h), 2);
    end_close(&client);
    end_close(&server);
}

static void test_shutdown(void **state)
{
    OWN(http_head_done) struct http_head head;
    struct end server, client;
    struct h2_stream *s;
    struct err e;

    (void)state;
    end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    request(&client, "GET", "/1", true);
    talk(&client, &server, 4096);
    expect(&server, "head GET /1 box:80 .\nend\n");
    h2_shutdown(server.h);
    h2_shutdown(server.h);
    request(&client, "GET", "/2", true); /* crosses the notice */
    (void)carry(&client, &server, 4096);
    talk(&server, &client, 4096);
    expect(&server, "head GET /2 box:80 .\nend\n");
    expect(&client, "goaway soon 0\ngoaway now 0\n");
    head_of(&head, "GET", "/3", NULL, NULL);
    assert_int_equal(h2_request(client.h, &head, true, NULL, &s, &e), -1);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_int_equal(h2_request_room(client.h), 0);
    assert_true(h2_wants_read(server.h));
    respond(server.last, 200, true);
    talk(&server, &client, 4096);
    assert_true(h2_wants_read(server.h)); /* /1 is still open */
    end_close(&client);
    end_close(&server);
}

static void test_shutdown_ends_when_idle(void **state)
{
    struct end server, client;

    (void)state;
    end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    server.serve = answer_end;
    request(&client, "GET", "/", true);
    talk(&client, &server, 4096);
    h2_ping(client.h, 42);
    talk(&client, &server, 4096);
    assert_true(strstr(buf_cstr(&client.log), "pong 42\n") != NULL);
    h2_shutdown(server.h);
    talk(&client, &server, 4096);
    assert_false(h2_wants_read(server.h) || h2_wants_write(server.h));
    assert_false(h2_wants_read(client.h) || h2_wants_write(client.h));
    end_close(&client);
    end_close(&server);
}

static void test_goaway_refuses_waiting_requests(void **state)
{
    struct h2_config config = H2_CONFIG_INIT(H2_SERVER);
    struct end server, client;

    (void)state;
    config.max_streams = 1;
    end_open(&server, config);
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    talk(&client, &server, 4096);
    request(&client, "GET", "/1", true);
    request(&client, "GET", "/2", true);
    talk(&client, &server, 4096);
    h2_shutdown(server.h);
    talk(&client, &server, 4096);
    respond(server.last, 200, true);
    talk(&client, &server, 4096);
    expect(&client, "goaway soon 0\ngoaway now 0\nhead 200 .\nend\nclose 0\nclose 7\n");
    end_close(&client);
    end_close(&server);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_preface),
        cmocka_unit_test(test_exchange_cut_anywhere),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_early_answer_stops_the_upload),
        cmocka_unit_test(test_early_answer_lets_a_small_upload_end),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_pull_keeps_to_what_is_wanted),
        cmocka_unit_test(test_client_cancels),
        cmocka_unit_test(test_free_closes_streams),
        cmocka_unit_test(test_concurrency_limit),
        cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_shutdown_ends_when_idle),
        cmocka_unit_test(test_goaway_refuses_waiting_requests),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
