#include "kube/object.h"
#include "kube/kind.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct kind pod = { .group = "", .name = "Pod" };

static struct object *must_parse(const char *text)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e;

    if (json_parse(span_cstr(text), NULL, &doc, &e) < 0 ||
        object_parse(&pod, json_doc_root(doc), &o, &e) < 0)
        fail_msg("'%s': %s", text, e.msg);
    return o;
}

static void assert_writes(const struct object *o, const char *api_version, const char *want)
{
    OWN(buf_done) struct buf out = BUF_INIT(1 << 16);
    struct err e;

    if (object_write(o, api_version, &out, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(buf_cstr(&out), want);
}

#define FULL                                                                                       \
    "{\"kind\":\"Pod\",\"status\":{\"phase\":\"Running\"},\"apiVersion\":\"v1\",\"metadata\":"     \
    "{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u-1\",\"resourceVersion\":\"41\","             \
    "\"generation\":3,\"labels\":{\"app\":\"web\"},\"annotations\":{\"k.io/x\":\"\"},"             \
    "\"finalizers\":[\"f/1\",\"f/2\"],\"ownerReferences\":[{\"kind\":\"X\"},{\"apiVersion\":"      \
    "\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"rs\",\"uid\":\"u-0\",\"controller\":true}]},"  \
    "\"spec\":{\"nodeName\":\"n1\",\"x\":{\"y\":\"z\"}},\"none\":null}"

static void test_read(void **state)
{
    OWN(object_done) struct object *o = must_parse(FULL);
    struct object_owner owner;

    assert_ptr_equal(object_kind(o), &pod);
    assert_string_equal(object_name(o), "a");
    assert_string_equal(object_namespace(o), "ns");
    assert_string_equal(object_uid(o), "u-1");
    assert_int_equal(object_version(o), 41);
    assert_int_equal(object_generation(o), 3);
    assert_false(object_is_deleting(o));
    assert_string_equal(object_label(o, "app"), "web");
    assert_null(object_label(o, "ap"));
    assert_string_equal(object_annotation(o, "k.io/x"), "");
    assert_true(object_has_finalizer(o, "f/2"));
    assert_false(object_has_finalizer(o, "f/3"));
    assert_int_equal(object_finalizer_count(o), 2);
    assert_string_equal(object_text(o, "spec.x.y"), "z");
    assert_string_equal(object_text(o, "status.phase"), "Running");
    assert_null(object_at(o, "spec.x.y.w"));
    assert_true(json_is_null(object_at(o, "none")));
    assert_null(object_at(o, ""));
    assert_null(object_at(o, "metadata.resourceVersion"));
    assert_true(object_owner_controller(o, &owner));
    assert_string_equal(owner.name, "rs");
    assert_string_equal(owner.uid, "u-0");
    assert_false(owner.is_blocking);
    assert_true(object_memory(o) > 300);
}

static void test_write(void **state)
{
    OWN(object_done)
    struct object *o = must_parse(
        "{\"spec\":{\"a\": 1},\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},\"q\\\"\":[]}");
    OWN(object_done) struct object *bare = must_parse("{}"), *versioned = NULL;
    OWN(buf_done) struct buf small = BUF_INIT(20);
    struct err e;

    assert_writes(o, "v1",
                  "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"7\","
                  "\"name\":\"a\"},\"spec\":{\"a\":1},\"q\\\"\":[]}");
    assert_writes(bare, NULL, "{\"metadata\":{}}");
    versioned = object_with_version(bare, 9);
    assert_writes(versioned, NULL, "{\"metadata\":{\"resourceVersion\":\"9\"}}");
    assert_int_equal(object_write(o, "v1", &small, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(small.n, 0);
}

static void test_versions_share_members(void **state)
{
    static const char *const status_only[] = { "status", NULL };
    OWN(object_done)
    struct object *o = must_parse(FULL), *next = NULL, *without = NULL, *meta = NULL;
    OWN(json_doc_done) struct json_doc *status = NULL;
    struct err e;

    assert_int_equal(json_parse(SPAN("{\"phase\":\"Failed\"}"), NULL, &status, &e), 0);
    assert_int_equal(object_with(o, "status", status, &next, &e), 0);
    assert_ptr_equal(object_member_doc(next, "spec"), object_member_doc(o, "spec"));
    assert_ptr_equal(object_meta(next), object_meta(o));
    assert_string_equal(object_text(next, "status.phase"), "Failed");
    assert_string_equal(object_text(o, "status.phase"), "Running");
    assert_false(object_is_same(o, next));
    assert_true(object_differs_only(o, next, status_only));
    assert_int_equal(object_with(o, "status", NULL, &without, &e), 0);
    assert_null(object_member(without, "status"));
    assert_true(object_differs_only(without, next, status_only));
    assert_false(object_is_same(without, o));
    assert_int_equal(
        object_with_meta(o,
                         &(struct meta_change){ .uid = "u-2",
                                                .generation = 4,
                                                .deletion_timestamp = "2026-01-02T03:04:05Z",
                                                .drop = (const char *[]){ "labels", NULL } },
                         &meta, &e),
        0);
    assert_true(object_is_deleting(meta));
    assert_string_equal(object_uid(meta), "u-2");
    assert_int_equal(object_generation(meta), 4);
    assert_int_equal(object_version(meta), 41);
    assert_null(object_label(meta, "app"));
    assert_string_equal(object_label(o, "app"), "web");
    assert_ptr_equal(object_member_doc(meta, "spec"), object_member_doc(o, "spec"));
}

static void test_thaw_and_freeze(void **state)
{
    OWN(object_done) struct object *o = must_parse(FULL), *same = NULL, *next = NULL;
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = object_thaw(o, "v1", ed);
    struct err e;

    assert_true(span_is(json_node_str(json_node_get(root, "kind")), "Pod"));
    assert_true(span_is(
        json_node_str(json_node_get(json_node_get(root, "metadata"), "resourceVersion")), "41"));
    assert_int_equal(object_freeze(&pod, o, root, &same, &e), 0);
    assert_true(object_is_same(o, same));
    assert_int_equal(object_version(same), 41);
    root = object_thaw(o, "v1", ed);
    json_node_set(json_node_get(root, "status"), "phase", json_edit_cstr(ed, "Failed"));
    json_node_set(json_node_get(json_node_get(root, "spec"), "x"), "y", json_edit_cstr(ed, "z"));
    assert_int_equal(object_freeze(&pod, o, root, &next, &e), 0);
    assert_string_equal(object_text(next, "status.phase"), "Failed");
    assert_ptr_equal(object_member_doc(next, "metadata"), object_member_doc(o, "metadata"));
    assert_ptr_equal(object_member_doc(next, "spec"), object_member_doc(o, "spec"));
}

static const struct row {
    const char *name, *text, *says;
} bad_rows[] = {
    { "a list", "[]", "the body is a JSON array, not an object" },
    { "metadata is a text", "{\"metadata\":\"x\"}", "metadata is a JSON string, not an object" },
    { "a version that is none", "{\"metadata\":{\"resourceVersion\":\"x\"}}",
      "metadata.resourceVersion: Invalid value: \"x\": must be a decimal number" },
    { "a NUL in a name", "{\"a\\u0000\":1}", "a member's name holds a NUL" },
};

static void test_refused(void **state)
{
    OWN(buf_done) struct buf many = BUF_INIT(1 << 16);
    struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e;

    EACH(r, bad_rows) {
        assert_int_equal(json_parse(span_cstr(r->text), NULL, &doc, &e), 0);
        if (object_parse(&pod, json_doc_root(doc), &o, &e) == 0)
            fail_msg("%s: taken", r->name);
        assert_string_equal(e.msg, r->says);
        assert_int_equal(e.code, ERR_INVALID);
        json_doc_unref(doc);
    }
    assert_int_equal(buf_add(&many, SPAN("{\"x\":0"), &e), 0);
    for (int i = 0; i < OBJECT_MEMBERS_MAX; i++)
        assert_int_equal(buf_addf(&many, &e, ",\"m%d\":{}", i), 0);
    assert_int_equal(buf_addc(&many, '}', &e), 0);
    assert_int_equal(json_parse(buf_span(&many), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(&pod, json_doc_root(doc), &o, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    json_doc_unref(doc);
}

static void test_a_lean_one_says_the_same(void **state)
{
    static const char body[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\","
        "\"labels\":{\"a\":\"a\"}},\"spec\":{\"nodeName\":\"a\"}}";
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(buf_done) struct buf one = BUF_INIT(4096), other = BUF_INIT(4096);
    struct object *o = NULL, *lean;
    struct err e;

    (void)state;
    assert_int_equal(json_parse(SPAN(body), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(kind_find("", "v1", "pods"), json_doc_root(doc), &o, &e), 0);
    lean = object_lean(o);
    assert_int_equal(object_write(o, "v1", &one, &e), 0);
    object_unref(o);
    assert_int_equal(object_write(lean, "v1", &other, &e), 0);
    assert_string_equal(buf_cstr(&one), buf_cstr(&other));
    assert_string_equal(object_name(lean), "a");
    assert_int_equal(object_version(lean), 7);
    object_unref(lean);
}

static void test_a_packed_one_says_the_same(void **state)
{
    static const char body[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\","
        "\"deletionTimestamp\":\"2026-11-18T00:00:00Z\",\"generation\":3,\"finalizers\":[\"x/y\",\"x/z\"],"
        "\"ownerReferences\":[{\"name\":\"o\"}]},\"spec\":{\"nodeName\":\"a\"}}";
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(buf_done) struct buf one = BUF_INIT(4096), other = BUF_INIT(4096);
    OWN(object_done) struct object *packed = NULL, *later = NULL, *again = NULL;
    struct object *o = NULL;
    struct err e;

    (void)state;
    assert_int_equal(json_parse(SPAN(body), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(kind_find("", "v1", "pods"), json_doc_root(doc), &o, &e), 0);
    assert_false(object_is_packed(o));
    packed = object_packed(o);
    assert_int_equal(object_write(o, "v1", &one, &e), 0);
    object_unref(o);
    assert_int_equal(object_write(packed, "v1", &other, &e), 0);
    assert_string_equal(buf_cstr(&one), buf_cstr(&other));
    later = object_with_version(packed, 8);
    assert_string_equal(object_name(later), "a");
    assert_string_equal(object_namespace(later), "n");
    assert_string_equal(object_uid(later), "u");
    assert_int_equal(object_version(later), 8);
    assert_int_equal(object_generation(later), 3);
    assert_true(object_is_deleting(later) && object_has_owners(later));
    assert_int_equal(object_finalizer_count(later), 2);
    assert_true(object_is_packed(later)); /* none of that was a look into it */
    assert_true(object_is_same(packed, later));
    assert_string_equal(object_text(later, "spec.nodeName"), "a");
    assert_false(object_is_packed(packed)); /* the two share it */
    again = object_packed(later);
    assert_true(object_is_packed(again));
    assert_string_equal(object_name(again), "a");
}

/* What a change of status leaves as it was is there once, also when it was looked into meanwhile. */
static void test_packed_versions_share_members(void **state)
{
    OWN(json_doc_done) struct json_doc *doc = NULL, *status = NULL;
    OWN(object_done)
    struct object *one = NULL, *two = NULL, *old = NULL, *old_again = NULL, *new = NULL;
    struct err e;

    (void)state;
    assert_int_equal(
        json_parse(SPAN("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"a\":1}}"), NULL, &doc, &e), 0);
    assert_int_equal(json_parse(SPAN("{\"b\":1}"), NULL, &status, &e), 0);
    assert_int_equal(object_parse(kind_find("", "v1", "pods"), json_doc_root(doc), &one, &e), 0);
    old = object_packed(one);
    assert_int_equal(object_with(old, "status", status, &two, &e), 0);
    (void)object_member(old, "spec");
    old_again = object_packed(old);
    new = object_packed(two);
    assert_ptr_equal(object_member_doc(old_again, "spec"), object_member_doc(new, "spec"));
    assert_ptr_equal(object_member_doc(old_again, "metadata"), object_member_doc(new, "metadata"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_versions_share_members),
        cmocka_unit_test(test_thaw_and_freeze),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_a_lean_one_says_the_same),
        cmocka_unit_test(test_a_packed_one_says_the_same),
        cmocka_unit_test(test_packed_versions_share_members),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
