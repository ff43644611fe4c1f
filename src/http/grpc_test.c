#include "http/grpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static void test_timeouts(void **state)
{
    static const struct row {
        const char *text;
        bool is_ok;
        uint64_t ms;
    } rows[] = {
        { "100m", true, 100 },
        { "1S", true, 1000 },
        { "2M", true, 120000 },
        { "1H", true, 3600000 },
        { "0m", true, 0 },
        { "0n", true, 0 },
        { "1n", true, 1 },
        { "1u", true, 1 },
        { "1000000n", true, 1 },
        { "1000001n", true, 2 },
        { "1500u", true, 2 },
        { "99999999H", true, 99999999ull * 3600000 },
        { "00000001S", true, 1000 },
        { "100000000m", false, 0 },
        { "", false, 0 },
        { "m", false, 0 },
        { "5", false, 0 },
        { "5s", false, 0 },
        { "-5m", false, 0 },
        { "+5m", false, 0 },
        { "1.5S", false, 0 },
        { " 5m", false, 0 },
        { "5m ", false, 0 },
        { "5 m", false, 0 },
    };

    (void)state;
    EACH(r, rows) {
        uint64_t ms = 0;

        if (grpc_timeout_parse(span_cstr(r->text), &ms) != r->is_ok || ms != r->ms)
            fail_msg("'%s': %llu ms", r->text, (unsigned long long)ms);
    }
}

static void test_timeout_format(void **state)
{
    static const struct row {
        uint64_t ms;
        const char *text;
    } rows[] = {
        { 1, "1m" },
        { 99999999, "99999999m" },
        { 100000000, "100000S" },
        { 100000001, "100001S" },
        { 99999999000, "99999999S" },
        { 99999999001, "1666667M" },
        { UINT64_MAX, "99999999H" },
    };
    char text[GRPC_TIMEOUT_TEXT_BYTES];

    (void)state;
    EACH(r, rows)
        assert_string_equal(grpc_timeout_format(text, r->ms), r->text);
}

static void test_messages(void **state)
{
    static const struct row {
        struct span text;
        const char *wire;
    } rows[] = {
        { BYTES("plain text, with ~ and !"), "plain text, with ~ and !" },
        { BYTES("100%"), "100%25" },
        { BYTES("a\nb\r"), "a%0Ab%0D" },
        { BYTES("gr\xc3\xbc\xc3\x9f"), "gr%C3%BC%C3%9F" },
        { BYTES("\0\x7f"), "%00%7F" },
        { BYTES(""), "" },
    };
    struct err e;

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf wire = BUF_INIT(100), back = BUF_INIT(100);

        assert_int_equal(grpc_message_encode(r->text, &wire, &e), 0);
        assert_string_equal(buf_cstr(&wire), r->wire);
        assert_int_equal(grpc_message_decode(buf_span(&wire), &back, &e), 0);
        assert_true(span_eq(buf_span(&back), r->text));
    }
    {
        OWN(buf_done) struct buf back = BUF_INIT(100), tiny = BUF_INIT(2);

        assert_int_equal(grpc_message_decode(SPAN("50% of %4"), &back, &e), 0);
        assert_string_equal(buf_cstr(&back), "50% of %4");
        assert_int_equal(grpc_message_encode(SPAN("\n"), &tiny, &e), -1);
        assert_int_equal(e.code, ERR_LIMIT);
    }
}

static void test_content_types(void **state)
{
    static const struct row {
        const char *text;
        bool is_ours;
    } rows[] = {
        { "application/grpc", true },
        { "application/grpc+proto", true },
        { "Application/GRPC", true },
        { "application/grpc; charset=utf-8", true },
        { "application/grpc+json", false },
        { "application/grpc-web", false },
        { "application/grpcx", false },
        { "application/json", false },
        { "", false },
    };

    (void)state;
    EACH(r, rows) {
        if (grpc_content_type_is_ours(span_cstr(r->text)) != r->is_ours)
            fail_msg("'%s'", r->text);
    }
}

static void test_calls(void **state)
{
    static const struct row {
        const char *name, *method, *path, *field, *value;
        enum grpc_status want;
        const char *text; /* of the error, or service and method */
    } rows[] = {
        { "good", "POST", "/p.v1.S/M", NULL, NULL, GRPC_OK, "p.v1.S M" },
        { "identity", "POST", "/p.v1.S/M", "grpc-encoding", "identity", GRPC_OK, "p.v1.S M" },
        { "deadline", "POST", "/p.v1.S/M", "grpc-timeout", "250m", GRPC_OK, "p.v1.S M 250" },
        { "bad deadline", "POST", "/p.v1.S/M", "grpc-timeout", "soon", GRPC_INTERNAL,
          "malformed grpc-timeout 'soon'" },
        { "gzip", "POST", "/p.v1.S/M", "grpc-encoding", "gzip", GRPC_UNIMPLEMENTED,
          "grpc-encoding 'gzip' is not supported" },
        { "GET", "GET", "/p.v1.S/M", NULL, NULL, GRPC_INTERNAL, "a call is a POST, not 'GET'" },
        { "no method", "POST", "/p.v1.S", NULL, NULL, GRPC_UNIMPLEMENTED,
          "malformed method name '/p.v1.S'" },
        { "empty method", "POST", "/p.v1.S/", NULL, NULL, GRPC_UNIMPLEMENTED,
          "malformed method name '/p.v1.S/'" },
        { "empty service", "POST", "//M", NULL, NULL, GRPC_UNIMPLEMENTED,
          "malformed method name '//M'" },
        { "three parts", "POST", "/a/b/c", NULL, NULL, GRPC_UNIMPLEMENTED,
          "malformed method name '/a/b/c'" },
    };

    (void)state;
    EACH(r, rows) {
        OWN(http_head_done) struct http_head head;
        struct grpc_call call = { 0 };
        struct err e = { 0 };
        char text[600];

        http_head_init(&head, 1024, 8);
        assert_int_equal(http_head_set_request(&head, span_cstr(r->method), span_cstr(r->path), &e),
                         0);
        if (r->field)
            assert_int_equal(http_head_add(&head, span_cstr(r->field), span_cstr(r->value), &e), 0);
        if (grpc_call_read(&head, &call, &e) == 0) {
            int n = snprintf(text, sizeof text, "%.*s %.*s", SPAN_ARG(call.service),
                             SPAN_ARG(call.method));

            if (call.has_timeout)
                (void)snprintf(text + n, sizeof text - (size_t)n, " %d", (int)call.timeout_ms);
        } else {
            (void)snprintf(text, sizeof text, "%s", e.msg);
        }
        assert_string_equal(text, r->text);
        assert_int_equal(grpc_status_of(e.code), r->want);
    }
}

static void test_ends_of_calls(void **state)
{
    static const struct row {
        const char *name;
        int http;
        const char *status, *message;
        enum grpc_status want;
        enum err_code code;
        const char *text;
    } rows[] = {
        { "ok", 0, "0", NULL, GRPC_OK, ERR_NONE, "" },
        { "ok, only a head", 200, "0", NULL, GRPC_OK, ERR_NONE, "" },
        { "not found", 0, "5", "no%20such%0A", GRPC_NOT_FOUND, ERR_NOT_FOUND, "no such\n" },
        { "without text", 0, "16", NULL, GRPC_UNAUTHENTICATED, ERR_UNAUTHORIZED,
          "UNAUTHENTICATED" },
        { "a number nobody assigned", 0, "99", NULL, (enum grpc_status)99, ERR_INTERNAL,
          "UNKNOWN" },
        { "no number", 0, "x", NULL, GRPC_UNKNOWN, ERR_INTERNAL, "UNKNOWN" },
        { "no status in trailers", 0, NULL, NULL, GRPC_UNKNOWN, ERR_INTERNAL, "UNKNOWN" },
        { "no status in a head", 200, NULL, NULL, GRPC_UNKNOWN, ERR_INTERNAL, "UNKNOWN" },
        { "a proxy says 503", 503, NULL, NULL, GRPC_UNAVAILABLE, ERR_UNAVAILABLE, "UNAVAILABLE" },
        { "a proxy says 404", 404, NULL, NULL, GRPC_UNIMPLEMENTED, ERR_UNSUPPORTED,
          "UNIMPLEMENTED" },
    };

    (void)state;
    EACH(r, rows) {
        OWN(http_head_done) struct http_head head;
        OWN(buf_done) struct buf message = BUF_INIT(100);
        struct err e = { 0 };

        http_head_init(&head, 1024, 8);
        if (r->http)
            http_head_set_status(&head, r->http);
        if (r->status)
            assert_int_equal(http_head_add(&head, SPAN("grpc-status"), span_cstr(r->status), &e),
                             0);
        if (r->message)
            assert_int_equal(http_head_add(&head, SPAN("grpc-message"), span_cstr(r->message), &e),
                             0);
        if (grpc_status_read(&head, &message) != r->want)
            fail_msg("%s: %d", r->name, grpc_status_read(&head, &message));
        assert_int_equal(grpc_status_err(&head, &e), r->want == GRPC_OK ? 0 : -1);
        assert_int_equal(e.code, r->code);
        assert_string_equal(e.msg, r->text);
    }
}

static void test_heads(void **state)
{
    OWN(http_head_done) struct http_head head;
    OWN(buf_done) struct buf longer = BUF_INIT(8192), back = BUF_INIT(8192);
    struct err e;

    (void)state;
    http_head_init(&head, 8192, 16);
    assert_int_equal(grpc_trailers_only(&head, GRPC_NOT_FOUND, SPAN("50% gone"), &e), 0);
    assert_int_equal(head.status, 200);
    assert_true(span_is(http_head_get(&head, "content-type"), "application/grpc"));
    assert_true(span_is(http_head_get(&head, "grpc-status"), "5"));
    assert_true(span_is(http_head_get(&head, "grpc-message"), "50%25 gone"));
    assert_int_equal(grpc_trailers(&head, GRPC_OK, SPAN_NONE, &e), 0);
    assert_int_equal(http_head_count(&head), 1);
    assert_int_equal(head.status, 0);
    assert_true(span_is(http_head_get(&head, "grpc-status"), "0"));
    assert_int_equal(grpc_trailers(&head, GRPC_UNAUTHENTICATED, SPAN_NONE, &e), 0);
    assert_true(span_is(http_head_get(&head, "grpc-status"), "16"));
    /* A long message is cut between characters. */
    for (int i = 0; i < 600; i++)
        assert_int_equal(buf_addf(&longer, &e, "%s", i ? "\xc3\xbc" : "x"), 0);
    assert_int_equal(grpc_trailers(&head, GRPC_INTERNAL, buf_span(&longer), &e), 0);
    assert_int_equal(grpc_status_read(&head, &back), GRPC_INTERNAL);
    assert_int_equal(back.n, GRPC_MESSAGE_TEXT_BYTES - 1);
    assert_int_equal(grpc_request_head(&head, SPAN("box:1"), SPAN("/a.B/C"), 1500, &e), 0);
    assert_true(span_is(http_head_get(&head, "grpc-timeout"), "1500m"));
    assert_true(span_is(http_head_get(&head, "te"), "trailers"));
    assert_true(grpc_is_call(&head));
    assert_int_equal(grpc_request_head(&head, SPAN("box:1"), SPAN("/a.B/C"), 0, &e), 0);
    assert_null(http_head_get(&head, "grpc-timeout").p);
}

static void test_statuses(void **state)
{
    (void)state;
    for (int i = 0; i < GRPC_STATUS_COUNT; i++)
        assert_non_null(grpc_status_name((enum grpc_status)i));
    assert_string_equal(grpc_status_name((enum grpc_status)4711), "UNKNOWN");
    assert_string_equal(grpc_status_name((enum grpc_status) - 1), "UNKNOWN");
    for (int c = 0; c < ERR_CODE_COUNT; c++)
        assert_true((unsigned)grpc_status_of((enum err_code)c) < GRPC_STATUS_COUNT);
    assert_int_equal(grpc_status_of_reset(7), GRPC_UNAVAILABLE);
    assert_int_equal(grpc_status_of_reset(8), GRPC_CANCELLED);
    assert_int_equal(grpc_status_of_reset(11), GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(grpc_status_of_reset(0), GRPC_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_timeouts), cmocka_unit_test(test_timeout_format),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_content_types),
        cmocka_unit_test(test_calls),    cmocka_unit_test(test_ends_of_calls),
        cmocka_unit_test(test_heads),    cmocka_unit_test(test_statuses),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
