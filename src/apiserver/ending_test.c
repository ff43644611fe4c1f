#include "apiserver/ending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void add(struct ending *e, const char *group, const char *plural, const char *meta)
{
    const struct kind *k = kind_find(group, NULL, plural);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;
    char text[400];
    struct err err;

    (void)snprintf(text, sizeof text, "{\"metadata\":{%s}}", meta);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &err), 0);
    assert_int_equal(object_parse(k, json_doc_root(doc), &o, &err), 0);
    ending_add(e, k, o);
}

static const char *member(struct json_node *namespace, size_t i, const char *name)
{
    struct json_node *list = json_node_get(json_node_get(namespace, "status"), "conditions");

    return json_node_cstr(json_node_get(json_node_at(list, i), name));
}

static void what_is_left(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(ending_done) struct ending e = { .kind_count = 0 }, nothing = { .kind_count = 0 };
    struct json_node *namespace = json_edit_object(ed);

    add(&e, "", "secrets", "");
    add(&e, "agents.x-k8s.io", "sandboxes", "\"finalizers\":[\"b\",\"a\"]");
    add(&e, "", "configmaps", "\"finalizers\":[\"b\"]");
    add(&e, "", "configmaps", "");
    assert_true(ending_write(&e, namespace, "T1"));
    assert_string_equal(member(namespace, 0, "type"), "NamespaceDeletionDiscoveryFailure");
    assert_string_equal(member(namespace, 3, "status"), "True");
    assert_string_equal(member(namespace, 3, "message"),
                        "Some resources are remaining: configmaps. has 2 resource instances, "
                        "sandboxes.agents.x-k8s.io has 1 resource instances, secrets. has 1 "
                        "resource instances");
    assert_string_equal(member(namespace, 4, "message"),
                        "Some content in the namespace has finalizers remaining: a in 1 resource "
                        "instances, b in 2 resource instances");
    assert_false(ending_write(&e, namespace, "T2")); /* it says so already */
    add(&e, "", "secrets", "");
    assert_true(ending_write(&e, namespace, "T3"));
    assert_string_equal(member(namespace, 3, "lastTransitionTime"), "T1"); /* still True */
    assert_true(ending_write(&nothing, namespace, "T4"));
    assert_string_equal(member(namespace, 3, "reason"), "ContentRemoved");
    assert_string_equal(member(namespace, 3, "lastTransitionTime"), "T4");
    assert_string_equal(member(namespace, 0, "lastTransitionTime"), "T1");
    assert_null(member(namespace, 5, "type"));
}

/* Names are somebody's: more of them than there is room for change nothing else. */
static void finalizers_have_an_end(void **state)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    OWN(ending_done) struct ending e = { .kind_count = 0 };
    char meta[64];

    for (int i = 0; i < 100; i++) {
        (void)snprintf(meta, sizeof meta, "\"finalizers\":[\"f%d\"]", i);
        add(&e, "", "configmaps", meta);
    }
    assert_int_equal(e.finalizer_count, ENDING_FINALIZERS_MAX);
    assert_int_equal(e.kinds[0].count, 100);
    assert_true(ending_write(&e, json_edit_object(ed), "T"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left),
        cmocka_unit_test(finalizers_have_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
