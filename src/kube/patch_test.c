#include "kube/kind.h"
#include "kube/patch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum how { BY_JSON, BY_MERGE, BY_STRATEGIC };

struct row {
    const char *name, *object, *patch;
    const char *want; /* the result, or the error's text */
    enum err_code code;
};

static struct json_doc *must_parse(const char *text)
{
    struct json_doc *doc = NULL;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0)
        fail_msg("'%s': %s", text, e.msg);
    return doc;
}

static const struct schema_type *type_of(const char *plural)
{
    return kind_find("", "v1", plural)->versions[0].type;
}

static int apply(enum how how, struct json_node **root, const struct json *patch, struct err *e)
{
    switch (how) {
    case BY_JSON:
        return patch_json(root, patch, e);
    case BY_MERGE:
        return patch_merge(*root, patch, e);
    case BY_STRATEGIC:
        return patch_strategic(*root, type_of("pods"), patch, e);
    }
    return -1;
}

static void run(const struct row *r, enum how how)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(json_doc_done) struct json_doc *object = must_parse(r->object);
    OWN(json_doc_done) struct json_doc *patch = must_parse(r->patch);
    OWN(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct json_node *root = json_edit_doc(ed, object);
    struct err e = { 0 };
    int result = apply(how, &root, json_doc_root(json_edit_hold(ed, patch)), &e);

    if (r->code != ERR_NONE) {
        if (result == 0)
            fail_msg("%s: was taken", r->name);
        if (e.code != r->code || strcmp(e.msg, r->want) != 0)
            fail_msg("%s: %s (%s)", r->name, e.msg, err_map(e.code)->name);
        return;
    }
    if (result < 0 || json_node_write(root, &out, &e) < 0)
        fail_msg("%s: %s", r->name, e.msg);
    if (strcmp(buf_cstr(&out), r->want) != 0)
        fail_msg("%s: %s, not %s", r->name, buf_cstr(&out), r->want);
}

static const struct row json_rows[] = {
    { "add a member", "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":[2]}]",
      "{\"a\":1,\"b\":[2]}" },
    { "add over a member", "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]",
      "{\"a\":2}" },
    { "insert", "{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]",
      "{\"a\":[1,2,3]}" },
    { "append", "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]",
      "{\"a\":[1,2]}" },
    { "append by count", "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]",
      "{\"a\":[1,2]}" },
    { "from the end", "{\"a\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/a/-1\"}]",
      "{\"a\":[1,2]}" },
    { "remove", "{\"a\":{\"b\":1,\"c\":2}}", "[{\"op\":\"remove\",\"path\":\"/a/b\"}]",
      "{\"a\":{\"c\":2}}" },
    { "escapes", "{\"a/b\":{\"~\":1}}", "[{\"op\":\"replace\",\"path\":\"/a~1b/~0\",\"value\":2}]",
      "{\"a/b\":{\"~\":2}}" },
    { "tilde one is not twice decoded", "{\"~1\":1}", "[{\"op\":\"remove\",\"path\":\"/~01\"}]",
      "{}" },
    { "replace an element", "{\"a\":[1,2]}", "[{\"op\":\"replace\",\"path\":\"/a/0\",\"value\":0}]",
      "{\"a\":[0,2]}" },
    { "replace adds, as the public one", "{}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":0}]",
      "{\"a\":0}" },
    { "replace all", "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"b\":2}}]",
      "{\"b\":2}" },
    { "move", "{\"a\":{\"x\":1},\"b\":{}}",
      "[{\"op\":\"move\",\"from\":\"/a/x\",\"path\":\"/b/y\"}]", "{\"a\":{},\"b\":{\"y\":1}}" },
    { "copy is deep", "{\"a\":{\"x\":[1]}}",
      "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},{\"op\":\"add\",\"path\":\"/b/x/-\",\"value\":2}]",
      "{\"a\":{\"x\":[1]},\"b\":{\"x\":[1,2]}}" },
    { "copy into itself", "{\"a\":{}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/b\"}]",
      "{\"a\":{\"b\":{}}}" },
    { "test", "{\"a\":{\"x\":1.0,\"y\":[]}}",
      "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"y\":[],\"x\":1}}]",
      "{\"a\":{\"x\":1.0,\"y\":[]}}" },
    { "test for absence", "{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", "{}" },
    { "test fails", "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]",
      "testing value /a failed: test failed", ERR_INVALID },
    { "test of nothing fails", "{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]",
      "testing value /a failed: test failed", ERR_INVALID },
    { "nothing to remove", "{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]",
      "error in remove for path: '/a': Unable to remove nonexistent key", ERR_INVALID },
    { "a path through nothing", "{}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]",
      "add operation does not apply: doc is missing path: \"/a/b\"", ERR_INVALID },
    { "a path through a text", "{\"a\":\"x\"}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]",
      "add operation does not apply: doc is missing path: \"/a/b\"", ERR_INVALID },
    { "no slash", "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"a\"}]",
      "remove operation does not apply: doc is missing path: \"a\"", ERR_INVALID },
    { "beyond the end", "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":1}]",
      "error in add for path: '/a/2': no such index", ERR_INVALID },
    { "no index", "{\"a\":[1]}", "[{\"op\":\"remove\",\"path\":\"/a/x\"}]",
      "error in remove for path: '/a/x': no such index", ERR_INVALID },
    { "move into itself", "{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]",
      "move operation does not apply: doc is missing path: \"/a/b\"", ERR_INVALID },
    { "unknown operation", "{}", "[{\"op\":\"frob\",\"path\":\"/a\"}]", "Unexpected kind: frob",
      ERR_INVALID },
    { "no operation", "{}", "[{}]", "Unexpected kind: unknown", ERR_INVALID },
    { "not a list", "{}", "{}",
      "error decoding patch: json: cannot unmarshal object into Go value of type "
      "[]handlers.jsonPatchOp",
      ERR_PROTOCOL },
    { "a path that is no text", "{}", "[{\"op\":\"add\",\"path\":5}]",
      "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path "
      "of type string",
      ERR_PROTOCOL },
    { "an operation that is none", "{}", "[true]",
      "error decoding patch: json: cannot unmarshal bool into Go value of type "
      "handlers.jsonPatchOp",
      ERR_PROTOCOL },
};

static const struct row merge_rows[] = {
    { "set, add, remove", "{\"a\":1,\"b\":{\"c\":2,\"d\":3},\"e\":4}",
      "{\"a\":5,\"b\":{\"c\":null,\"x\":6},\"e\":null,\"n\":7}",
      "{\"a\":5,\"b\":{\"d\":3,\"x\":6},\"n\":7}" },
    { "arrays are replaced", "{\"a\":[1,2]}", "{\"a\":[{\"x\":null}]}", "{\"a\":[{}]}" },
    { "object over text", "{\"a\":\"x\"}", "{\"a\":{\"b\":null,\"c\":1}}", "{\"a\":{\"c\":1}}" },
    { "nothing to remove", "{\"a\":1}", "{\"b\":null}", "{\"a\":1}" },
    { "new and nested nulls", "{}", "{\"a\":{\"b\":{\"c\":null}}}", "{\"a\":{\"b\":{}}}" },
    { "an array over an object keeps its nulls", "{\"a\":{}}", "{\"a\":[{\"x\":null}]}",
      "{\"a\":[{\"x\":null}]}" },
    { "an empty patch", "{\"a\":1}", "{}", "{\"a\":1}" },
    { "null", "{}", "null", "Invalid JSON Patch", ERR_PROTOCOL },
    { "a list", "{}", "[]",
      "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
      ERR_PROTOCOL },
};

#define C(inner) "{\"spec\":{\"containers\":[" inner "]}}"

static const struct row strategic_rows[] = {
    { "merged by name", C("{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\",\"image\":\"2\"}"),
      C("{\"name\":\"b\",\"image\":\"3\"}"),
      C("{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\",\"image\":\"3\"}") },
    { "a new element comes first, as the public one puts it", C("{\"name\":\"a\"}"),
      C("{\"name\":\"z\"}"), C("{\"name\":\"z\"},{\"name\":\"a\"}") },
    { "delete an element", C("{\"name\":\"a\"},{\"name\":\"b\"}"),
      C("{\"name\":\"a\",\"$patch\":\"delete\"}"), C("{\"name\":\"b\"}") },
    { "replace a list", C("{\"name\":\"a\"},{\"name\":\"b\"}"),
      C("{\"name\":\"c\"},{\"$patch\":\"replace\"}"), C("{\"name\":\"c\"}") },
    { "lists in lists of objects",
      C("{\"name\":\"a\",\"env\":[{\"name\":\"X\",\"value\":\"1\"},{\"name\":\"Y\",\"value\":\"2\"}]}"),
      C("{\"name\":\"a\",\"env\":[{\"name\":\"Y\",\"value\":null},{\"name\":\"X\",\"value\":\"3\"}]}"),
      C("{\"name\":\"a\",\"env\":[{\"name\":\"Y\"},{\"name\":\"X\",\"value\":\"3\"}]}") },
    { "keys that are numbers",
      C("{\"name\":\"a\",\"ports\":[{\"containerPort\":80},{\"containerPort\":81}]}"),
      C("{\"name\":\"a\",\"ports\":[{\"containerPort\":81,\"name\":\"x\"}]}"),
      C("{\"name\":\"a\",\"ports\":[{\"containerPort\":80},{\"containerPort\":81,\"name\":\"x\"}]}") },
    { "lists that say nothing are replaced", C("{\"name\":\"a\",\"args\":[\"1\",\"2\"]}"),
      C("{\"name\":\"a\",\"args\":[\"3\"]}"), C("{\"name\":\"a\",\"args\":[\"3\"]}") },
    { "lists of texts that are merged", "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
      "{\"metadata\":{\"finalizers\":[\"c\",\"b\"]}}",
      "{\"metadata\":{\"finalizers\":[\"c\",\"a\",\"b\"]}}" },
    { "delete from a list of texts", "{\"metadata\":{\"finalizers\":[\"a\",\"b\",\"c\"]}}",
      "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"b\",\"z\"]}}",
      "{\"metadata\":{\"finalizers\":[\"a\",\"c\"]}}" },
    { "the order of elements", C("{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"s\"}"),
      "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"b\"},{\"name\":\"n\"},{\"name\":\"a\"}],"
      "\"containers\":[{\"name\":\"n\",\"image\":\"x\"}]}}",
      C("{\"name\":\"b\"},{\"name\":\"n\",\"image\":\"x\"},{\"name\":\"a\"},{\"name\":\"s\"}") },
    { "the order of texts", "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
      "{\"metadata\":{\"$setElementOrder/finalizers\":[\"b\",\"a\"]}}",
      "{\"metadata\":{\"finalizers\":[\"b\",\"a\"]}}" },
    { "an order of nothing", "{}",
      "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"b\"}]}}", "{\"spec\":{}}" },
    { "retain keys", "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"medium\":\"\"}}]}}",
      "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/x\"},\"$retainKeys\":[\"name\","
      "\"hostPath\"]}]}}",
      "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/x\"}}]}}" },
    { "replace an object", "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\"}}}",
      "{\"metadata\":{\"labels\":{\"c\":\"3\",\"$patch\":\"replace\"}}}",
      "{\"metadata\":{\"labels\":{\"c\":\"3\"}}}" },
    { "delete an object", "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}",
      "{\"metadata\":{\"labels\":{\"$patch\":\"delete\"}}}", "{\"metadata\":{\"labels\":{}}}" },
    { "maps are merged, null removes", "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\"}}}",
      "{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"3\",\"d\":null}}}",
      "{\"metadata\":{\"labels\":{\"b\":\"2\",\"c\":\"3\"}}}" },
    { "directives in what is new go", "{}",
      "{\"spec\":{\"containers\":[{\"name\":\"a\",\"$patch\":\"delete\"},{\"name\":\"b\",\"x\":{\"$retainKeys\":[]},"
      "\"n\":null}]}}",
      C("{\"name\":\"b\",\"x\":{}}") },
    { "the whole object", "{\"a\":1,\"b\":2}", "{\"$patch\":\"replace\",\"c\":3}", "{\"c\":3}" },
    { "null is no change", "{\"a\":1}", "null", "{\"a\":1}" },
    { "an element without its key", C("{\"name\":\"a\"}"), C("{\"image\":\"x\"}"),
      "an element of a list does not contain declared merge key: name", ERR_INVALID },
    { "lists of lists", "{\"metadata\":{\"finalizers\":[\"a\"]}}",
      "{\"metadata\":{\"finalizers\":[[\"a\"]]}}", "lists of lists are not supported",
      ERR_INVALID },
    { "mixed elements", "{\"metadata\":{\"finalizers\":[\"a\"]}}",
      "{\"metadata\":{\"finalizers\":[5]}}", "list element types are not identical", ERR_INVALID },
    { "retain keys that leave out a change", "{\"spec\":{\"x\":1}}",
      "{\"spec\":{\"a\":1,\"$retainKeys\":[\"b\"]}}", "invalid patch format of retainKeys",
      ERR_PROTOCOL },
    { "retain keys that are no list", "{\"spec\":{}}", "{\"spec\":{\"$retainKeys\":1}}",
      "invalid patch format of retainKeys", ERR_PROTOCOL },
    { "an order without its list", "{\"spec\":{}}", "{\"spec\":{\"$setElementOrder\":[]}}",
      "invalid patch format of setElementOrder list", ERR_PROTOCOL },
    { "a deletion without its list", "{\"spec\":{}}",
      "{\"spec\":{\"$deleteFromPrimitiveList\":[]}}", "invalid patch format of primitive list",
      ERR_PROTOCOL },
    { "an order against the patch", C("{\"name\":\"a\"}"),
      "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"containers\":[{\"name\":\"b\"},"
      "{\"name\":\"a\"}]}}",
      "The order in patch list doesn't match $setElementOrder list", ERR_INVALID },
    { "an unknown directive", "{\"spec\":{}}", "{\"spec\":{\"$patch\":\"mend\"}}",
      "unknown patch type in map", ERR_INVALID },
    { "a list", "{}", "[]",
      "json: cannot unmarshal array into Go value of type map[string]interface {}", ERR_PROTOCOL },
};

static void test_json(void **state)
{
    EACH(r, json_rows) {
        run(r, BY_JSON);
    }
}

static void test_merge(void **state)
{
    EACH(r, merge_rows) {
        run(r, BY_MERGE);
    }
}

static void test_strategic(void **state)
{
    EACH(r, strategic_rows) {
        run(r, BY_STRATEGIC);
    }
}

/* Copies of copies: in breadth and in depth. */
static void test_bombs(void **state)
{
    static const char *const ops[] = { "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/-\"}",
                                       "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/0/0\"}" };

    EACH(op, ops) {
        OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
        OWN(json_doc_done) struct json_doc *object = must_parse("{\"a\":[[[]]]}");
        OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
        OWN(json_doc_done) struct json_doc *patch = NULL;
        struct json_node *root = json_edit_doc(ed, object);
        struct err e;

        assert_int_equal(buf_addc(&text, '[', &e), 0);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(buf_addf(&text, &e, "%s%s", i ? "," : "", *op), 0);
        assert_int_equal(buf_addc(&text, ']', &e), 0);
        patch = must_parse(buf_cstr(&text));
        assert_int_equal(patch_json(&root, json_doc_root(patch), &e), -1);
        assert_int_equal(e.code, ERR_LIMIT);
    }
}

static void test_too_many_operations(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    OWN(json_doc_done) struct json_doc *patch = NULL;
    struct json_node *root = json_edit_object(ed);
    struct err e;

    assert_int_equal(buf_addc(&text, '[', &e), 0);
    for (int i = 0; i <= PATCH_OPERATIONS_MAX; i++)
        assert_int_equal(buf_addf(&text, &e, "%snull", i ? "," : ""), 0);
    assert_int_equal(buf_addc(&text, ']', &e), 0);
    patch = must_parse(buf_cstr(&text));
    assert_int_equal(patch_json(&root, json_doc_root(patch), &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_string_equal(e.msg,
                        "The allowed maximum operations in a JSON patch is 10000, got 10001");
}

/* 30,000 elements merged with 30,000: no work that grows with the square. */
static void test_wide_lists(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(buf_done) struct buf text = BUF_INIT(1 << 22);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct json_node *root, *list;
    struct err e;

    assert_int_equal(buf_add(&text, SPAN("{\"spec\":{\"containers\":["), &e), 0);
    for (int i = 0; i < 30000; i++)
        assert_int_equal(buf_addf(&text, &e, "%s{\"name\":\"c%d\"}", i ? "," : "", i), 0);
    assert_int_equal(buf_add(&text, SPAN("]}}"), &e), 0);
    doc = must_parse(buf_cstr(&text));
    root = json_edit_doc(ed, doc);
    assert_int_equal(patch_strategic(root, type_of("pods"), json_doc_root(doc), &e), 0);
    list = json_node_get(json_node_get(root, "spec"), "containers");
    assert_int_equal(json_node_count(list), 30000);
    assert_true(span_is(json_node_str(json_node_get(json_node_at(list, 29999), "name")), "c29999"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_strategic),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_too_many_operations),
        cmocka_unit_test(test_wide_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
