/* Peers that break the rules, or keep them to wear us out. */
#include "http/h2_pair.h"

#define REQ ":method: GET\n:scheme: http\n:authority: box\n:path: /"

static void answer_end(struct end *end, struct h2_stream *s, const struct http_head *head)
{
    respond(s, 204, true);
}

static void test_big_head_is_431(void **state)
{
    struct h2_config config = H2_CONFIG_INIT(H2_SERVER);
    OWN(http_head_done) struct http_head head;
    struct end server, client;
    struct h2_stream *s;
    struct err e;
    char value[600];

    (void)state;
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    config.head_max_bytes = 1000;
    end_open(&server, config);
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    server.serve = answer_end;
    head_of(&head, "POST", "/", "a", value);
    assert_int_equal(http_head_add(&head, SPAN("b"), span_cstr(value), &e), 0);
    assert_int_equal(h2_request(client.h, &head, false, NULL, &s, &e), 0);
    h2_send(s, SPAN("body"));
    talk(&client, &server, 4096);
    expect(&server, ""); /* never announced */
    expect(&client, "head 431 content-length=0 .\nend\n");
    assert_int_equal(h2_stream_count(server.h), 0);
    assert_int_equal(h2_finish(s, NULL, &e), 0);
    talk(&client, &server, 4096);
    expect(&client, "close 0\n");
    /* HPACK kept its state: the next request reads well. */
    request(&client, "GET", "/next", true);
    talk(&client, &server, 4096);
    expect(&client, "head 204 .\nend\nclose 0\n");
    assert_int_equal(h2_stream_count(server.h), 0);
    end_close(&client);
    end_close(&server);
}

static void test_big_trailers_are_reset(void **state)
{
    struct h2_config config = H2_CONFIG_INIT(H2_SERVER);
    struct end server, client;
    struct h2_stream *s;
    char value[1500];

    (void)state;
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    config.head_max_bytes = 1000;
    end_open(&server, config);
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    s = request(&client, "POST", "/", false);
    finish_with(s, "a", value);
    talk(&client, &server, 4096);
    expect(&server, "head POST / box:80\nclose 11\n");
    expect(&client, "close 11\n");
    end_close(&client);
    end_close(&server);
}

/* Peers that break the rules: what the server sees, and with which code it answers. */
static void test_bad_requests(void **state)
{
    static const struct row {
        const char *name, *lines;
        const char *log; /* "" when the stream is refused */
    } rows[] = {
        { "good", REQ, "head GET / box .\nend\n" },
        { "host instead of authority", ":method: GET\n:scheme: http\n:path: /\nhost: h",
          "head GET / h host=h .\nend\n" },
        { "raw bytes in the path", ":method: GET\n:scheme: http\n:authority: b\n:path: /%2e%2e//x?",
          "head GET /%2e%2e//x? b .\nend\n" },
        { "te: trailers", REQ "\nte: trailers", "head GET / box te=trailers .\nend\n" },
        { "no path", ":method: GET\n:scheme: http\n:authority: box", "" },
        { "no method", ":scheme: http\n:authority: box\n:path: /", "" },
        { "no scheme", ":method: GET\n:authority: box\n:path: /", "" },
        { "no authority at all", ":method: GET\n:scheme: http\n:path: /", "" },
        { "path twice", REQ "\n:path: /b", "" },
        { "pseudo field after a field", ":method: GET\n:scheme: http\nx: y\n:path: /", "" },
        { "unknown pseudo field", REQ "\n:color: red", "" },
        { "status in a request", REQ "\n:status: 200", "" },
        { "upper case name", REQ "\nX-Up: y", "" },
        { "connection", REQ "\nconnection: close", "" },
        { "transfer-encoding", REQ "\ntransfer-encoding: chunked", "" },
        { "te: gzip", REQ "\nte: gzip", "" },
        { "control byte in a value", REQ "\nx: a\rb", "" },
        { "path that is not one", ":method: GET\n:scheme: http\n:authority: box\n:path: x", "" },
        { "content-length without a body", REQ "\ncontent-length: 5", "" },
    };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf in = BUF_INIT(8192);
        struct end server;

        end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
        raw_open(&in);
        raw_head(&in, 1, 1, r->lines);
        assert_int_equal(h2_feed(server.h, buf_span(&in), &server.e), 0);
        if (strcmp(buf_cstr(&server.log), r->log) != 0)
            fail_msg("%s: the server saw\n%s", r->name, buf_cstr(&server.log));
        while (h2_pull(server.h, &server.wire, 1000, &server.e) == 1)
            continue;
        if (h2_stream_count(server.h) != (r->log[0] ? 1 : 0))
            fail_msg("%s: %zu streams", r->name, h2_stream_count(server.h));
        end_close(&server);
    }
}

/* Floods. Each row is sent until the server gives up, and must be given up on at once behind its
 * limit. */
static void flood_reset(struct buf *out, uint32_t i)
{
    raw_head(out, 1 + 2 * i, 1, REQ);
    raw_frame(out, 3, 0, 1 + 2 * i, SPAN("\0\0\0\10"));
}

static void flood_bad_request(struct buf *out, uint32_t i)
{
    raw_head(out, 1 + 2 * i, 1, REQ "\nconnection: x");
}

static void flood_window(struct buf *out, uint32_t i)
{
    raw_head(out, 1 + 2 * i, 1, REQ);
    raw_frame(out, 8, 0, 1 + 2 * i, SPAN("\x7f\xff\xff\xff"));
}

static void flood_ping(struct buf *out, uint32_t i)
{
    raw_frame(out, 6, 0, 0, SPAN("12345678"));
}

static void flood_settings(struct buf *out, uint32_t i)
{
    raw_frame(out, 4, 0, 0, SPAN_NONE);
}

static void flood_empty_data(struct buf *out, uint32_t i)
{
    if (i == 0)
        raw_head(out, 1, 0, REQ);
    raw_frame(out, 0, 0, 1, SPAN_NONE);
}

static void test_floods(void **state)
{
    static const struct row {
        const char *name;
        void (*add)(struct buf *out, uint32_t i);
        uint32_t free;    /* rounds that are taken */
        const char *want; /* the text of the error */
    } rows[] = {
        { "rapid reset", flood_reset, 20, "the peer resets streams too fast" },
        { "malformed requests", flood_bad_request, 20, "the peer resets streams too fast" },
        { "stream windows overflowed", flood_window, 20, "the peer resets streams too fast" },
        { "pings", flood_ping, 30, "the peer sends too many frames that do nothing" },
        { "settings", flood_settings, 30, "the peer sends too many frames that do nothing" },
        { "empty data", flood_empty_data, 30, "the peer sends too many frames that do nothing" },
    };

    (void)state;
    EACH(r, rows) {
        struct h2_config config = H2_CONFIG_INIT(H2_SERVER);
        struct end server;
        uint32_t i = 0;

        clock_ms = 1000;
        config.reset_burst = 20;
        config.reset_per_s = 10;
        config.idle_frame_burst = 31; /* one for the first SETTINGS */
        config.idle_frame_per_s = 10;
        end_open(&server, config);
        raw_open(&server.wire);
        server.is_failed = h2_feed(server.h, buf_span(&server.wire), &server.e) < 0;
        for (; !server.is_failed && i < 100; i++) {
            OWN(buf_done) struct buf in = BUF_INIT(8192);
            OWN(buf_done) struct buf out = BUF_INIT(1 << 20);

            r->add(&in, i);
            server.is_failed = h2_feed(server.h, buf_span(&in), &server.e) < 0;
            while (h2_pull(server.h, &out, 10000, &server.e) == 1)
                continue;
            if (i + 1 == r->free)
                clock_ms += 500; /* earns five more */
        }
        if (i < r->free + 6 || i > r->free + 7)
            fail_msg("%s: given up after %u rounds", r->name, i);
        assert_int_equal(server.e.code, ERR_LIMIT);
        assert_true(strstr(server.e.msg, r->want) != NULL);
        assert_false(h2_wants_read(server.h));
        end_close(&server);
    }
}

static void test_calm_is_what_the_peer_hears(void **state)
{
    struct h2_config config = H2_CONFIG_INIT(H2_SERVER);
    struct end server, client;

    (void)state;
    config.reset_burst = 3;
    config.reset_per_s = 0;
    end_open(&server, config);
    end_open(&client, (struct h2_config)H2_CONFIG_INIT(H2_CLIENT));
    for (int i = 0; i < 5 && !server.is_failed; i++) {
        struct h2_stream *s = request(&client, "GET", "/", false);

        (void)carry(&client, &server, 4096);
        h2_reset(s, H2_CANCEL);
        talk(&client, &server, 4096);
    }
    assert_true(server.is_failed);
    assert_true(strstr(buf_cstr(&client.log), "goaway now 11\n") != NULL);
    assert_false(h2_wants_read(client.h) && h2_wants_write(client.h));
    end_close(&client);
    end_close(&server);
}

static void test_a_peer_that_does_not_read(void **state)
{
    struct end server;
    OWN(buf_done) struct buf in = BUF_INIT(1 << 20);

    (void)state;
    end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
    raw_open(&in);
    for (uint32_t i = 0; i < 2000; i++)
        flood_ping(&in, i);
    assert_int_equal(h2_feed(server.h, buf_span(&in), &server.e), -1);
    assert_int_equal(server.e.code, ERR_LIMIT);
    assert_string_equal(server.e.msg,
                        "the HTTP/2 connection is lost: the peer does not read our answers");
    assert_int_equal(h2_feed(server.h, SPAN("x"), &server.e), -1);
    end_close(&server);
}

/* A head in many frames is fine however it is cut; one that never ends is not. */
static void test_continuations(void **state)
{
    static const struct row {
        const char *name;
        int frames;
        size_t step;
        bool is_ok;
    } rows[] = {
        { "few, byte by byte", 16, 1, true },
        { "few, whole", 16, SIZE_MAX, true },
        { "a flood", 200, SIZE_MAX, false },
    };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf in = BUF_INIT(8192);
        struct end server;

        end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
        raw_open(&in);
        raw_head(&in, 1, 1, REQ);
        in.p[24 + 9 + 4] = 1; /* END_STREAM without END_HEADERS */
        for (int i = 0; i < r->frames; i++)
            raw_frame(&in, 9, i + 1 == r->frames ? 4 : 0, 1, SPAN("\0\1a\1b"));
        for (struct span rest = buf_span(&in); rest.n > 0 && !server.is_failed;
             rest = span_skip(rest, MIN(r->step, rest.n)))
            server.is_failed = h2_feed(server.h, span_slice(rest, 0, r->step), &server.e) < 0;
        if (server.is_failed == r->is_ok || (server.last != NULL) != r->is_ok)
            fail_msg("%s: %s", r->name, server.is_failed ? server.e.msg : "taken");
        end_close(&server);
    }
}

/* Connection errors: the feed fails, or the next pull says GOAWAY and then nothing is wanted. */
static void test_broken_connections(void **state)
{
    static const struct row {
        const char *name;
        struct span in;
        bool has_preface;
    } rows[] = {
        { "HTTP/1", BYTES("GET / HTTP/1.1\r\nhost: x\r\n\r\n"), false },
        { "a frame before SETTINGS",
          BYTES("\0\0\10\6\0\0\0\0\0"
                "12345678"),
          false },
        { "DATA on an idle stream", BYTES("\0\0\1\0\0\0\0\0\1x"), true },
        { "an even stream", BYTES("\0\0\1\1\5\0\0\0\2\x82"), true },
        { "HPACK index 0", BYTES("\0\0\1\1\5\0\0\0\1\x80"), true },
        { "window update of zero", BYTES("\0\0\4\10\0\0\0\0\0\0\0\0\0"), true },
        { "window overflow", BYTES("\0\0\4\10\0\0\0\0\0\x7f\xff\xff\xff"), true },
        { "frame over the maximum", BYTES("\0\x40\1\0\0\0\0\0\1"), true },
        { "push from a client", BYTES("\0\0\5\5\4\0\0\0\1\0\0\0\2\x82"), true },
        { "settings of five bytes",
          BYTES("\0\0\5\4\0\0\0\0\0"
                "12345"),
          true },
        { "a ping of one byte", BYTES("\0\0\1\6\0\0\0\0\0x"), true },
    };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf in = BUF_INIT(8192);
        struct end server;
        struct err e;

        end_open(&server, (struct h2_config)H2_CONFIG_INIT(H2_SERVER));
        if (r->has_preface)
            raw_open(&in);
        else if (r->in.p[0] == 0)
            assert_int_equal(buf_add(&in, SPAN(PREFACE), &e), 0);
        assert_int_equal(buf_add(&in, r->in, &e), 0);
        for (size_t i = 0; i < in.n && !server.is_failed; i++)
            server.is_failed = h2_feed(server.h, span_of(in.p + i, 1), &server.e) < 0;
        while (h2_pull(server.h, &server.wire, 1000, &server.e) == 1)
            continue;
        if (h2_feed(server.h, SPAN("x"), &server.e) == 0 || server.e.code != ERR_PROTOCOL)
            fail_msg("%s: still reads", r->name);
        if (h2_wants_read(server.h) || h2_wants_write(server.h))
            fail_msg("%s: still open", r->name);
        expect(&server, "");
        end_close(&server);
    }
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_big_head_is_431),
        cmocka_unit_test(test_big_trailers_are_reset),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_floods),
        cmocka_unit_test(test_calm_is_what_the_peer_hears),
        cmocka_unit_test(test_a_peer_that_does_not_read),
        cmocka_unit_test(test_continuations),
        cmocka_unit_test(test_broken_connections),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
