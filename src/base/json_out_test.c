#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void build(struct json_out *o, const struct json *tree)
{
    json_out_object_begin(o);
    json_out_key(o, "stdout"), json_out_str(o, SPAN("a\"\n\xff\xe2\x82z"));
    json_out_key(o, "exit_code"), json_out_i64(o, -9);
    json_out_key(o, "big"), json_out_u64(o, UINT64_MAX);
    json_out_key(o, "small"), json_out_i64(o, INT64_MIN);
    json_out_key(o, "time"), json_out_double(o, 1731744000.25);
    json_out_key(o, "list"), json_out_array_begin(o);
    json_out_bool(o, true);
    json_out_bool(o, false);
    json_out_array_begin(o), json_out_array_end(o);
    json_out_object_begin(o), json_out_object_end(o);
    json_out_cstr(o, "<&>");
    json_out_cstr(o, NULL);
    json_out_array_end(o);
    json_out_key_span(o, SPAN("k\0")), json_out_raw(o, SPAN("[1,2]"));
    json_out_key(o, "tree"), json_out_value(o, tree);
    json_out_key(o, "none"), json_out_value(o, NULL);
    json_out_object_end(o);
}

/* clang-format off */
static const char built[] =
    "{\"stdout\":\"a\\\"\\n\xef\xbf\xbd\xef\xbf\xbdz\",\"exit_code\":-9,\"big\":18446744073709551615,"
    "\"small\":-9223372036854775808,\"time\":1731744000.25,\"list\":[true,false,[],{},\"<&>\",null],"
    "\"k\\u0000\":[1,2],\"tree\":{\"x\":[\"<\"]},\"none\":null}";
/* clang-format on */

static void test_build(void **state)
{
    OWN(json_doc_done) struct json_doc *doc = NULL, *again = NULL;
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    struct json_out o;
    struct err e;

    assert_int_equal(json_parse(SPAN("{\"x\":[\"<\"]}"), NULL, &doc, &e), 0);
    json_out_init(&o, &out, 0);
    build(&o, json_doc_root(doc));
    assert_int_equal(json_out_end(&o, &e), 0);
    assert_string_equal(buf_cstr(&out), built);
    assert_int_equal(json_parse(buf_span(&out), NULL, &again, &e), 0);
    assert_true(span_eq(json_doc_bytes(again), buf_span(&out)));
}

static void test_html(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    struct json_out o;
    struct err e;

    json_out_init(&o, &out, JSON_HTML_SAFE | JSON_PRETTY);
    json_out_array_begin(&o);
    json_out_cstr(&o, "a<b>&c\xe2\x80\xa8");
    json_out_array_end(&o);
    assert_int_equal(json_out_end(&o, &e), 0);
    assert_string_equal(buf_cstr(&out), "[\"a\\u003cb\\u003e\\u0026c\\u2028\"]");
}

/* The first failure sticks, wherever the ceiling falls, and leaves the buf as it was. */
static void test_every_ceiling(void **state)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_out o;
    char message[64];
    struct err e;

    assert_int_equal(json_parse(SPAN("{\"x\":[\"<\"]}"), NULL, &doc, &e), 0);
    for (size_t max = 4; max <= 4 + sizeof built; max++) {
        OWN(buf_done) struct buf out = BUF_INIT(max);
        bool fits = max >= 4 + sizeof built - 1;

        assert_int_equal(buf_add(&out, SPAN("HEAD"), &e), 0);
        json_out_init(&o, &out, 0);
        build(&o, json_doc_root(doc));
        assert_int_equal(json_out_end(&o, &e), fits ? 0 : -1);
        assert_int_equal(out.n, fits ? 4 + sizeof built - 1 : 4);
        if (!fits)
            assert_int_equal(e.code, ERR_LIMIT);
    }
    (void)snprintf(message, sizeof message, "JSON text of more than %zu bytes", sizeof built - 2);
    assert_string_equal(e.msg, message);
}

static void test_not_finite(void **state)
{
    static const double bad[] = { NAN, INFINITY, -INFINITY };

    EACH(d, bad) {
        OWN(buf_done) struct buf out = BUF_INIT(4096);
        struct json_out o;
        struct err e = { 0 };

        json_out_init(&o, &out, 0);
        json_out_array_begin(&o);
        json_out_double(&o, *d);
        json_out_cstr(&o, "after");
        json_out_array_end(&o);
        assert_int_equal(json_out_end(&o, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_int_equal(out.n, 0);
    }
}

static void test_depth(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    struct json_out o;
    struct err e;

    json_out_init(&o, &out, 0);
    for (int i = 0; i < JSON_DEPTH_MAX / 2; i++) {
        json_out_array_begin(&o);
        json_out_object_begin(&o);
        json_out_key(&o, "a");
    }
    json_out_null(&o);
    for (int i = 0; i < JSON_DEPTH_MAX / 2; i++) {
        json_out_object_end(&o);
        json_out_array_end(&o);
    }
    assert_int_equal(json_out_end(&o, &e), 0);
    assert_int_equal(out.n, 4 + JSON_DEPTH_MAX / 2 * strlen("[{\"a\":}]"));
}

int main(void)
{
    const struct CMUnitTest list[] = { cmocka_unit_test(test_build), cmocka_unit_test(test_html),
                                       cmocka_unit_test(test_every_ceiling),
                                       cmocka_unit_test(test_not_finite),
                                       cmocka_unit_test(test_depth) };

    return cmocka_run_group_tests(list, NULL, NULL);
}
