#include "apiserver/usage.h"

#include "apiserver/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct object *config_map(const char *namespace, const char *name, int bytes)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    char text[4096];
    struct object *o;
    struct err e;

    (void)snprintf(
        text, sizeof text,
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\"},\"data\":{\"v\":\"%0*d\"}}",
        namespace, name, bytes, 0);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(kind_find("", "v1", "configmaps"), json_doc_root(doc), &o, &e),
                     0);
    return o;
}

static void test_changes(void **state)
{
    OWN(object_done)
    struct object *small = config_map("a", "x", 10), *large = config_map("a", "x", 500),
                  *other = config_map("b", "x", 10);
    struct usage *u = usage_new();

    (void)state;
    usage_change(u, NULL, small);
    usage_change(u, NULL, other);
    assert_int_equal(usage_find(u, "a")->now.objects, 1);
    assert_int_equal(usage_find(u, "a")->now.bytes, object_text_size(small));
    usage_change(u, small, large);
    assert_int_equal(usage_find(u, "a")->now.objects, 1);
    assert_int_equal(usage_find(u, "a")->now.bytes, object_text_size(large));
    assert_true(object_text_size(large) >= object_text_size(small) + 490);
    usage_change(u, large, NULL);
    assert_int_equal(usage_find(u, "a")->now.objects, 0);
    assert_int_equal(usage_find(u, "a")->now.bytes, 0);
    assert_int_equal(usage_find(u, "b")->now.objects, 1);
    usage_free(u);
}

/* A state that is packed, or leaned, has the size that it had. */
static void test_sizes_are_those_of_the_state(void **state)
{
    OWN(object_done)
    struct object *o = config_map("a", "x", 2000), *packed = object_packed(o),
                  *lean = object_lean(o);

    (void)state;
    assert_int_equal(object_text_size(packed), object_text_size(o));
    assert_int_equal(object_text_size(lean), object_text_size(o));
}

static void test_counted_anew(void **state)
{
    unsigned kind = op_number(kind_find("", "v1", "configmaps"));
    struct usage *u = usage_new();
    struct shelf *s = NULL;
    uint64_t bytes = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        char name[16];
        OWN(object_done) struct object *o = NULL;

        (void)snprintf(name, sizeof name, "c%d", i);
        o = config_map(i % 2 ? "a" : "b", name, i);
        usage_change(u, NULL, o); /* which the count forgets */
        s = shelf_set(s, kind, o);
        bytes += i % 2 ? object_text_size(o) : 0;
    }
    for (int i = 0; i < 2; i++) {
        usage_recount(u, s);
        assert_int_equal(usage_find(u, "a")->now.objects, 50);
        assert_int_equal(usage_find(u, "a")->now.bytes, bytes);
    }
    usage_recount(u, NULL);
    assert_int_equal(usage_find(u, "a")->now.objects, 0);
    shelf_unref(s);
    usage_free(u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_sizes_are_those_of_the_state),
        cmocka_unit_test(test_counted_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
