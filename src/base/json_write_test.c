#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* clang-format off */
static const struct write_row {
    const char *name, *text;
    unsigned flags;
    const char *want;
} rows[] = {
    { "blanks go",                " { \"a\" : [ 1 , 2 ] } ",   0,              "{\"a\":[1,2]}" },
    { "number spelling stays",    "[1.50,1E+5,-0,1e-07,12345678901234567890123]", 0,
      "[1.50,1E+5,-0,1e-07,12345678901234567890123]" },
    { "duplicates stay",          "{\"a\":1,\"a\":2}",         0,              "{\"a\":1,\"a\":2}" },
    { "short escapes",            "\"\\u0008\\u000c\\u000A\\u000d\\u0009\\u0022\\u005C\"", 0,
      "\"\\b\\f\\n\\r\\t\\\"\\\\\"" },
    { "other controls",           "\"\\u0000\\u001F\\u001b\"", 0,              "\"\\u0000\\u001f\\u001b\"" },
    { "solidus is not escaped",   "\"\\/\"",                   0,              "\"/\"" },
    { "delete is not escaped",    "\"\x7f\"",                  0,              "\"\x7f\"" },
    { "non-ASCII stays raw",      "\"\\u00e9\\u4e16\\ud83d\\ude00\"", 0,       "\"\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80\"" },
    { "names are escaped",        "{\"a\\\"b\":0}",            0,              "{\"a\\\"b\":0}" },
    { "literals",                 "[null,true,false]",         0,              "[null,true,false]" },
    { "html left alone",          "\"<a&b>\"",                 0,              "\"<a&b>\"" },
    { "html escaped",             "{\"<k>\":\"a&b\"}",         JSON_HTML_SAFE, "{\"\\u003ck\\u003e\":\"a\\u0026b\"}" },
    { "html and line separators", "\"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\"", JSON_HTML_SAFE,
      "\"\xe2\x80\xa7\\u2028\\u2029\xe2\x80\xaa\"" },
    { "html with escapes",        "\"\\n<\\\"\"",              JSON_HTML_SAFE, "\"\\n\\u003c\\\"\"" },
    { "pretty scalar",            "5",                         JSON_PRETTY,    "5" },
    { "pretty empties",           "[[],{}]",                   JSON_PRETTY,    "[\n  [],\n  {}\n]" },
    { "pretty nest",              "{\"a\":[1,{\"b\":null}],\"c\":\"d\"}", JSON_PRETTY,
      "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": \"d\"\n}" },
    { "pretty and html",          "[\"<\"]",                   JSON_PRETTY | JSON_HTML_SAFE, "[\n  \"\\u003c\"\n]" },
    { "16 bytes and more",        "[\"0123456789abcdef\",\"0123456789abcdef0\",\"0123456789abcdef0123456789abcde\"]", 0,
      "[\"0123456789abcdef\",\"0123456789abcdef0\",\"0123456789abcdef0123456789abcde\"]" },
};
/* clang-format on */

static void test_rows(void **state)
{
    EACH(r, rows) {
        OWN(json_doc_done) struct json_doc *doc = NULL;
        OWN(buf_done) struct buf out = BUF_INIT(4096);
        struct err e;

        if (json_parse(span_cstr(r->text), NULL, &doc, &e) < 0)
            fail_msg("%s: %s", r->name, e.msg);
        assert_int_equal(json_write_as(json_doc_root(doc), r->flags, &out, &e), 0);
        if (strcmp(buf_cstr(&out), r->want) != 0)
            fail_msg("%s: '%s', want '%s'", r->name, buf_cstr(&out), r->want);
    }
}

/* At every ceiling: either the whole text, or ERR_LIMIT and the buf as it was. Never a byte more. */
static void test_ceilings(void **state)
{
    EACH(r, rows) {
        OWN(json_doc_done) struct json_doc *doc = NULL;
        size_t want = strlen(r->want);
        struct err e;

        assert_int_equal(json_parse(span_cstr(r->text), NULL, &doc, &e), 0);
        for (size_t max = 3; max <= want + 5; max++) {
            OWN(buf_done) struct buf out = BUF_INIT(max);
            int got;

            assert_int_equal(buf_add(&out, SPAN("pre"), &e), 0);
            got = json_write_as(json_doc_root(doc), r->flags, &out, &e);
            if (got != (max >= want + 3 ? 0 : -1))
                fail_msg("%s: %d at a ceiling of %zu for %zu", r->name, got, max, want + 3);
            assert_int_equal(out.n, got == 0 ? want + 3 : 3);
            assert_memory_equal(out.p, "pre", 3);
            if (got < 0)
                assert_int_equal(e.code, ERR_LIMIT);
        }
    }
}

static void test_subtree(void **state)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(buf_done) struct buf out = BUF_INIT(4096);
    const struct json *root;
    struct err e;

    assert_int_equal(json_parse(SPAN("{\"spec\":{\"a\":[1,{}]},\"status\":\"x\"}"), NULL, &doc, &e),
                     0);
    root = json_doc_root(doc);
    assert_int_equal(json_write(json_get(root, "spec"), &out, &e), 0);
    assert_int_equal(json_write(json_get(root, "status"), &out, &e), 0);
    assert_int_equal(json_write(json_get(json_get(root, "spec"), "a"), &out, &e), 0);
    assert_string_equal(buf_cstr(&out), "{\"a\":[1,{}]}\"x\"[1,{}]");
}

int main(void)
{
    const struct CMUnitTest list[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_ceilings),
                                       cmocka_unit_test(test_subtree) };

    return cmocka_run_group_tests(list, NULL, NULL);
}
