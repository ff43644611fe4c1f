#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct json_doc *must_parse(const char *text)
{
    struct json_doc *doc = NULL;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0)
        fail_msg("'%s': %s", text, e.msg);
    return doc;
}

static void test_members(void **state)
{
    OWN(json_doc_done)
    struct json_doc *doc = must_parse("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\\u00e9\\n\"},"
                                      "\"\":0,\"kind\":\"Last\",\"a\\u0000b\":1}");
    const struct json *root = json_doc_root(doc);

    assert_int_equal(json_type(root), JSON_OBJECT);
    assert_int_equal(json_count(root), 5);
    assert_string_equal(json_cstr(json_get(root, "kind")), "Last");
    assert_string_equal(json_cstr(json_get(json_get(root, "metadata"), "name")), "a\xc3\xa9\n");
    assert_int_equal(json_type(json_get(root, "")), JSON_NUMBER);
    assert_null(json_get(root, "a"));
    assert_null(json_get(root, "kinds"));
    assert_null(json_get(root, "Kind"));
    assert_int_equal(json_type(json_get_span(root, SPAN("a\0b"))), JSON_NUMBER);
    assert_null(json_get(json_get(root, "absent"), "name"));
    assert_null(json_get(json_get(root, "kind"), "name"));
    assert_null(json_at(root, 0));
}

static void test_unique_answers_too(void **state)
{
    const struct json_limits refuse = { .flags = JSON_REFUSE_DUPLICATES };
    struct json_doc *doc = NULL;
    struct err e;

    assert_int_equal(json_parse(SPAN("{\"a\":1,\"b\":[true],\"c\":3}"), &refuse, &doc, &e), 0);
    assert_int_equal(json_type(json_get(json_doc_root(doc), "b")), JSON_ARRAY);
    assert_int_equal(json_type(json_get(json_doc_root(doc), "c")), JSON_NUMBER);
    assert_null(json_get(json_doc_root(doc), "d"));
    json_doc_unref(doc);
}

static void test_elements(void **state)
{
    OWN(json_doc_done) struct json_doc *doc = must_parse("[1,[2,[]],{\"a\":{}},\"x\",null]");
    static const enum json_type want[] = { JSON_NUMBER, JSON_ARRAY, JSON_OBJECT, JSON_STRING,
                                           JSON_NULL };
    const struct json *root = json_doc_root(doc);
    size_t n = 0;

    JSON_EACH(item, root)
    {
        assert_true(n < LEN(want));
        assert_ptr_equal(json_at(root, n), item);
        assert_int_equal(json_type(item), want[n++]);
    }
    assert_int_equal(n, LEN(want));
    assert_null(json_at(root, n));
    assert_null(json_at(json_at(root, 3), 0));
    assert_null(json_get(root, "a"));
    JSON_EACH(item, json_at(root, 2))
    { /* an object has no elements */
        fail_msg("an element of an object: %s", json_type_name(item));
    }
    JSON_EACH(item, (const struct json *)NULL)
    {
        fail_msg("an element of nothing: %s", json_type_name(item));
    }
}

static void test_member_walk(void **state)
{
    OWN(json_doc_done) struct json_doc *doc = must_parse("{\"a\":[1,2],\"b\":{\"c\":3},\"d\":4}");
    const struct json *root = json_doc_root(doc);
    char names[8] = "";
    size_t n = 0;

    JSON_MEMBERS(name, value, root)
    {
        assert_ptr_equal(json_get_span(root, json_str(name)), value);
        names[n++] = json_cstr(name)[0];
    }
    assert_string_equal(names, "abd");
    JSON_MEMBERS(name, value, json_get(root, "a"))
    { /* an array has no members */
        fail_msg("a member of an array: %s", json_type_name(name));
    }
}

static void test_nothing(void **state)
{
    int64_t i = 7;
    uint64_t u = 7;
    double d = 7;
    bool b = true;

    assert_int_equal(json_type(NULL), JSON_NONE);
    assert_string_equal(json_type_name(NULL), "nothing");
    assert_false(json_is_null(NULL));
    assert_false(json_bool(NULL, &b) || json_i64(NULL, &i) || json_u64(NULL, &u) ||
                 json_double(NULL, &d));
    assert_true(b && i == 7 && u == 7 && d == 7);
    assert_null(json_str(NULL).p);
    assert_null(json_cstr(NULL));
    assert_null(json_number(NULL).p);
    assert_int_equal(json_count(NULL), 0);
    assert_null(json_first(NULL));
    assert_null(json_doc_root(NULL));
    assert_null(json_doc_ref(NULL));
    json_doc_unref(NULL);
}

static void test_strings(void **state)
{
    OWN(json_doc_done)
    struct json_doc *doc = must_parse("[\"\",\"a\\u0000b\",\"x\\ty\",5,\"\\ud83d\\ude00\\/\"]");
    const struct json *root = json_doc_root(doc);

    assert_non_null(json_str(json_at(root, 0)).p);
    assert_string_equal(json_cstr(json_at(root, 0)), "");
    assert_true(span_eq(json_str(json_at(root, 1)), SPAN("a\0b")));
    assert_null(json_cstr(json_at(root, 1)));
    assert_string_equal(json_cstr(json_at(root, 2)), "x\ty");
    assert_null(json_str(json_at(root, 3)).p);
    assert_string_equal(json_cstr(json_at(root, 4)), "\xf0\x9f\x98\x80/");
}

static void test_types(void **state)
{
    OWN(json_doc_done) struct json_doc *doc = must_parse("[null,true,false,0,\"\",[],{}]");
    static const char *const names[] = { "null",   "boolean", "boolean", "number",
                                         "string", "array",   "object" };
    const struct json *root = json_doc_root(doc);
    bool b = false;

    for (size_t i = 0; i < LEN(names); i++)
        assert_string_equal(json_type_name(json_at(root, i)), names[i]);
    assert_true(json_is_null(json_at(root, 0)));
    assert_true(json_bool(json_at(root, 1), &b) && b);
    assert_true(json_bool(json_at(root, 2), &b) && !b);
    assert_false(json_bool(json_at(root, 3), &b));
}

/* clang-format off */
static const struct number_row {
    const char *text;
    bool is_i64; int64_t i;
    bool is_u64; uint64_t u;
    bool is_double; double d;
} numbers[] = {
    { "0",                    true,  0,         true,  0,          true, 0 },
    { "-0",                   true,  0,         false, 0,          true, 0 },
    { "42",                   true,  42,        true,  42,         true, 42 },
    { "-1",                   true,  -1,        false, 0,          true, -1 },
    { "9223372036854775807",  true,  INT64_MAX, true,  INT64_MAX,  true, 9223372036854775807.0 },
    { "9223372036854775808",  false, 0,         true,  1ull << 63, true, 9223372036854775808.0 },
    { "-9223372036854775808", true,  INT64_MIN, false, 0,          true, -9223372036854775808.0 },
    { "-9223372036854775809", false, 0,         false, 0,          true, -9223372036854775808.0 },
    { "18446744073709551615", false, 0,         true,  UINT64_MAX, true, 18446744073709551615.0 },
    { "18446744073709551616", false, 0,         false, 0,          true, 18446744073709551616.0 },
    { "1.0",                  false, 0,         false, 0,          true, 1 },
    { "1e3",                  false, 0,         false, 0,          true, 1000 },
    { "5.25",                 false, 0,         false, 0,          true, 5.25 },
    { "1e400",                false, 0,         false, 0,          false, 0 },
    { "-1e400",               false, 0,         false, 0,          false, 0 },
    { "1e-400",               false, 0,         false, 0,          true, 0 },
};
/* clang-format on */

static void test_numbers(void **state)
{
    EACH(r, numbers) {
        OWN(json_doc_done) struct json_doc *doc = must_parse(r->text);
        const struct json *v = json_doc_root(doc);
        uint64_t u = 1;
        int64_t i = 1;
        double d = 1;

        if (json_i64(v, &i) != r->is_i64 || (r->is_i64 && i != r->i))
            fail_msg("%s: i64 %lld", r->text, (long long)i);
        if (json_u64(v, &u) != r->is_u64 || (r->is_u64 && u != r->u))
            fail_msg("%s: u64 %llu", r->text, (unsigned long long)u);
        if (json_double(v, &d) != r->is_double || (r->is_double && d != r->d))
            fail_msg("%s: double %g", r->text, d);
        assert_true(span_is(json_number(v), r->text));
        assert_true(span_is(json_doc_bytes(doc), r->text));
    }
}

static void test_reference_count(void **state)
{
    struct json_doc *doc = must_parse("[ 1, 2 ]"), *other = json_doc_ref(doc);
    size_t before = json_doc_memory(doc);
    struct span bytes;

    json_doc_unref(doc);
    bytes = json_doc_bytes(other);
    assert_true(span_is(bytes, "[1,2]"));
    assert_ptr_equal(json_doc_bytes(other).p, bytes.p); /* kept, not made again */
    assert_true(json_doc_memory(other) > before);
    json_doc_done(&other);
    assert_null(other);
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(test_members),         cmocka_unit_test(test_unique_answers_too),
        cmocka_unit_test(test_elements),        cmocka_unit_test(test_member_walk),
        cmocka_unit_test(test_nothing),         cmocka_unit_test(test_strings),
        cmocka_unit_test(test_types),           cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_reference_count),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
