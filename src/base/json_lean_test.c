#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct json_doc *parse(const char *text)
{
    struct json_doc *doc = NULL;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0)
        fail_msg("%s", e.msg);
    return doc;
}

static void test_it_says_the_same(void **state)
{
    static const char *const rows[] = {
        "null",
        "\"\"",
        "[]",
        "{}",
        "-1.50e3",
        "[\"a\",\"a\",\"ab\",\"\",\"b\",\"1\",1,\"1\"]",
        "{\"a\":{\"a\":\"a\",\"b\":[1,1,1.0,true,null]},\"\":\"\"}",
        "[\"\\u0000\",\"\\u0000\\u0000\",\"\\u0000\"]",
        "[\"\\n\\\"\",\"\\u00e9\xc3\xa9\"]",
        "{\"a\":1,\"a\":2}",
    };

    (void)state;
    EACH(text, rows) {
        OWN(json_doc_done)
        struct json_doc *doc = parse(*text), *lean = json_doc_lean(doc),
                        *again = json_doc_lean(lean);
        struct span want = json_doc_bytes(doc), got = json_doc_bytes(lean);

        if (!span_eq(want, got))
            fail_msg("%s became %s", *text, (const char *)got.p);
        assert_true(span_eq(want, json_doc_bytes(again)));
    }
}

static void test_texts_end_where_they_end(void **state)
{
    OWN(json_doc_done)
    struct json_doc *doc = parse("{\"key\":\"value\",\"k\":\"v\"}"), *lean = json_doc_lean(doc);

    (void)state;
    json_doc_unref(doc); /* nothing is shared */
    doc = NULL;
    assert_string_equal(json_cstr(json_get(json_doc_root(lean), "key")), "value");
    assert_string_equal(json_cstr(json_get(json_doc_root(lean), "k")), "v");
    assert_null(json_get(json_doc_root(lean), "ke"));
}

static void test_what_repeats_costs_little(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    OWN(json_doc_done) struct json_doc *doc = NULL, *lean = NULL;
    struct err e;

    (void)state;
    for (int i = 0; i < 200; i++)
        assert_int_equal(buf_addf(&text, &e,
                                  "%c{\"lastTransitionTime\":\"2026-11-16T09:30:00Z\",\"n\":%d}",
                                  i ? ',' : '[', i),
                         0);
    assert_int_equal(buf_addc(&text, ']', &e), 0);
    doc = parse(buf_cstr(&text));
    lean = json_doc_lean(doc);
    assert_true(json_doc_memory(lean) * 3 < json_doc_memory(doc) * 2);
    assert_true(span_eq(json_doc_bytes(lean), json_doc_bytes(doc)));
    assert_true(span_eq(json_doc_bytes(lean), buf_span(&text)));
}

static void test_what_many_say_is_kept_once(void **state)
{
    size_t first = 0, last = 0;
    const char *name = NULL;

    (void)state;
    for (int i = 0; i < 100; i++) {
        OWN(json_doc_done) struct json_doc *doc = NULL, *lean = NULL;
        char text[128];

        (void)snprintf(text, sizeof text,
                       "{\"somethingThatAllOfThemHave\":\"a value of its own %d\"}", 100 + i);
        doc = parse(text);
        lean = json_doc_lean(doc);
        assert_true(span_eq(json_doc_bytes(lean), span_cstr(text)));
        json_doc_unref(lean);
        lean = json_doc_lean(doc);
        last = json_doc_memory(lean);
        if (i == 0)
            first = last;
        name = json_cstr(json_first(json_doc_root(lean)));
    }
    assert_true(last + strlen("somethingThatAllOfThemHave") <= first);
    assert_string_equal(name, "somethingThatAllOfThemHave"); /* it outlives them */
}

/* However many there are: what becomes common later still finds room. */
static void test_what_is_seldom_stays_with_its_document(void **state)
{
    size_t least = SIZE_MAX, most = 0;

    (void)state;
    for (int i = 0; i < 150000; i++) {
        OWN(json_doc_done) struct json_doc *doc = NULL, *lean = NULL;
        char text[64];

        (void)snprintf(text, sizeof text, "[\"only in document %06d\"]", i);
        doc = parse(text);
        lean = json_doc_lean(doc);
        least = MIN(least, json_doc_memory(lean));
        most = MAX(most, json_doc_memory(lean));
    }
    assert_int_equal(least, most);
}

static void test_documents_that_say_the_same_are_one(void **state)
{
    static const char text[] =
        "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"n\":1}]}";
    OWN(json_doc_done)
    struct json_doc *doc = parse(text), *other = parse("{\"phase\":\"Running\"}"),
                    *own = parse("{\"phase\":\"only this one says so\"}"), *a = NULL, *b = NULL,
                    *c = NULL;

    (void)state;
    for (int i = 0; i < 100; i++) {
        json_doc_unref(a);
        a = json_doc_lean(doc);
        json_doc_unref(b);
        b = json_doc_lean(other);
    }
    json_doc_unref(b);
    b = json_doc_lean(doc);
    assert_ptr_equal(a, b);
    assert_true(span_eq(json_doc_bytes(b), SPAN(text)));
    c = json_doc_lean(other);
    assert_ptr_not_equal(a, c);
    assert_true(span_eq(json_doc_bytes(c), SPAN("{\"phase\":\"Running\"}")));
    json_doc_unref(b);
    b = json_doc_lean(own);
    json_doc_unref(c);
    c = json_doc_lean(own);
    assert_ptr_not_equal(b, c);
    assert_true(span_eq(json_doc_bytes(c), SPAN("{\"phase\":\"only this one says so\"}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_says_the_same),
        cmocka_unit_test(test_texts_end_where_they_end),
        cmocka_unit_test(test_what_repeats_costs_little),
        cmocka_unit_test(test_what_is_seldom_stays_with_its_document),
        cmocka_unit_test(test_what_many_say_is_kept_once), /* behind the one before */
        cmocka_unit_test(test_documents_that_say_the_same_are_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
