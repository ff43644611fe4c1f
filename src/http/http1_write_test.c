#include "http/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_request(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(1024);
    struct http_head h;
    struct err e;

    http_head_init(&h, 1024, 8);
    assert_int_equal(http_head_set_request(&h, SPAN("GET"), SPAN("/x?y"), &e), 0);
    assert_int_equal(http_head_set_authority(&h, SPAN("a:80"), &e), 0);
    assert_int_equal(http_head_add(&h, SPAN("X-Y"), SPAN("z"), &e), 0);
    assert_int_equal(http1_write_request(&out, &h, &e), 0);
    assert_string_equal(buf_cstr(&out), "GET /x?y HTTP/1.1\r\nhost: a:80\r\nx-y: z\r\n\r\n");
    buf_clear(&out);
    assert_int_equal(http_head_add(&h, SPAN("Host"), SPAN("b"), &e), 0);
    assert_int_equal(http1_write_request(&out, &h, &e), 0);
    assert_string_equal(buf_cstr(&out), "GET /x?y HTTP/1.1\r\nx-y: z\r\nhost: b\r\n\r\n");
    http_head_done(&h);
}

static void test_response(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(1024);
    struct http_head h;
    struct err e;

    http_head_init(&h, 1024, 8);
    http_head_set_status(&h, 404);
    assert_int_equal(http_head_add(&h, SPAN("content-length"), SPAN("0"), &e), 0);
    assert_int_equal(http1_write_response(&out, &h, &e), 0);
    assert_string_equal(buf_cstr(&out), "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    buf_clear(&out);
    assert_int_equal(http1_write_status(&out, 299, &e), 0);
    assert_int_equal(http1_write_field_u64(&out, "content-length", UINT64_MAX, &e), 0);
    assert_int_equal(http1_write_field_u64(&out, "age", 0, &e), 0);
    assert_int_equal(http1_write_head_end(&out, &e), 0);
    assert_string_equal(buf_cstr(&out),
                        "HTTP/1.1 299 \r\ncontent-length: 18446744073709551615\r\nage: 0\r\n\r\n");
    assert_string_equal(http1_reason(418), "");
    assert_string_equal(http1_reason(-1), "");
    assert_string_equal(http1_reason(99999), "");
    http_head_done(&h);
}

/* Whatever a tenant puts into a name, value, method or target: it cannot end the line. */
static void test_splitting_is_refused(void **state)
{
    static const struct row {
        struct span method, target, name, value;
        const char *want;
    } rows[] = {
        { BYTES("GET"), BYTES("/"), BYTES("a"), BYTES("b\r\nc: d"),
          "cannot send header 'a': control byte in its value" },
        { BYTES("GET"), BYTES("/"), BYTES("a"), BYTES("b\nc: d"),
          "cannot send header 'a': control byte in its value" },
        { BYTES("GET"), BYTES("/"), BYTES("a"), BYTES("b\0"),
          "cannot send header 'a': control byte in its value" },
        { BYTES("GET"), BYTES("/"), BYTES("a b"), BYTES("c"),
          "cannot send header 'a b': its name is not a token" },
        { BYTES("GET"), BYTES("/"), BYTES(""), BYTES("c"),
          "cannot send header '': its name is not a token" },
        { BYTES("G T"), BYTES("/"), BYTES("a"), BYTES("c"),
          "cannot send a request: its method is not a token" },
        { BYTES("GET"), BYTES("/ HTTP/1.1"), BYTES("a"), BYTES("c"),
          "cannot send a request: blank or control byte in its target" },
        { BYTES("GET"), BYTES("/\r\n"), BYTES("a"), BYTES("c"),
          "cannot send a request: blank or control byte in its target" },
        { BYTES("GET"), BYTES(""), BYTES("a"), BYTES("c"),
          "cannot send a request: blank or control byte in its target" },
    };

    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(1024);
        struct http_head h;
        struct err e;

        http_head_init(&h, 1024, 8);
        assert_int_equal(buf_add(&out, SPAN("kept"), &e), 0);
        assert_int_equal(http_head_set_request(&h, r->method, r->target, &e), 0);
        assert_int_equal(http_head_add(&h, r->name, r->value, &e), 0);
        assert_int_equal(http1_write_request(&out, &h, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(e.msg, r->want);
        assert_string_equal(buf_cstr(&out), "kept");
        http_head_done(&h);
    }
}

/* What was read may be written unseen; what stands behind a field of our own making may not, wherever it came from. */
static void test_only_what_was_read_goes_unseen(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(1024);
    OWN(http1_done) struct http1 p;
    struct http_head h, copy;
    struct span data;
    struct err e;
    size_t used;

    (void)state;
    http1_init(&p, HTTP1_REQUEST, NULL);
    assert_int_equal(
        http1_feed(&p, SPAN("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\n\r\n"), &used, &data, &e),
        HTTP1_HEAD);
    assert_int_equal(p.head.sound, 3);
    http_head_init(&h, 1024, 8);
    http_head_init(&copy, 1024, 8);
    http_head_set_status(&h, 200);
    assert_int_equal(http_head_add_from(&h, &p.head, 1, &e), 0);
    assert_int_equal(http_head_add_from(&h, &p.head, 2, &e), 0);
    assert_int_equal(h.sound, 2);
    assert_int_equal(http_head_add(&h, SPAN("c"), SPAN("3\r\nd: 4"), &e), 0);
    assert_int_equal(http_head_add_from(&h, &p.head, 1, &e), 0);
    assert_int_equal(h.sound, 2);
    assert_int_equal(http_head_copy(&copy, &h, &e), 0);
    assert_int_equal(http_head_remove(&copy, "a"),
                     2); /* the wrong one moves up, and is no better for it */
    assert_int_equal(copy.sound, 1);
    assert_int_equal(http1_write_response(&out, &h, &e), -1);
    assert_int_equal(http1_write_response(&out, &copy, &e), -1);
    assert_int_equal(out.n, 0);
    assert_int_equal(http_head_remove(&copy, "c"), 1);
    assert_int_equal(http1_write_response(&out, &copy, &e), 0);
    assert_string_equal(buf_cstr(&out), "HTTP/1.1 200 OK\r\nb: 2\r\n\r\n");
    http_head_clear(&copy);
    assert_int_equal(copy.sound, 0);
    http_head_done(&h);
    http_head_done(&copy);
}

static void test_chunks(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(64);
    OWN(buf_done) struct buf small = BUF_INIT(6);
    struct http_head trailers;
    struct err e;

    http_head_init(&trailers, 64, 4);
    assert_int_equal(http_head_add(&trailers, SPAN("Sum"), SPAN("1"), &e), 0);
    assert_int_equal(http1_write_chunk(&out, SPAN(""), &e), 0);
    assert_int_equal(http1_write_chunk(&out, SPAN("0123456789abcdefg"), &e), 0);
    assert_int_equal(http1_write_chunk_head(&out, UINT64_MAX, &e), 0);
    assert_int_equal(http1_write_last_chunk(&out, NULL, &e), 0);
    assert_int_equal(http1_write_last_chunk(&out, &trailers, &e), 0);
    assert_string_equal(
        buf_cstr(&out),
        "11\r\n0123456789abcdefg\r\nffffffffffffffff\r\n0\r\n\r\n0\r\nsum: 1\r\n\r\n");
    assert_int_equal(http1_write_chunk(&small, SPAN("abcd"), &e), -1); /* whole or not at all */
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(small.n, 0);
    http_head_done(&trailers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_response),
        cmocka_unit_test(test_splitting_is_refused),
        cmocka_unit_test(test_only_what_was_read_goes_unseen),
        cmocka_unit_test(test_chunks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
