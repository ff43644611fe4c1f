#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char pod[] =
    "{ \"kind\": \"Pod\", \"metadata\": {\"name\": \"a\\u00e9\\n\", \"labels\": {}},\n"
    "  \"spec\": {\"n\": [1, -2.50, 1E5, true, false, null, \"x\\/y\"]}, \"kind\": \"Last\" }";

static void test_walk(void **state)
{
    struct json_doc *doc = NULL;
    const struct json *root, *n;
    struct err e;
    int64_t i;
    double d;

    assert_int_equal(json_parse(SPAN(pod), NULL, &doc, &e), 0);
    root = json_doc_root(doc);
    assert_int_equal(json_count(root), 4);
    assert_string_equal(json_cstr(json_get(root, "kind")), "Last");
    assert_string_equal(json_cstr(json_get(json_get(root, "metadata"), "name")), "a\xc3\xa9\n");
    assert_null(json_get(json_get(root, "absent"), "name"));
    n = json_get(json_get(root, "spec"), "n");
    assert_int_equal(json_count(n), 7);
    assert_true(json_i64(json_at(n, 0), &i) && i == 1);
    assert_false(json_i64(json_at(n, 1), &i));
    assert_true(json_double(json_at(n, 1), &d) && d == -2.5);
    assert_null(json_at(n, 7));
    assert_true(
        span_is(json_doc_bytes(doc),
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\xc3\xa9\\n\",\"labels\":{}},"
                "\"spec\":{\"n\":[1,-2.50,1E5,true,false,null,\"x/y\"]},\"kind\":\"Last\"}"));
    json_doc_unref(doc);
}

int main(void)
{
    const struct CMUnitTest list[] = { cmocka_unit_test(test_walk) };

    return cmocka_run_group_tests(list, NULL, NULL);
}
