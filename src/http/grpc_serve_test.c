/* gRPC calls as clients see them. */
#include "http/grpc_serve.h"

#include "http/grpc_frame.h"
#include "http/testcaller.h"

#include <stdio.h>

#define MAX_BYTES 1000

/* What the service saw of one call. */
struct seen {
    struct desk *desk;
    struct grpc_stream *stream; /* NULL once over */
    char log[256]; /* messages, and '.' for the half-close, '!' for gone, '~' for drain */
    size_t left;   /* messages that /t.S/Flow still sends */
    bool pauses, finishes, echoes;
};

static struct seen seen;

static void note(struct seen *s, const char *what)
{
    size_t n = strlen(s->log);

    assert_false(s->desk->is_in_verb);
    (void)snprintf(s->log + n, sizeof s->log - n, "%s", what);
}

static void on_message(void *ctx, struct span msg)
{
    struct seen *s = ctx;
    char text[MAX_BYTES + 1];

    (void)snprintf(text, sizeof text, "%.*s,", SPAN_ARG(msg));
    note(s, text);
    assert_non_null(s->stream);
    if (s->echoes)
        VERB(s->desk, grpc_stream_send(s->stream, msg));
    if (s->pauses)
        VERB(s->desk, grpc_stream_pause(s->stream, true));
    if (s->finishes)
        VERB(s->desk, grpc_stream_finish(take_ptr(&s->stream), GRPC_ABORTED, "enough"));
}

static void on_half_close(void *ctx)
{
    struct seen *s = ctx;

    note(s, ".");
    if (s->echoes)
        VERB(s->desk, grpc_stream_finish(take_ptr(&s->stream), GRPC_OK, ""));
}

static void flow(struct seen *s)
{
    static const char message[1000] = { 'm' };

    while (s->left && !grpc_stream_is_full(s->stream)) {
        VERB(s->desk, grpc_stream_send(s->stream, span_of(message, sizeof message)));
        s->left--;
    }
    if (s->left == 0)
        VERB(s->desk, grpc_stream_finish(take_ptr(&s->stream), GRPC_OK, "all"));
}

static void on_drain(void *ctx)
{
    struct seen *s = ctx;

    assert_false(s->desk->is_in_verb);
    if (s->left)
        flow(s);
}

static void on_gone(void *ctx)
{
    struct seen *s = ctx;

    note(s, "!");
    assert_non_null(s->stream);
    s->stream = NULL;
}

static void *unary(void *ctx, struct grpc_stream *stream, struct span msg)
{
    struct seen *s = ctx;

    s->stream = stream;
    on_message(s, msg);
    if (s->echoes)
        VERB(s->desk, grpc_stream_finish(take_ptr(&s->stream), GRPC_OK, ""));
    return s;
}

static void serve(struct desk *d, struct http_exchange *x)
{
    static const struct grpc_stream_events events = { on_message, on_half_close, on_drain,
                                                      on_gone };

    seen.desk = d;
    if (span_starts(http_path(x), "/t.S/Unary")) {
        VERB(d, grpc_unary(x, MAX_BYTES, unary, &seen, on_gone));
    } else if (span_is(http_path(x), "/t.S/None")) {
        VERB(d, grpc_refuse(x, GRPC_UNIMPLEMENTED, "unknown method \xc3\xa4 None"));
    } else {
        VERB(d, seen.stream = grpc_stream_open(x, MAX_BYTES, &events, &seen));
        if (seen.stream && seen.left)
            flow(&seen);
    }
}

struct stage {
    struct desk d;
    struct caller c;
};

static void up(struct stage *s, const struct http_server_config *config)
{
    desk_open(&s->d, config);
    s->d.serve = serve;
    caller_open(&s->c, &s->d);
    seen = (struct seen){ .desk = &s->d };
}

static void down(struct stage *s)
{
    caller_close(&s->c);
    desk_close(&s->d);
    assert_null(seen.stream);
}

static struct reply *call(struct stage *s, const char *path, const char *fields, struct span body,
                          bool is_end)
{
    char all[256];
    struct reply *r;

    (void)snprintf(all, sizeof all, "content-type: application/grpc\nte: trailers\n%s", fields);
    r = caller_ask(&s->c, "POST", path, all, false);
    caller_send(r, body, is_end);
    return r;
}

static bool is_done(void *ctx)
{
    struct reply *r = ctx;

    return r->is_ended || r->is_closed;
}

/* The call's status, its message, and the replies' bytes. */
static void expect(struct reply *r, enum grpc_status status, const char *message, struct span body)
{
    OWN(buf_done) struct buf text = BUF_INIT(4096);
    const struct http_head *last;

    assert_true(desk_wait(r->caller->desk, is_done, r));
    last = r->ends_with_head ? &r->head : &r->trailers;
    assert_true(r->is_ended);
    assert_int_equal(r->head.status, 200);
    assert_true(span_is(http_head_get(&r->head, "content-type"), "application/grpc"));
    assert_null(http_head_get(&r->head, "content-length").p);
    assert_int_equal(grpc_status_read(last, &text), status);
    assert_string_equal(buf_cstr(&text), message);
    assert_int_equal(r->body.n, body.n);
    if (body.n)
        assert_memory_equal(r->body.p, body.p, body.n);
}

static void test_calls_table(void **state)
{
    static const struct row {
        const char *name;
        const char *path, *fields;
        struct span body;
        enum grpc_status status;
        const char *message;
        struct span reply;
        const char *log;
        bool is_head_only; /* trailers-only */
    } rows[] = {
        { "unary", "/t.S/Unary", "", BYTES("\0\0\0\0\2hi"), GRPC_OK, "", BYTES("\0\0\0\0\2hi"),
          "hi,", false },
        { "empty message", "/t.S/Unary", "", BYTES("\0\0\0\0\0"), GRPC_OK, "", BYTES("\0\0\0\0\0"),
          ",", false },
        { "refused", "/t.S/None", "", BYTES("\0\0\0\0\2hi"), GRPC_UNIMPLEMENTED,
          "unknown method \xc3\xa4 None", BYTES(""), "", true },
        { "no message", "/t.S/Unary", "", BYTES(""), GRPC_INTERNAL,
          "a unary call has one message, and there came none", BYTES(""), "", true },
        { "two messages", "/t.S/Unary", "", BYTES("\0\0\0\0\1a\0\0\0\0\1b"), GRPC_INTERNAL,
          "a unary call has one message, and there came two", BYTES(""), "", true },
        { "stream", "/t.S/Talk", "", BYTES("\0\0\0\0\1a\0\0\0\0\0\0\0\0\0\1b"), GRPC_OK, "",
          BYTES("\0\0\0\0\1a\0\0\0\0\0\0\0\0\0\1b"), "a,,b,.", false },
        { "stream without messages", "/t.S/Talk", "", BYTES(""), GRPC_OK, "", BYTES(""), ".",
          true },
    };

    (void)state;
    EACH(r, rows) {
        for (size_t step = 1; step < 100; step += 98) {
            static struct stage s;
            struct reply *reply;

            print_message("# %s by %zu\n", r->name, step);
            up(&s, NULL);
            seen.echoes = true;
            reply = call(&s, r->path, r->fields, SPAN_NONE, false);
            for (size_t at = 0; at < r->body.n && reply->stream; at += step) {
                caller_send(reply, span_slice(r->body, at, at + step), false);
                ev_loop_turn(s.d.loop);
                ev_loop_turn(s.d.loop);
            }
            if (reply->stream && !reply->is_ended)
                caller_send(reply, SPAN_NONE, true);
            expect(reply, r->status, r->message, r->reply);
            assert_string_equal(seen.log, r->log);
            assert_int_equal(reply->ends_with_head, r->is_head_only);
            down(&s);
        }
    }
}

static void test_bad_calls(void **state)
{
    static const struct row {
        const char *name;
        const char *path, *fields;
        struct span body;
        enum grpc_status status;
        const char *log; /* of the stream's events */
    } rows[] = {
        { "bad timeout", "/t.S/Talk", "grpc-timeout: 5x\n", BYTES(""), GRPC_INTERNAL, "" },
        { "compressed", "/t.S/Talk", "grpc-encoding: gzip\n", BYTES(""), GRPC_UNIMPLEMENTED, "" },
        { "compressed flag", "/t.S/Talk", "", BYTES("\1\0\0\0\1a"), GRPC_INTERNAL, "!" },
        { "too large", "/t.S/Talk", "", BYTES("\0\0\0\3\xe9"), GRPC_RESOURCE_EXHAUSTED, "!" },
        { "good, then too large", "/t.S/Talk", "", BYTES("\0\0\0\0\1a\0\xff\xff\xff\xff"),
          GRPC_RESOURCE_EXHAUSTED, "a,!" },
        { "too large, unary", "/t.S/Unary", "", BYTES("\0\0\0\3\xe9"), GRPC_RESOURCE_EXHAUSTED,
          "" },
        { "cut", "/t.S/Talk", "", BYTES("\0\0\0\0\2a"), GRPC_INTERNAL, "!" },
        { "cut, unary", "/t.S/Unary", "", BYTES("\0\0\0"), GRPC_INTERNAL, "" },
    };

    (void)state;
    EACH(r, rows) {
        static struct stage s;
        struct reply *reply;
        OWN(buf_done) struct buf text = BUF_INIT(4096);

        print_message("# %s\n", r->name);
        up(&s, NULL);
        reply = call(&s, r->path, r->fields, r->body, true);
        assert_true(desk_wait(&s.d, is_done, reply));
        assert_true(reply->ends_with_head);
        assert_int_equal(grpc_status_read(&reply->head, &text), r->status);
        assert_true(text.n > 0);
        assert_string_equal(seen.log, r->log);
        /* the connection lives on */
        seen.echoes = true;
        seen.log[0] = '\0';
        expect(call(&s, "/t.S/Unary", "", SPAN("\0\0\0\0\2hi"), true), GRPC_OK, "",
               SPAN("\0\0\0\0\2hi"));
        down(&s);
    }
}

static bool has_log(void *ctx)
{
    return strstr(seen.log, ctx) != NULL;
}

static void test_a_deadline_ends_the_call(void **state)
{
    static struct stage s;
    struct reply *r;

    (void)state;
    /* before the head */
    up(&s, NULL);
    r = call(&s, "/t.S/Talk", "grpc-timeout: 40m\n", SPAN("\0\0\0\0\1a"), false);
    assert_true(desk_wait(&s.d, has_log, "a,"));
    assert_in_range(grpc_stream_left_ms(seen.stream), 0, 40);
    expect(r, GRPC_DEADLINE_EXCEEDED, "the call's deadline passed", SPAN_NONE);
    assert_true(r->ends_with_head);
    assert_string_equal(seen.log, "a,!");
    down(&s);
    /* behind it */
    up(&s, NULL);
    r = call(&s, "/t.S/Talk", "grpc-timeout: 40000u\n", SPAN("\0\0\0\0\1a"), true);
    assert_true(desk_wait(&s.d, has_log, "."));
    VERB(&s.d, grpc_stream_send(seen.stream, SPAN("x")));
    expect(r, GRPC_DEADLINE_EXCEEDED, "the call's deadline passed", SPAN("\0\0\0\0\1x"));
    assert_string_equal(seen.log, "a,.!");
    down(&s);
    /* unary, while it is handled */
    up(&s, NULL);
    r = call(&s, "/t.S/Unary", "grpc-timeout: 30m\n", SPAN("\0\0\0\0\1a"), true);
    expect(r, GRPC_DEADLINE_EXCEEDED, "the call's deadline passed", SPAN_NONE);
    assert_string_equal(seen.log, "a,!");
    down(&s);
    /* unary, before its message: nobody was asked */
    up(&s, NULL);
    r = call(&s, "/t.S/Unary", "grpc-timeout: 30m\n", SPAN("\0\0\0\0\1"), false);
    expect(r, GRPC_DEADLINE_EXCEEDED, "the call's deadline passed", SPAN_NONE);
    assert_string_equal(seen.log, "");
    down(&s);
    /* in time: none */
    up(&s, NULL);
    seen.echoes = true;
    r = call(&s, "/t.S/Unary", "grpc-timeout: 1H\n", SPAN("\0\0\0\0\1a"), true);
    expect(r, GRPC_OK, "", SPAN("\0\0\0\0\1a"));
    down(&s);
}

static void test_a_cancelled_call_is_told_once(void **state)
{
    static const char *const paths[] = { "/t.S/Talk", "/t.S/Unary" };
    static struct stage s;
    struct reply *r;

    (void)state;
    EACH(path, paths) {
        up(&s, NULL);
        r = call(&s, *path, "", SPAN("\0\0\0\0\1a"), true);
        assert_true(desk_wait(&s.d, has_log, "a,"));
        caller_reset(r);
        assert_true(desk_wait(&s.d, has_log, "!"));
        side_idle(s.d.loop, 5);
        assert_string_equal(seen.log, strcmp(*path, "/t.S/Talk") == 0 ? "a,.!" : "a,!");
        down(&s);
    }
    /* the connection goes */
    up(&s, NULL);
    (void)call(&s, "/t.S/Talk", "", SPAN("\0\0\0\0\1a"), false);
    assert_true(desk_wait(&s.d, has_log, "a,"));
    conn_close(s.c.conn);
    assert_true(desk_wait(&s.d, has_log, "!"));
    assert_string_equal(seen.log, "a,!");
    down(&s);
    /* the server goes, within a message of a unary call */
    up(&s, NULL);
    (void)call(&s, "/t.S/Unary", "", SPAN("\0\0\0\0\1"), false);
    side_idle(s.d.loop, 5);
    http_server_free(take_ptr(&s.d.server));
    assert_string_equal(seen.log, "");
    down(&s);
}

static void test_a_call_may_end_in_the_middle_of_its_messages(void **state)
{
    static struct stage s;
    struct reply *r;

    (void)state;
    up(&s, NULL);
    seen.finishes = true;
    r = call(&s, "/t.S/Talk", "", SPAN("\0\0\0\0\1a\0\0\0\0\1b"), false);
    expect(r, GRPC_ABORTED, "enough", SPAN_NONE);
    if (r->stream)
        caller_send(r, SPAN("\0\0\0\0\1c"), true);
    side_idle(s.d.loop, 5);
    assert_string_equal(seen.log, "a,");
    down(&s);
}

static void test_a_head_may_come_before_messages(void **state)
{
    static struct stage s;
    struct reply *r;

    (void)state;
    up(&s, NULL);
    r = call(&s, "/t.S/Talk", "", SPAN("\0\0\0\0\1a"), false);
    assert_true(desk_wait(&s.d, has_log, "a,"));
    assert_false(r->has_head);
    VERB(&s.d, grpc_stream_accept(seen.stream));
    VERB(&s.d, grpc_stream_accept(seen.stream));
    assert_true(desk_wait(&s.d, reply_has_head, r));
    assert_true(grpc_stream_left_ms(seen.stream) == UINT64_MAX);
    VERB(&s.d, grpc_stream_finish(take_ptr(&seen.stream), GRPC_NOT_FOUND, "100% gone\n"));
    expect(r, GRPC_NOT_FOUND, "100% gone\n", SPAN_NONE);
    assert_false(r->ends_with_head);
    down(&s);
}

static void test_a_paused_call_gets_no_message(void **state)
{
    static struct stage s;
    struct reply *r;

    (void)state;
    up(&s, NULL);
    seen.pauses = true;
    r = call(&s, "/t.S/Talk", "", SPAN("\0\0\0\0\1a\0\0\0\0\1b\0\0\0\0\1c\0\0\0\0"), false);
    caller_send(r, SPAN("\1d"), true);
    assert_true(desk_wait(&s.d, has_log, "a,"));
    side_idle(s.d.loop, 10);
    assert_string_equal(seen.log, "a,");
    VERB(&s.d, grpc_stream_pause(seen.stream, false));
    VERB(&s.d, grpc_stream_pause(seen.stream, true));
    side_idle(s.d.loop, 10);
    assert_string_equal(seen.log, "a,");
    VERB(&s.d, grpc_stream_pause(seen.stream, false));
    side_idle(s.d.loop, 10);
    assert_string_equal(seen.log, "a,b,");
    seen.pauses = false;
    VERB(&s.d, grpc_stream_pause(seen.stream, false));
    assert_true(desk_wait(&s.d, has_log, "."));
    assert_string_equal(seen.log, "a,b,c,d,.");
    seen.pauses = true;
    VERB(&s.d, grpc_stream_finish(take_ptr(&seen.stream), GRPC_OK, ""));
    expect(r, GRPC_OK, "", SPAN_NONE);
    down(&s);
    /* it may end while messages are held */
    up(&s, NULL);
    seen.pauses = true;
    r = call(&s, "/t.S/Talk", "", SPAN("\0\0\0\0\1a\0\0\0\0\1b"), true);
    assert_true(desk_wait(&s.d, has_log, "a,"));
    VERB(&s.d, grpc_stream_pause(seen.stream, false));
    VERB(&s.d, grpc_stream_finish(take_ptr(&seen.stream), GRPC_OK, ""));
    expect(r, GRPC_OK, "", SPAN_NONE);
    assert_string_equal(seen.log, "a,");
    down(&s);
}

static bool has_3_mb(void *ctx)
{
    return ((struct reply *)ctx)->body.n == 3000 * 1005;
}

static void test_replies_wait_for_a_slow_client(void **state)
{
    static struct stage s;
    struct reply *r;

    (void)state;
    up(&s, NULL);
    seen.left = 3000;
    r = call(&s, "/t.S/Flow", "", SPAN_NONE, true);
    r->holds = true;
    side_idle(s.d.loop, 30);
    assert_in_range(seen.left, 1000, 2999);
    r->holds = false;
    h2_consume(r->stream, r->body.n);
    caller_flush(&s.c);
    assert_true(desk_wait(&s.d, has_3_mb, r));
    assert_true(desk_wait(&s.d, is_done, r));
    assert_true(span_is(http_head_get(&r->trailers, "grpc-status"), "0"));
    down(&s);
}

static void test_a_silent_stream_is_left_alone(void **state)
{
    const struct http_server_config config = { .idle_timeout_ms = 50, .stall_timeout_ms = 50 };
    static struct stage s;
    struct reply *r;

    (void)state;
    up(&s, &config);
    seen.echoes = true;
    r = call(&s, "/t.S/Talk", "", SPAN("\0\0\0\0\1a"), false);
    assert_true(desk_wait(&s.d, has_log, "a,"));
    side_idle(s.d.loop, 250);
    caller_send(r, SPAN("\0\0\0\0\1b"), true);
    expect(r, GRPC_OK, "", SPAN("\0\0\0\0\1a\0\0\0\0\1b"));
    down(&s);
}

/* Not what clients do, but nothing breaks: trailers travel behind chunks. */
static void test_a_call_over_http1(void **state)
{
    struct side client;
    struct desk d;

    (void)state;
    desk_open(&d, NULL);
    d.serve = serve;
    seen = (struct seen){ .desk = &d, .echoes = true };
    desk_connect(&d, &client);
    conn_write(client.conn,
               SPAN("POST /t.S/Talk HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc\r\n"
                    "content-length: 6\r\n\r\n\0\0\0\0\1a"));
    desk_expect_part(&client, "transfer-encoding: chunked");
    side_idle(d.loop, 10);
    assert_true(span_ends(buf_span(&client.in), "0\r\ngrpc-status: 0\r\n\r\n"));
    side_done(&client);
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_calls_table),
        cmocka_unit_test(test_bad_calls),
        cmocka_unit_test(test_a_deadline_ends_the_call),
        cmocka_unit_test(test_a_cancelled_call_is_told_once),
        cmocka_unit_test(test_a_call_may_end_in_the_middle_of_its_messages),
        cmocka_unit_test(test_a_head_may_come_before_messages),
        cmocka_unit_test(test_a_paused_call_gets_no_message),
        cmocka_unit_test(test_replies_wait_for_a_slow_client),
        cmocka_unit_test(test_a_silent_stream_is_left_alone),
        cmocka_unit_test(test_a_call_over_http1),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
