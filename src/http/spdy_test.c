#include "http/spdy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

/* One end of a connection that notes its events as lines and does what a test sets it up to do. */
struct end {
    struct spdy *h;
    struct buf log, wire; /* wire: what it has sent, not yet given to the other end */
    const char *name;
    bool is_echo;      /* answers streams and sends back what comes */
    bool is_consuming; /* credits what comes at once */
    struct spdy_stream *last;
    uint64_t got;
    struct err e;
};

static void note(struct end *x, const char *fmt, ...) PRINTF(2, 3);
static void note(struct end *x, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    assert_int_equal(buf_vaddf(&x->log, &x->e, fmt, ap), 0);
    va_end(ap);
    assert_int_equal(buf_addc(&x->log, '\n', &x->e), 0);
}

static void on_stream(void *ctx, struct spdy_stream *s, const struct http_head *head)
{
    struct end *x = ctx;

    x->last = s;
    note(x, "stream %u type=%.*s", spdy_id(s), SPAN_ARG(http_head_get(head, "streamtype")));
    if (x->is_echo)
        assert_int_equal(spdy_reply(s, NULL, false, &x->e), 0);
}

static void on_reply(void *ctx, struct spdy_stream *s, const struct http_head *head)
{
    note(ctx, "reply %u fields=%zu", spdy_id(s), http_head_count(head));
}

static void on_data(void *ctx, struct spdy_stream *s, struct span bytes)
{
    struct end *x = ctx;

    x->got += bytes.n;
    if (bytes.n < 20)
        note(x, "data %u %.*s", spdy_id(s), SPAN_ARG(bytes));
    if (x->is_echo)
        spdy_send(s, bytes);
    if (x->is_consuming)
        spdy_consume(s, bytes.n);
}

static void on_end(void *ctx, struct spdy_stream *s)
{
    struct end *x = ctx;

    note(x, "end %u", spdy_id(s));
    if (x->is_echo)
        spdy_finish(s);
}

static void on_drain(void *ctx, struct spdy_stream *s)
{
    note(ctx, "drain %u", spdy_id(s));
}

static void on_close(void *ctx, struct spdy_stream *s, uint32_t status)
{
    struct end *x = ctx;

    note(x, "close %u %u", spdy_id(s), status);
    if (x->last == s)
        x->last = NULL;
}

static void on_goaway(void *ctx, uint32_t last_id, uint32_t status)
{
    note(ctx, "goaway %u %u", last_id, status);
}

static void on_pong(void *ctx, uint32_t id)
{
    note(ctx, "pong %u", id);
}

static const struct spdy_events events = { on_stream, on_reply, on_data,   on_end,
                                           on_drain,  on_close, on_goaway, on_pong };

static void open_end(struct end *x, const struct spdy_config *config)
{
    *x = (struct end){ .log = BUF_INIT(1 << 20), .wire = BUF_INIT(64 << 20), .is_consuming = true };
    x->h = spdy_new(config, &events, x);
}

static void pull(struct end *x)
{
    OWN(buf_done) struct buf out = BUF_INIT(1);

    while (spdy_wants_pull(x->h)) {
        spdy_pull(x->h, &out);
        assert_int_equal(buf_add(&x->wire, buf_span(&out), &x->e), 0);
        buf_done(&out);
    }
}

/* Gives what one sent to the other in pieces; false when there was nothing. */
static bool carry(struct end *from, struct end *to, size_t step)
{
    OWN(buf_done) struct buf all = BUF_INIT(64 << 20);
    struct span rest;

    pull(from);
    buf_move(&all, &from->wire);
    for (rest = buf_span(&all); rest.n; rest = span_skip(rest, step))
        assert_int_equal(spdy_feed(to->h, span_slice(rest, 0, step), &to->e), 0);
    pull(to);
    return all.n > 0;
}

static void settle(struct end *a, struct end *b, size_t step)
{
    bool is_moving;

    do {
        is_moving = carry(a, b, step);
        is_moving |= carry(b, a, step);
    } while (is_moving);
}

static void close_end(struct end *x)
{
    spdy_free(x->h);
    buf_done(&x->log);
    buf_done(&x->wire);
}

static struct spdy_stream *open_stream(struct end *x, const char *type, bool is_end)
{
    OWN(http_head_done) struct http_head head;
    struct spdy_stream *s = NULL;

    http_head_init(&head, 1024, 4);
    assert_int_equal(http_head_add(&head, SPAN("streamtype"), span_cstr(type), &x->e), 0);
    assert_int_equal(spdy_open(x->h, &head, is_end, NULL, &s, &x->e), 0);
    return s;
}

static void wants(struct end *x, const char *log)
{
    assert_string_equal(buf_cstr(&x->log), log);
    buf_clear(&x->log);
}

static void test_a_conversation(void **state)
{
    static const size_t steps[] = { 1, 3, 7, SIZE_MAX };

    (void)state;
    EACH(step, steps) {
        struct spdy_config server = SPDY_CONFIG_INIT(SPDY_SERVER),
                           client = SPDY_CONFIG_INIT(SPDY_CLIENT);
        struct end s, c;
        struct spdy_stream *data;

        open_end(&s, &server);
        open_end(&c, &client);
        assert_false(spdy_wants_pull(s.h)); /* no byte before the client's first */
        s.is_echo = true;
        (void)open_stream(&c, "error", true);
        data = open_stream(&c, "data", false);
        spdy_send(data, SPAN("hello"));
        settle(&c, &s, *step == 1 ? 1 : SIZE_MAX);
        assert_non_null(strstr(buf_cstr(&s.log), "stream 1 type=error\nend 1\n"));
        assert_non_null(strstr(buf_cstr(&s.log), "stream 3 type=data\n"));
        assert_non_null(strstr(buf_cstr(&c.log), "reply 1 fields=0\nend 1\n"));
        assert_int_equal(s.got, 5);
        assert_int_equal(c.got, 5);
        buf_clear(&s.log);
        buf_clear(&c.log);
        spdy_finish(data);
        spdy_finish(data);
        spdy_send(data, SPAN("ignored"));
        settle(&c, &s, *step);
        wants(&s, "end 3\nclose 3 0\n");
        wants(&c, "end 3\nclose 3 0\n");
        assert_int_equal(spdy_stream_count(s.h), 0);
        assert_int_equal(spdy_stream_count(c.h), 0);
        close_end(&s);
        close_end(&c);
    }
}

/* The bytes of the contract: streams and answers as Go's client and server send them. */
static void test_the_wire(void **state)
{
    struct spdy_config client = SPDY_CONFIG_INIT(SPDY_CLIENT),
                       server = SPDY_CONFIG_INIT(SPDY_SERVER);
    struct end c, s;

    (void)state;
    open_end(&c, &client);
    (void)open_stream(&c, "error", true);
    pull(&c);
    assert_memory_equal(c.wire.p, "\x80\3\0\1\1\0\0", 7);
    assert_memory_equal(c.wire.p + 8, "\0\0\0\1\0\0\0\0\0\0", 10);
    assert_int_equal(spdy_feed(c.h,
                               SPAN("\x80\3\0\2\0\0\0\x14\0\0\0\1"
                                    "\x78\xf9\xe3\xc6\xa7\xc2\x02\xa6\x23\x06\0\0\0\0\xff\xff"),
                               &c.e),
                     0);
    wants(&c, "reply 1 fields=0\n");
    open_end(&s, &server);
    s.is_echo = true;
    (void)carry(&c, &s, SIZE_MAX);
    assert_memory_equal(s.wire.p, "\x80\3\0\2\0\0\0\x14\0\0\0\1", 12);
    buf_clear(&s.wire);
    assert_int_equal(spdy_feed(s.h, SPAN("\x80\3\0\6\0\0\0\4\0\0\0\7"), &s.e), 0);
    pull(&s);
    assert_int_equal(s.wire.n, 12);
    assert_memory_equal(s.wire.p, "\x80\3\0\6\0\0\0\4\0\0\0\7", 12); /* a ping comes back */
    close_end(&c);
    close_end(&s);
}

static void test_resets(void **state)
{
    struct spdy_config client = SPDY_CONFIG_INIT(SPDY_CLIENT),
                       server = SPDY_CONFIG_INIT(SPDY_SERVER);
    struct spdy_stream *a, *b;
    struct end c, s;

    (void)state;
    open_end(&c, &client);
    open_end(&s, &server);
    s.is_echo = true;
    a = open_stream(&c, "a", false);
    b = open_stream(&c, "b", false);
    settle(&c, &s, SIZE_MAX);
    buf_clear(&c.log);
    buf_clear(&s.log);
    spdy_reset(a, SPDY_CANCEL);
    spdy_send(a, SPAN("gone")); /* until on_close the handle is there, and does nothing */
    spdy_finish(a);
    spdy_reset(a, SPDY_CANCEL);
    settle(&c, &s, SIZE_MAX);
    wants(&c, "close 1 5\n");
    wants(&s, "close 1 5\n");
    assert_int_equal(spdy_feed(s.h, SPAN("\0\0\0\1\0\0\0\2hi"), &s.e), 0); /* was on its way */
    assert_false(spdy_wants_pull(s.h));
    assert_int_equal(spdy_feed(s.h, SPAN("\0\0\0\x09\0\0\0\2hi"), &s.e), 0);
    pull(&s);
    assert_memory_equal(s.wire.p, "\x80\3\0\3\0\0\0\x08\0\0\0\x09\0\0\0\2",
                        16); /* INVALID_STREAM */
    buf_clear(&s.wire);
    wants(&s, "");
    spdy_send(b, SPAN("x"));
    spdy_free(c.h);
    wants(&c, "close 3 5\n");
    c.h = NULL;
    close_end(&c);
    close_end(&s);
}

static void test_more_streams_than_allowed(void **state)
{
    struct spdy_config client = SPDY_CONFIG_INIT(SPDY_CLIENT),
                       server = SPDY_CONFIG_INIT(SPDY_SERVER);
    struct end c, s;

    (void)state;
    server.max_streams = 2;
    open_end(&c, &client);
    open_end(&s, &server);
    s.is_echo = true;
    for (int i = 0; i < 3; i++)
        (void)open_stream(&c, "x", false);
    settle(&c, &s, SIZE_MAX);
    wants(&s, "stream 1 type=x\nstream 3 type=x\n");
    wants(&c, "reply 1 fields=0\nreply 3 fields=0\nclose 5 3\n");
    close_end(&c);
    close_end(&s);
}

static void test_goaway_and_ping(void **state)
{
    struct spdy_config client = SPDY_CONFIG_INIT(SPDY_CLIENT),
                       server = SPDY_CONFIG_INIT(SPDY_SERVER);
    OWN(http_head_done) struct http_head head;
    struct spdy_stream *stream;
    struct end c, s;

    (void)state;
    http_head_init(&head, 100, 2);
    open_end(&c, &client);
    open_end(&s, &server);
    assert_int_equal(spdy_ping(c.h), 1);
    assert_int_equal(spdy_ping(s.h), 2);
    settle(&c, &s, 5);
    wants(&c, "pong 1\n");
    wants(&s, "pong 2\n");
    spdy_goaway(s.h, SPDY_OK);
    (void)open_stream(&c, "crossing", false);
    settle(&c, &s, SIZE_MAX);
    wants(&c, "goaway 0 0\nclose 1 3\n");
    wants(&s, "");
    assert_int_equal(spdy_open(c.h, &head, false, NULL, &stream, &c.e), -1);
    assert_int_equal(c.e.code, ERR_UNAVAILABLE);
    close_end(&c);
    close_end(&s);
}

/* A megabyte against windows of 64 KiB: what is not consumed is not sent, and no side runs ahead. */
static void test_windows(void **state)
{
    struct spdy_config client = SPDY_CONFIG_INIT(SPDY_CLIENT),
                       server = SPDY_CONFIG_INIT(SPDY_SERVER);
    OWN_MEM uint8_t *much = own_new(1 << 20);
    struct spdy_stream *stream;
    struct end c, s;

    (void)state;
    client.has_windows = server.has_windows = true;
    open_end(&c, &client);
    open_end(&s, &server);
    s.is_consuming = false;
    stream = open_stream(&c, "x", false);
    settle(&c, &s, SIZE_MAX);
    spdy_send(stream, span_of(much, 1 << 20));
    spdy_finish(stream);
    assert_true(spdy_is_full(stream));
    settle(&c, &s, 1000);
    assert_int_equal(s.got, SPDY_WINDOW_BYTES);
    spdy_consume(s.last, 100);
    settle(&c, &s, 1000);
    assert_int_equal(s.got, SPDY_WINDOW_BYTES); /* a crumb is not worth a frame */
    spdy_consume(s.last, SPDY_WINDOW_BYTES);
    s.is_consuming = true;
    settle(&c, &s, 1000);
    assert_int_equal(s.got, 1 << 20);
    assert_non_null(strstr(buf_cstr(&c.log), "drain 1\n"));
    assert_non_null(strstr(buf_cstr(&s.log), "end 1\n"));
    close_end(&c);
    close_end(&s);
}

/* The connection's window is shared: streams that nobody reads must not hold others up for good. */
static void test_the_shared_window(void **state)
{
    struct spdy_config client = SPDY_CONFIG_INIT(SPDY_CLIENT),
                       server = SPDY_CONFIG_INIT(SPDY_SERVER);
    OWN_MEM uint8_t *much = own_new(1 << 20);
    struct spdy_stream *streams[4];
    struct end c, s;

    (void)state;
    client.has_windows = server.has_windows = true;
    server.conn_window = 100000;
    open_end(&c, &client);
    open_end(&s, &server);
    s.is_consuming = false;
    EACH(stream, streams)
        *stream = open_stream(&c, "x", false);
    settle(&c, &s, SIZE_MAX);
    EACH(stream, streams)
        spdy_send(*stream, span_of(much, 50000));
    settle(&c, &s, 777);
    assert_int_equal(s.got, 100000);
    spdy_reset(streams[0], SPDY_CANCEL); /* gives its part back */
    settle(&c, &s, 777);
    assert_int_equal(s.got, 150000);
    close_end(&c);
    close_end(&s);
}

#define SYN_EMPTY(id) /* a stream without fields, as the first of its connection */                \
    "\x80\3\0\1\0\0\0\x1a\0\0\0" id                                                                \
    "\0\0\0\0\0\0\x78\xf9\xe3\xc6\xa7\xc2\x02\xa6\x23\x06\0\0\0\0\xff\xff"
#define GOAWAY(last, status) "\x80\3\0\7\0\0\0\x08\0\0\0" last "\0\0\0" status
#define RST(id, status)      "\x80\3\0\3\0\0\0\x08\0\0\0" id "\0\0\0" status

/* What a client may do wrong, and what a server says to it. */
static const struct row {
    const char *name;
    struct span in;
    const char *log;
    struct span out;
    const char *err; /* of spdy_feed, or "" */
} rows[] = {
    { "a stream", BYTES(SYN_EMPTY("\1")), "stream 1 type=\n", BYTES(""), "" },
    { "another version", BYTES("\x80\2\0\1\0\0\0\0"), "", BYTES(GOAWAY("\0", "\1")),
      "frame of another version of SPDY" },
    { "a type nobody knows", BYTES("\x80\3\0\x63\0\0\0\3abc" SYN_EMPTY("\1")), "stream 1 type=\n",
      BYTES(""), "" },
    { "an empty frame of no known type", BYTES("\x80\3\0\x63\0\0\0\0"), "", BYTES(""), "" },
    { "an even id", BYTES(SYN_EMPTY("\2")), "", BYTES(GOAWAY("\0", "\1")),
      "stream with an id that is used or not the peer's" },
    { "id 0", BYTES(SYN_EMPTY("\0")), "", BYTES(GOAWAY("\0", "\1")),
      "stream with an id that is used or not the peer's" },
    { "an id twice", BYTES(SYN_EMPTY("\3") SYN_EMPTY("\3")), "stream 3 type=\n",
      BYTES(GOAWAY("\3", "\1")), "stream with an id that is used or not the peer's" },
    { "a short frame", BYTES("\x80\3\0\1\0\0\0\x09"), "", BYTES(GOAWAY("\0", "\1")),
      "control frame of a wrong length" },
    { "a long ping", BYTES("\x80\3\0\6\0\0\0\5"), "", BYTES(GOAWAY("\0", "\1")),
      "control frame of a wrong length" },
    { "a head as long as can be", BYTES("\x80\3\0\1\0\xff\xff\xff"), "", BYTES(GOAWAY("\0", "\1")),
      "control frame of 16777215 bytes; at most 17408" },
    { "a head that is not zlib", BYTES("\x80\3\0\1\0\0\0\x0e\0\0\0\1\0\0\0\0\0\0zlib"), "",
      BYTES(GOAWAY("\0", "\1")), "head that cannot be unpacked" },
    { "a stream that cannot be answered",
      BYTES("\x80\3\0\1\2\0\0\x1a\0\0\0\1\0\0\0\0\0\0\x78\xf9\xe3\xc6\xa7\xc2\x02\xa6\x23\x06\0\0\0"
            "\0\xff\xff"),
      "", BYTES(RST("\1", "\3")), "" },
    { "data behind the end", BYTES(SYN_EMPTY("\1") "\0\0\0\1\1\0\0\0\0\0\0\1\0\0\0\1x"),
      "stream 1 type=\nend 1\nclose 1 9\n", BYTES(RST("\1", "\x09")), "" },
    { "data for no stream", BYTES("\0\0\0\1\0\0\0\1x"), "", BYTES(RST("\1", "\2")), "" },
    { "an answer to what was not asked",
      BYTES("\x80\3\0\2\0\0\0\x14\0\0\0\2\x78\xf9\xe3\xc6\xa7\xc2\x02\xa6\x23\x06\0\0\0\0\xff\xff"),
      "", BYTES(""), "" },
    { "an answer to its own stream",
      BYTES(SYN_EMPTY("\1") "\x80\3\0\2\0\0\0\x0c\0\0\0\1\x02\1\0\0\0\0\xff\xff"),
      "stream 1 type=\nclose 1 1\n", BYTES(RST("\1", "\1")), "" },
    { "settings that miscount", BYTES("\x80\3\0\4\0\0\0\4\0\0\0\1"), "", BYTES(GOAWAY("\0", "\1")),
      "settings of another number than announced" },
    { "a reset of nothing", BYTES(RST("\5", "\1")), "", BYTES(""), "" },
    { "credit without windows",
      BYTES("\x80\3\0\x09\0\0\0\x08\0\0\0\0\x7f\xff\xff\xff"
            "\x80\3\0\x09\0\0\0\x08\0\0\0\0\x7f\xff\xff\xff"),
      "", BYTES(""), "" },
    { "a farewell", BYTES(GOAWAY("\0", "\0")), "goaway 0 0\n", BYTES(""), "" },
    { "more fields", BYTES(SYN_EMPTY("\1") "\x80\3\0\x08\1\0\0\x0c\0\0\0\1\x02\1\0\0\0\0\xff\xff"),
      "stream 1 type=\nend 1\n", BYTES(""), "" },
};

static void run(const struct row *r, size_t step)
{
    struct spdy_config server = SPDY_CONFIG_INIT(SPDY_SERVER);
    struct span rest = r->in;
    struct end s;
    int got = 0;

    open_end(&s, &server);
    for (; rest.n && got == 0; rest = span_skip(rest, step))
        got = spdy_feed(s.h, span_slice(rest, 0, step), &s.e);
    pull(&s);
    if (got != (r->err[0] ? -1 : 0))
        fail_msg("%s, by %zu: %d %s", r->name, step, got, s.e.msg);
    if (got < 0) {
        assert_string_equal(s.e.msg, r->err);
        assert_int_equal(spdy_feed(s.h, SPAN("\0"), &s.e), -1);
        assert_false(spdy_wants_pull(s.h)); /* one farewell is enough */
    }
    if (!span_is(buf_span(&s.log), r->log))
        fail_msg("%s, by %zu: %s", r->name, step, buf_cstr(&s.log));
    assert_true(span_eq(buf_span(&s.wire), r->out));
    close_end(&s);
}

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        run(r, 1);
        run(r, 5);
        run(r, SIZE_MAX);
    }
}

static void test_broken_windows(void **state)
{
    struct spdy_config server = SPDY_CONFIG_INIT(SPDY_SERVER);
    OWN_MEM uint8_t *much = own_new(80000);
    struct end s;

    (void)state;
    server.has_windows = true;
    open_end(&s, &server);
    s.is_consuming = false;
    pull(&s);
    buf_clear(&s.wire);
    assert_int_equal(spdy_feed(s.h, SPAN(SYN_EMPTY("\1")), &s.e), 0);
    assert_int_equal(spdy_feed(s.h, SPAN("\0\0\0\1\0\1\0\1"), &s.e), 0); /* 64 KiB and one */
    pull(&s);
    assert_memory_equal(s.wire.p, RST("\1", "\7"), 16);
    assert_int_equal(spdy_feed(s.h, span_of(much, 65537), &s.e), 0);
    assert_int_equal(s.got, 0);
    assert_int_equal(spdy_feed(s.h, SPAN("\0\0\0\1\0\4\0\1"), &s.e), -1); /* beyond all streams' */
    assert_string_equal(s.e.msg, "more data than the connection's window has room for");
    close_end(&s);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_a_conversation),
        cmocka_unit_test(test_the_wire),
        cmocka_unit_test(test_resets),
        cmocka_unit_test(test_more_streams_than_allowed),
        cmocka_unit_test(test_goaway_and_ping),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_the_shared_window),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_broken_windows),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
