#include "base/json_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct json_node *must_parse(struct json_edit *ed, const char *text)
{
    struct json_doc *doc = NULL;
    struct json_node *root;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0)
        fail_msg("'%s': %s", text, e.msg);
    root = json_edit_doc(ed, doc);
    json_doc_unref(doc);
    return root;
}

static void assert_writes(struct json_node *node, const char *want)
{
    OWN(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct err e;

    if (json_node_write(node, &out, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(buf_cstr(&out), want);
}

static void test_a_change_keeps_the_rest(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = must_parse(
        ed, "{\"a\":{\"x\":1.50,\"y\":[1,2]},\"b\":\"\\u0001\\\"\",\"c\":[true,null,{}]}");

    assert_writes(root,
                  "{\"a\":{\"x\":1.50,\"y\":[1,2]},\"b\":\"\\u0001\\\"\",\"c\":[true,null,{}]}");
    json_node_set(json_node_get(root, "a"), "x", json_edit_i64(ed, -7));
    json_node_set(root, "new", json_edit_str(ed, SPAN("q\"\n")));
    json_node_append(json_node_get(root, "c"), json_edit_bool(ed, false));
    assert_true(json_node_remove(root, "b"));
    assert_false(json_node_remove(root, "b"));
    assert_writes(root,
                  "{\"a\":{\"x\":-7,\"y\":[1,2]},\"c\":[true,null,{},false],\"new\":\"q\\\"\\n\"}");
    assert_int_equal(json_node_count(root), 3);
    assert_true(span_is(json_node_name_at(root, 1), "c"));
    assert_int_equal(json_node_type(json_node_value_at(root, 2)), JSON_STRING);
    assert_null(json_node_value_at(root, 3));
    assert_non_null(json_node_view(json_node_get(json_node_get(root, "a"), "y")));
    assert_null(json_node_view(root));
}

static void test_arrays(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *a = must_parse(ed, "[1,2,3]");

    json_node_insert(a, 0, json_edit_cstr(ed, "first"));
    json_node_insert(a, 4, json_edit_null(ed));
    json_node_insert(a, 9, json_edit_cstr(ed, "nowhere"));
    json_node_remove_at(a, 1);
    json_node_replace_at(a, 1, json_edit_number(ed, SPAN("2e0")));
    json_node_remove_at(a, 9);
    json_node_replace_at(a, 9, json_edit_null(ed));
    assert_writes(a, "[\"first\",2e0,3,null]");
    assert_null(json_node_at(a, 4));
    assert_null(json_node_get(a, "x"));
    json_node_set(a, "x", json_edit_null(ed));
    assert_int_equal(json_node_count(a), 4);
    a = json_edit_array(ed);
    for (int i = 0; i < 100; i++)
        json_node_append(a, json_edit_i64(ed, i));
    assert_int_equal(json_node_count(a), 100);
}

static void test_nothing(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    int64_t i;
    double d;
    bool b;

    assert_null(json_edit_view(ed, NULL));
    assert_null(json_edit_doc(ed, NULL));
    assert_null(json_node_get(NULL, "x"));
    assert_null(json_node_at(NULL, 0));
    assert_null(json_node_str(NULL).p);
    assert_null(json_node_cstr(NULL));
    assert_null(json_node_copy(ed, NULL));
    assert_null(json_node_view(NULL));
    assert_null(json_node_edit(NULL));
    assert_false(json_node_i64(NULL, &i) || json_node_double(NULL, &d) || json_node_bool(NULL, &b));
    assert_int_equal(json_node_type(NULL), JSON_NONE);
    assert_string_equal(json_node_type_name(NULL), "nothing");
    assert_int_equal(json_node_count(NULL), 0);
    assert_true(json_node_equal(NULL, NULL));
    assert_false(json_node_equal(NULL, json_edit_null(ed)));
    assert_false(json_node_is_deeper(NULL, 0));
    json_node_append(NULL, json_edit_null(ed));
    assert_null(json_node_set(NULL, "a", NULL));
    json_edit_free(NULL);
}

/* Wide objects are found by a table; removals leave holes in it. */
static void test_wide_objects(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *o = json_edit_object(ed);
    char name[16];
    int64_t v;

    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof name, "k%d", i);
        json_node_set(o, name, json_edit_i64(ed, i));
    }
    for (int i = 0; i < 3000; i += 3) {
        (void)snprintf(name, sizeof name, "k%d", i);
        assert_true(json_node_remove(o, name));
        assert_null(json_node_get(o, name));
    }
    assert_int_equal(json_node_count(o), 2000);
    json_node_set(o, "k0", json_edit_i64(ed, -1));
    for (int i = 1; i < 3000; i++) {
        (void)snprintf(name, sizeof name, "k%d", i);
        assert_int_equal(json_node_i64(json_node_get(o, name), &v), i % 3 != 0);
        assert_true(i % 3 == 0 || v == i);
    }
    assert_true(span_is(json_node_name_at(o, 0), "k1"));
    assert_true(span_is(json_node_name_at(o, 2000), "k0"));
    assert_true(json_node_i64(json_node_get(o, "k0"), &v) && v == -1);
}

static void test_duplicates(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(buf_done) struct buf wide = BUF_INIT(1 << 16);
    struct json_node *root = must_parse(ed, "{\"a\":1,\"b\":{\"c\":1,\"c\":2},\"a\":3,\"a\":4}");
    struct err e;

    assert_int_equal(json_node_count(root), 2);
    assert_int_equal(json_node_dedupe(root), 3);
    assert_writes(root, "{\"b\":{\"c\":2},\"a\":4}");
    assert_true(json_node_remove(root, "a"));
    assert_null(json_node_get(root, "a"));
    assert_int_equal(buf_addc(&wide, '{', &e), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(buf_addf(&wide, &e, "%s\"k%d\":%d", i ? "," : "", i % 50, i), 0);
    assert_int_equal(buf_addc(&wide, '}', &e), 0);
    root = must_parse(ed, "{\"a\":{\"b\":1,\"c\":[{},{\"d\":1}]}}");
    assert_int_equal(json_node_dedupe(root), 0);
    assert_non_null(json_node_view(root)); /* nothing was opened for it */
    root = must_parse(ed, buf_cstr(&wide));
    assert_int_equal(json_node_dedupe(root), 50);
    assert_int_equal(json_node_count(root), 50);
    assert_true(span_is(json_node_number(json_node_get(root, "k7")), "57"));
}

static const struct row {
    const char *a, *b;
    bool is_equal;
} rows[] = {
    { "{\"a\":1,\"b\":[1,2]}", "{\"b\":[1.0,2e0],\"a\":10e-1}", true },
    { "{\"a\":1}", "{\"a\":1,\"b\":null}", false },
    { "{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":1}", false },
    { "[1,2]", "[2,1]", false },
    { "9007199254740993", "9007199254740992", false },
    { "0.1", "0.10", true },
    { "-0", "0", true },
    { "\"a\"", "\"\\u0061\"", true },
    { "\"1\"", "1", false },
    { "null", "false", false },
    { "true", "false", false },
    { "{}", "[]", false },
    { "{\"a\":1,\"a\":2}", "{\"a\":2}", true },
    { "{\"a\":{\"b\":{\"c\":[{}]}}}", "{\"a\":{\"b\":{\"c\":[{}]}}}", true },
};

static void test_equal(void **state)
{
    EACH(r, rows) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        struct json_node *a = must_parse(ed, r->a), *b = must_parse(ed, r->b);

        if (json_node_equal(a, b) != r->is_equal || json_node_equal(b, a) != r->is_equal)
            fail_msg("%s and %s", r->a, r->b);
        assert_true(json_node_equal(a, json_node_copy(ed, a)));
    }
}

static void test_a_copy_is_apart(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = must_parse(ed, "{\"a\":{\"b\":[1]},\"c\":0}"), *twin;

    json_node_append(json_node_get(json_node_get(root, "a"), "b"), json_edit_cstr(ed, "x"));
    json_node_set(root, "t", json_edit_bool(ed, true));
    json_node_set(root, "n", json_edit_null(ed));
    twin = json_node_copy(ed, root);
    assert_writes(twin, "{\"a\":{\"b\":[1,\"x\"]},\"c\":0,\"t\":true,\"n\":null}");
    json_node_remove_at(json_node_get(json_node_get(twin, "a"), "b"), 0);
    json_node_set(twin, "c", json_edit_i64(ed, 1));
    assert_writes(root, "{\"a\":{\"b\":[1,\"x\"]},\"c\":0,\"t\":true,\"n\":null}");
    assert_writes(twin, "{\"a\":{\"b\":[\"x\"]},\"c\":1,\"t\":true,\"n\":null}");
}

static void test_prune(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = must_parse(
        ed, "{\"a\":null,\"b\":[null,{\"c\":null,\"d\":1}],\"e\":{\"f\":{\"g\":null}},\"h\":[1]}");

    json_node_prune(NULL);
    json_node_prune(root);
    assert_writes(root, "{\"b\":[null,{\"d\":1}],\"e\":{\"f\":{}},\"h\":[1]}");
    assert_non_null(json_node_view(json_node_get(root, "h")));
    json_node_set(json_node_get(root, "e"), "z", json_edit_null(ed));
    json_node_prune(root);
    assert_writes(root, "{\"b\":[null,{\"d\":1}],\"e\":{\"f\":{}},\"h\":[1]}");
}

static void test_freeze(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL, *same = NULL, *changed = NULL, *part = NULL;
    struct json_node *root;
    struct err e;

    assert_int_equal(json_parse(SPAN("{ \"a\" : [ \"\\u00e9\" ] }"), NULL, &doc, &e), 0);
    root = json_edit_doc(ed, doc);
    assert_int_equal(json_node_freeze(root, &same, &e), 0);
    assert_ptr_equal(same, doc);
    json_node_set(root, "b", json_edit_i64(ed, 5));
    assert_int_equal(json_node_freeze(root, &changed, &e), 0);
    assert_true(span_is(json_doc_bytes(changed), "{\"a\":[\"\xc3\xa9\"],\"b\":5}"));
    assert_int_equal(json_count(json_doc_root(changed)), 2);
    assert_int_equal(json_doc_of(json_get(json_doc_root(doc), "a"), &part, &e), 0);
    assert_true(span_is(json_doc_bytes(part), "[\"\xc3\xa9\"]"));
}

/* A patch that copies its own copies: doubling ends at the ceiling, and the end is reported. */
/* A frozen tree is what a parse of its text would be, whatever of it was opened. */
static void test_frozen_as_if_parsed(void **state)
{
    static const char *const texts[] = {
        "{\"a\":{\"b\":[1,2.5,-0],\"c\":\"x\"},\"d\":[],\"e\":{},\"f\":null,\"g\":true}",
        "[\"\",\"\\u00e9\\n\\\"\",\"sixteen bytes, ok\",\"\\u0000\",[[[]]]]",
        "{\"a\":1,\"a\":{\"b\":1,\"b\":2},\"\\u00fc\":\"\\t\"}",
        "\"alone\"",
        "12",
    };

    EACH(text, texts) {
        for (int depth = 0; depth < 4; depth++) {
            OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
            OWN(json_doc_done) struct json_doc *frozen = NULL, *parsed = NULL;
            OWN(buf_done) struct buf again = BUF_INIT(4096);
            struct json_node *root = must_parse(ed, *text), *at = root;
            const struct json *x, *y;
            struct err e;

            for (int i = 0; i < depth; i++)
                at = json_node_type(at) == JSON_ARRAY ? json_node_at(at, 0)
                                                      : json_node_value_at(at, 0);
            assert_int_equal(json_node_freeze(root, &frozen, &e), 0);
            assert_int_equal(json_parse(json_doc_bytes(frozen), NULL, &parsed, &e), 0);
            x = json_doc_root(frozen), y = json_doc_root(parsed);
            assert_int_equal(json_skip(x), json_skip(y));
            for (size_t i = 0; i < json_skip(y); i++) {
                assert_int_equal(x[i].type, y[i].type);
                assert_int_equal(x[i].n, y[i].n);
                assert_int_equal(x[i].flags & ~y[i].flags, 0); /* "plain" may be known later */
                if (y[i].type == JSON_STRING || y[i].type == JSON_NUMBER)
                    assert_memory_equal(x[i].u.text, y[i].u.text,
                                        y[i].n + (y[i].type == JSON_STRING));
                else if (y[i].type >= JSON_ARRAY)
                    assert_int_equal(x[i].u.skip, y[i].u.skip);
            }
            assert_int_equal(json_write(x, &again, &e), 0);
            assert_true(span_eq(buf_span(&again), json_doc_bytes(frozen)));
        }
    }
}

/* Bytes that are no UTF-8 are written, and so frozen, as U+FFFD. */
static void test_frozen_ill_formed(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_node *list = json_edit_array(ed);
    struct err e;

    json_node_append(list, json_edit_str(ed, SPAN("a\xff"
                                                  "b")));
    assert_int_equal(json_node_freeze(list, &doc, &e), 0);
    assert_true(span_is(json_str(json_at(json_doc_root(doc), 0)), "a\xef\xbf\xbd"
                                                                  "b"));
}

/* What was opened becomes one document, which a later freeze of the whole finds again. */
static void test_settle(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_node *root = must_parse(ed, "{\"a\":{\"b\":[1,2],\"c\":3},\"d\":\"x\"}"),
                     *a = json_node_get(root, "a");
    struct err e;

    assert_non_null(json_node_plain(a));
    assert_true(json_node_remove(a, "c"));
    assert_null(json_node_plain(a));
    assert_null(json_node_plain(NULL));
    assert_true(span_is(json_str(json_node_plain(json_edit_cstr(ed, "y"))), "y"));
    assert_int_equal(json_node_settle(a, &e), 0);
    assert_int_equal(json_count(json_node_view(a)), 1);
    assert_int_equal(json_node_freeze(a, &doc, &e), 0);
    assert_ptr_equal(json_doc_root(doc), json_node_view(a));
    json_node_append(json_node_get(a, "b"), json_edit_i64(ed, 4));
    assert_writes(root, "{\"a\":{\"b\":[1,2,4]},\"d\":\"x\"}");
}

static void test_memory_has_a_ceiling(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(1 << 20);
    OWN(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct json_node *a = json_edit_array(ed);
    struct json_doc *doc = NULL;
    struct err e;

    json_node_append(a, json_edit_cstr(ed, "x"));
    for (int i = 0; i < 100 && !json_edit_is_full(ed); i++)
        json_node_append(a, json_node_copy(ed, a));
    assert_true(json_edit_is_full(ed));
    assert_int_equal(json_node_write(a, &out, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(json_node_freeze(a, &doc, &e), -1);
    assert_int_equal(json_node_type(json_edit_cstr(ed, "late")), JSON_NULL);
    json_node_set(json_edit_object(ed), "a", json_edit_null(ed));
}

static void test_depth_has_a_ceiling(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0), *other = json_edit_new(0);
    OWN(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct json_node *root = json_edit_array(ed), *at = root;
    struct err e;

    for (int i = 0; i < JSON_DEPTH_MAX - 1; i++) {
        struct json_node *inner = json_edit_array(ed);

        json_node_append(at, inner);
        at = inner;
    }
    assert_false(json_node_is_deeper(root, JSON_DEPTH_MAX));
    assert_true(json_node_is_deeper(root, JSON_DEPTH_MAX - 1));
    assert_int_equal(json_node_write(root, &out, &e), 0);
    for (int i = 0; i < 100000; i++) {
        struct json_node *inner = json_edit_array(ed);

        json_node_append(at, inner);
        at = inner;
    }
    assert_true(json_node_is_deeper(root, JSON_DEPTH_MAX));
    assert_int_equal(json_node_write(root, &out, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    (void)json_node_copy(other, root);
    assert_true(json_edit_is_full(other));
    assert_false(json_node_equal(root, at));
    assert_int_equal(json_node_dedupe(root), 0);
}

static void test_moves_have_a_ceiling(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *a = json_edit_array(ed), *one = json_edit_null(ed);
    int n = 0;

    for (int i = 0; i < 200000; i++)
        json_node_append(a, one);
    while (n < 100000 && !json_edit_is_full(ed))
        json_node_remove_at(a, 0), n++;
    assert_true(json_edit_is_full(ed) && n < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_change_keeps_the_rest),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_wide_objects),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_a_copy_is_apart),
        cmocka_unit_test(test_prune),
        cmocka_unit_test(test_freeze),
        cmocka_unit_test(test_frozen_as_if_parsed),
        cmocka_unit_test(test_frozen_ill_formed),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_memory_has_a_ceiling),
        cmocka_unit_test(test_depth_has_a_ceiling),
        cmocka_unit_test(test_moves_have_a_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
