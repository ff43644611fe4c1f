#include "http/range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* "0+10 90+10" for a list, or the verdict's word. */
static void describe(struct buf *out, struct span header, uint64_t size,
                     enum http_range_rules rules)
{
    static const char *const words[] = { "whole", "", "416", "malformed" };
    struct http_ranges list = { 0 };
    enum http_range_verdict v = http_range_parse(header, size, rules, &list);
    struct err e;

    assert_int_equal(buf_add(out, span_cstr(words[v]), &e), 0);
    assert_true((v == HTTP_RANGE_PARTIAL) == (list.n != 0));
    for (size_t i = 0; i < list.n; i++) {
        assert_true(list.v[i].length > 0 && list.v[i].start + list.v[i].length <= size);
        assert_int_equal(buf_addf(out, &e, "%s%llu+%llu", i ? " " : "",
                                  (unsigned long long)list.v[i].start,
                                  (unsigned long long)list.v[i].length),
                         0);
    }
}

static void test_parse(void **state)
{
    static const struct row {
        const char *header;
        uint64_t size;
        const char *go, *starlette;
    } rows[] = {
        { NULL, 100, "whole", "whole" },
        { "", 100, "whole", "malformed" },
        { "bytes=0-9", 100, "0+10", "0+10" },
        { "bytes=0-0", 100, "0+1", "0+1" },
        { "bytes=90-", 100, "90+10", "90+10" },
        { "bytes=90-1000", 100, "90+10", "90+10" },
        { "bytes=-10", 100, "90+10", "90+10" },
        { "bytes=-1000", 100, "0+100", "0+100" },
        { "bytes= 0 - 9 ", 100, "0+10", "0+10" },
        { "bytes=0-9,20-29", 100, "0+10 20+10", "0+10 20+10" },
        { "bytes=20-29,0-9", 100, "20+10 0+10", "0+10 20+10" },
        { "bytes=0-9,5-14", 100, "0+10 5+10", "0+15" },
        { "bytes=0-9,10-19", 100, "0+10 10+10", "0+20" },
        { "bytes=0-9,,", 100, "0+10", "0+10" },
        { "bytes=0-9,200-300", 100, "0+10", "416" },
        { "bytes=0-99,0-99", 100, "whole", "0+100" },
        { "bytes=100-", 100, "416", "416" },
        { "bytes=100-200", 100, "416", "416" },
        { "bytes=-0", 100, "416", "416" },
        { "bytes=0-", 0, "whole", "416" },
        { "bytes=9-0", 100, "malformed", "malformed" },
        { "bytes=a-b", 100, "malformed", "malformed" },
        { "bytes=0-9,x", 100, "malformed", "0+10" },
        { "bytes=5", 100, "malformed", "malformed" },
        { "bytes=-", 100, "malformed", "malformed" },
        { "bytes=--5", 100, "malformed", "malformed" },
        { "bytes=+1-5", 100, "malformed", "malformed" },
        { "bytes=1-99999999999999999999", 100, "malformed", "malformed" },
        { "bytes=", 100, "whole", "malformed" },
        { "bytes", 100, "malformed", "malformed" },
        { "items=0-9", 100, "malformed", "malformed" },
        { "Bytes=0-9", 100, "malformed", "0+10" },
        { " bytes =0-9", 100, "malformed", "0+10" },
    };

    EACH(r, rows) {
        OWN(buf_done) struct buf go = BUF_INIT(4096), starlette = BUF_INIT(4096);

        describe(&go, span_cstr(r->header), r->size, HTTP_RANGE_GO);
        if (r->header && !r->header[0]) { /* an empty header is not an absent one */
            describe(&starlette, span_of(r->header, 0), r->size, HTTP_RANGE_STARLETTE);
        } else {
            describe(&starlette, span_cstr(r->header), r->size, HTTP_RANGE_STARLETTE);
        }
        if (strcmp(buf_cstr(&go), r->go) || strcmp(buf_cstr(&starlette), r->starlette))
            print_error("'%s' of %llu\n", r->header, (unsigned long long)r->size);
        assert_string_equal(buf_cstr(&go), r->go);
        assert_string_equal(buf_cstr(&starlette), r->starlette);
    }
}

static void test_many(void **state)
{
    OWN(buf_done) struct buf header = BUF_INIT(4096);
    struct http_ranges list;
    struct err e;

    assert_int_equal(buf_add(&header, SPAN("bytes="), &e), 0);
    for (int i = 0; i <= HTTP_RANGES_MAX; i++) {
        assert_int_equal(http_range_parse(buf_span(&header), 1000, HTTP_RANGE_GO, &list),
                         i ? HTTP_RANGE_PARTIAL : HTTP_RANGE_WHOLE);
        assert_int_equal(buf_addf(&header, &e, "%d-%d,", i * 3, i * 3), 0);
    }
    assert_int_equal(list.n, HTTP_RANGES_MAX);
    assert_int_equal(http_range_parse(buf_span(&header), 1000, HTTP_RANGE_GO, &list),
                     HTTP_RANGE_WHOLE);
    assert_int_equal(http_range_parse(buf_span(&header), 1000, HTTP_RANGE_STARLETTE, &list),
                     HTTP_RANGE_WHOLE);
}

static void test_write(void **state)
{
    static const struct http_byteranges b = { "B", "text/plain", 100 };
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    struct err e;

    assert_int_equal(http_range_write(&out, (struct http_range){ 10, 5 }, 100, &e), 0);
    assert_string_equal(buf_cstr(&out), "bytes 10-14/100");
    buf_clear(&out);
    assert_int_equal(http_range_write_none(&out, 7, &e), 0);
    assert_string_equal(buf_cstr(&out), "bytes */7");
    buf_clear(&out);
    assert_int_equal(http_range_write_part(&out, &b, (struct http_range){ 0, 1 }, &e), 0);
    assert_int_equal(buf_add(&out, SPAN("x\r\n"), &e), 0);
    assert_int_equal(http_range_write_end(&out, &b, &e), 0);
    assert_string_equal(
        buf_cstr(&out),
        "--B\r\ncontent-type: text/plain\r\ncontent-range: bytes 0-0/100\r\n\r\nx\r\n--B--\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
