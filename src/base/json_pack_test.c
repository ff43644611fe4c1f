#include "base/json_edit.h"

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
        " { } ",
        "-1.50e3",
        "[\"a\", \"a\", 1, 1.0, true]",
        "{\"a\": {\"b\": [1, null]}, \"\": \"\"}",
        "[\"\\u0000\",\"\\n\\\"\",\"\\u00e9\xc3\xa9\"]",
        "{\"a\":1,\"a\":2}",
    };

    (void)state;
    EACH(text, rows) {
        OWN(json_doc_done)
        struct json_doc *doc = parse(*text), *packed = json_doc_packed(doc), *tree = NULL;
        OWN(buf_done) struct buf written = BUF_INIT(4096);
        struct span want = json_doc_bytes(doc);
        struct err e;

        assert_true(json_doc_is_packed(packed));
        assert_true(span_eq(json_doc_bytes(packed), want));
        assert_true(json_doc_is_packed(packed));
        assert_int_equal(json_type(json_doc_root(packed)), json_type(json_doc_root(doc)));
        assert_false(json_doc_is_packed(packed));
        assert_int_equal(json_write(json_doc_root(packed), &written, &e), 0);
        if (!span_eq(buf_span(&written), want))
            fail_msg("%s became %s", *text, buf_cstr(&written));
        assert_true(span_eq(json_doc_bytes(packed), want));
        tree = json_doc_lean(packed);
        assert_true(span_eq(json_doc_bytes(tree), want));
    }
}

static void test_it_outlives_the_tree(void **state)
{
    struct json_doc *doc = parse("{\"key\":\"value\",\"list\":[1,2,3,4]}");
    OWN(json_doc_done) struct json_doc *packed = json_doc_packed(doc);
    size_t bytes = json_doc_bytes(doc).n, small = json_doc_memory(packed);
    uint64_t count = json_unpack_count();

    (void)state;
    json_doc_unref(doc);
    assert_true(small > bytes && small < bytes + 64);
    assert_string_equal(json_cstr(json_get(json_doc_root(packed), "key")), "value");
    assert_ptr_equal(json_doc_root(packed), json_doc_root(packed)); /* made once */
    assert_int_equal(json_unpack_count(), count + 1);
    assert_true(json_doc_memory(packed) > 2 * small);
}

static void test_all_who_ask_share_one(void **state)
{
    OWN(json_doc_done)
    struct json_doc *doc = parse("[1]"), *one = json_doc_packed(doc), *two = json_doc_packed(doc),
                    *three = NULL, *four = NULL, *five = NULL;

    (void)state;
    assert_ptr_equal(one, two);
    assert_ptr_equal(json_doc_bytes(doc).p, json_doc_bytes(one).p);
    (void)json_doc_root(one);
    three = json_doc_packed(one); /* it has a tree, so this is another, */
    assert_ptr_not_equal(three, one);
    assert_true(json_doc_is_packed(three));
    four = json_doc_packed(doc); /* whoever asks */
    assert_ptr_equal(four, three);
    five = json_doc_packed(three);
    assert_ptr_equal(five, three);
}

static void test_an_edit_gives_a_view_of_it_back(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done)
    struct json_doc *doc = parse("{\"a\":[1]}"), *packed = json_doc_packed(doc), *same = NULL;
    struct err e;

    (void)state;
    assert_int_equal(json_node_freeze(json_edit_doc(ed, packed), &same, &e), 0);
    assert_ptr_equal(same, packed);
}

/* What could not be read back is not made. */
static void test_no_document_is_too_deep(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL, *made = NULL;
    char text[2 * JSON_DEPTH_MAX + 1];
    struct json_node *root = json_edit_array(ed), *inner = json_edit_array(ed);
    struct err e;

    (void)state;
    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    text[2 * JSON_DEPTH_MAX] = '\0';
    doc = parse(text);
    json_node_append(inner, json_edit_doc(ed, doc));
    json_node_append(root, inner);
    assert_int_equal(json_node_freeze(root, &made, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_says_the_same),
        cmocka_unit_test(test_it_outlives_the_tree),
        cmocka_unit_test(test_all_who_ask_share_one),
        cmocka_unit_test(test_an_edit_gives_a_view_of_it_back),
        cmocka_unit_test(test_no_document_is_too_deep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
