/* A server and a client of ours talk through memory; raw frames stand in for peers that break
 * the rules. */
#include "http/h2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static uint64_t clock_ms;

static uint64_t test_now_ms(void)
{
    return clock_ms;
}

/* One end, with everything that happened to it written down. */
struct end {
    struct h2 *h;
    struct buf log;
    struct buf wire; /* pulled and not yet fed to the other */
    struct err e;    /* of a failed feed */
    bool is_failed;
    bool is_greedy;         /* consumes in on_data */
    size_t got;             /* body bytes */
    struct h2_stream *last; /* that had on_head or was requested; NULL once closed */
    void (*serve)(struct end *end, struct h2_stream *s, const struct http_head *head);
    void (*drained)(struct end *end, struct h2_stream *s);
};

static void note(struct end *end, const char *fmt, ...) PRINTF(2, 3);
static void note(struct end *end, const char *fmt, ...)
{
    va_list ap;
    struct err e;

    va_start(ap, fmt);
    assert_int_equal(buf_vaddf(&end->log, &e, fmt, ap), 0);
    va_end(ap);
}

static void note_fields(struct end *end, const struct http_head *head)
{
    struct span name, value;

    for (size_t i = 0; i < http_head_count(head); i++) {
        http_head_field(head, i, &name, &value);
        note(end, " %.*s=%.*s", SPAN_ARG(name), SPAN_ARG(value));
    }
}

static void on_head(void *ctx, struct h2_stream *s, const struct http_head *head, bool is_end)
{
    struct end *end = ctx;

    end->last = s;
    assert_ptr_equal(h2_head(s), head);
    if (head->status)
        note(end, "head %d", head->status);
    else
        note(end, "head %.*s %.*s %.*s", SPAN_ARG(http_head_method(head)),
             SPAN_ARG(http_head_target(head)), SPAN_ARG(http_head_authority(head)));
    note_fields(end, head);
    note(end, "%s\n", is_end ? " ." : "");
    if (end->serve)
        end->serve(end, s, head);
}

static void on_data(void *ctx, struct h2_stream *s, struct span bytes)
{
    struct end *end = ctx;

    end->got += bytes.n;
    if (bytes.n < 32)
        note(end, "data %.*s\n", SPAN_ARG(bytes));
    if (end->is_greedy)
        h2_consume(s, bytes.n);
}

static void on_trailers(void *ctx, struct h2_stream *s, const struct http_head *trailers)
{
    note(ctx, "trailers");
    note_fields(ctx, trailers);
    note(ctx, "\n");
}

static void on_end(void *ctx, struct h2_stream *s)
{
    note(ctx, "end\n");
}

static void on_drain(void *ctx, struct h2_stream *s)
{
    struct end *end = ctx;

    note(end, "drain %zu\n", h2_queued(s));
    if (end->drained)
        end->drained(end, s);
}

static void on_close(void *ctx, struct h2_stream *s, uint32_t code)
{
    struct end *end = ctx;

    note(end, "close %u\n", code);
    if (end->last == s)
        end->last = NULL;
}

static void on_goaway(void *ctx, uint32_t last_id, uint32_t code)
{
    note(ctx, "goaway %s %u\n", last_id == INT32_MAX ? "soon" : "now", code);
}

static void on_pong(void *ctx, uint64_t opaque)
{
    note(ctx, "pong %llu\n", (unsigned long long)opaque);
}

static const struct h2_events events = { on_head,  on_data,  on_trailers, on_end,
                                         on_drain, on_close, on_goaway,   on_pong };

static void end_open(struct end *end, struct h2_config config)
{
    *end = (struct end){ .log = BUF_INIT(1 << 20), .wire = BUF_INIT(64 << 20), .is_greedy = true };
    config.now_ms = test_now_ms;
    end->h = h2_new(&config, &events, end);
}

static void end_close(struct end *end)
{
    h2_free(end->h);
    buf_done(&end->log);
    buf_done(&end->wire);
}

static void expect(struct end *end, const char *log)
{
    assert_string_equal(buf_cstr(&end->log), log);
    buf_clear(&end->log);
}

/* Gives what one end has to say to the other, in pieces of at most `step`. */
static bool carry(struct end *from, struct end *to, size_t step)
{
    struct span rest;
    bool has_moved;

    while (h2_pull(from->h, &from->wire, step, &from->e) == 1)
        continue;
    has_moved = from->wire.n > 0;
    for (rest = buf_span(&from->wire); rest.n > 0; rest = span_skip(rest, MIN(step, rest.n)))
        to->is_failed |= h2_feed(to->h, span_slice(rest, 0, step), &to->e) < 0;
    buf_clear(&from->wire);
    return has_moved;
}

static void talk(struct end *a, struct end *b, size_t step)
{
    for (bool is_moving = true; is_moving;) {
        is_moving = carry(a, b, step);
        is_moving |= carry(b, a, step);
    }
}

static void head_of(struct http_head *head, const char *method, const char *path, const char *field,
                    const char *value)
{
    struct err e;

    http_head_init(head, 128 * 1024, 512);
    assert_int_equal(http_head_set_request(head, span_cstr(method), span_cstr(path), &e), 0);
    assert_int_equal(http_head_set_authority(head, SPAN("box:80"), &e), 0);
    if (field)
        assert_int_equal(http_head_add(head, span_cstr(field), span_cstr(value), &e), 0);
}

static struct h2_stream *request(struct end *end, const char *method, const char *path, bool is_end)
{
    OWN(http_head_done) struct http_head head;
    struct h2_stream *s = NULL;
    struct err e;

    head_of(&head, method, path, NULL, NULL);
    assert_int_equal(h2_request(end->h, &head, is_end, end, &s, &e), 0);
    end->last = s;
    return s;
}

static void respond(struct h2_stream *s, int status, bool is_end)
{
    OWN(http_head_done) struct http_head head;
    struct err e;

    http_head_init(&head, 4096, 16);
    http_head_set_status(&head, status);
    assert_int_equal(h2_respond(s, &head, is_end, &e), 0);
}

static void finish_with(struct h2_stream *s, const char *name, const char *value)
{
    OWN(http_head_done) struct http_head head;
    struct err e;

    http_head_init(&head, 4096, 16);
    assert_int_equal(http_head_add(&head, span_cstr(name), span_cstr(value), &e), 0);
    assert_int_equal(h2_finish(s, &head, &e), 0);
}

/* What the peer's rules do not allow our own client to say. */

static void raw_frame(struct buf *out, uint8_t type, uint8_t flags, uint32_t id, struct span body)
{
    uint8_t head[9] = {
        (uint8_t)(body.n >> 16), (uint8_t)(body.n >> 8), (uint8_t)body.n,    type,       flags,
        (uint8_t)(id >> 24),     (uint8_t)(id >> 16),    (uint8_t)(id >> 8), (uint8_t)id
    };
    struct err e;

    assert_int_equal(buf_add(out, span_of(head, sizeof head), &e), 0);
    assert_int_equal(buf_add(out, body, &e), 0);
}

/* "name: value" lines as literals that no table remembers. */
static void raw_head(struct buf *out, uint32_t id, uint8_t flags, const char *lines)
{
    OWN(buf_done) struct buf block = BUF_INIT(4096);
    struct span rest = span_cstr(lines), line;
    struct err e;

    while (span_cut(&rest, '\n', &line)) {
        size_t colon = span_find(span_skip(line, 1), ':') + 1;

        assert_int_equal(buf_addc(&block, 0, &e), 0);
        assert_int_equal(buf_addc(&block, (uint8_t)colon, &e), 0);
        assert_int_equal(buf_add(&block, span_slice(line, 0, colon), &e), 0);
        assert_int_equal(buf_addc(&block, (uint8_t)(line.n - colon - 2), &e), 0);
        assert_int_equal(buf_add(&block, span_skip(line, colon + 2), &e), 0);
    }
    raw_frame(out, 1, (uint8_t)(flags | 4), id, buf_span(&block));
}

static void raw_open(struct buf *out)
{
    struct err e;

    assert_int_equal(buf_add(out, SPAN(PREFACE), &e), 0);
    raw_frame(out, 4, 0, 0, SPAN_NONE);
}

#define REQ ":method: GET\n:scheme: http\n:authority: box\n:path: /"

/* The tests. */

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
    EACH(r, rows)
    {
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
    EACH(r, rows)
    {
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
    expect(&client, "head 431 content-length=0 .\nend\nclose 0\n");
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
    EACH(r, rows)
    {
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
    EACH(r, rows)
    {
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
    EACH(r, rows)
    {
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
    EACH(r, rows)
    {
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
        cmocka_unit_test(test_preface),
        cmocka_unit_test(test_exchange_cut_anywhere),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_early_answer_stops_the_upload),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_pull_keeps_to_what_is_wanted),
        cmocka_unit_test(test_client_cancels),
        cmocka_unit_test(test_free_closes_streams),
        cmocka_unit_test(test_concurrency_limit),
        cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_shutdown_ends_when_idle),
        cmocka_unit_test(test_goaway_refuses_waiting_requests),
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
