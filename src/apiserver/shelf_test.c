#include "apiserver/shelf.h"

#include "kube/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct object *make(const char *namespace, const char *name)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    char text[256];
    struct err e;

    (void)snprintf(text, sizeof text, "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\"}}",
                   namespace, name);
    assert_int_equal(json_parse(span_cstr(text), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(kind_find("", "v1", "configmaps"), json_doc_root(doc), &o, &e),
                     0);
    return o;
}

static struct shelf *with(struct shelf *s, unsigned kind, const char *namespace, const char *name)
{
    struct object *o = make(namespace, name);
    struct shelf *next = shelf_put(s, kind, o);

    object_unref(o);
    shelf_unref(s);
    return next;
}

static void read_all(const struct shelf *s, const struct shelf_key *from, bool is_after, char *out)
{
    struct shelf_walk w;
    struct object *o;

    *out = '\0';
    shelf_walk_init(&w, s, from, is_after);
    while ((o = shelf_walk_next(&w, NULL)))
        out += snprintf(out, 64, "%s/%s ", object_namespace(o), object_name(o));
}

static void test_objects_stand_in_order(void **state)
{
    struct shelf *s = NULL;
    char text[256];

    (void)state;
    s = with(s, 2, "b", "y");
    s = with(s, 2, "a", "z");
    s = with(s, 2, "b", "x");
    s = with(s, 1, "q", "q");
    s = with(s, 2, "b", "x"); /* instead of the first */
    assert_int_equal(shelf_count(s), 4);
    read_all(s, &(struct shelf_key){ 0, "", "" }, false, text);
    assert_string_equal(text, "q/q a/z b/x b/y ");
    read_all(s, &(struct shelf_key){ 2, "b", "" }, false, text);
    assert_string_equal(text, "b/x b/y ");
    read_all(s, &(struct shelf_key){ 2, "b", "x" }, false, text);
    assert_string_equal(text, "b/x b/y ");
    read_all(s, &(struct shelf_key){ 2, "b", "x" }, true, text);
    assert_string_equal(text, "b/y ");
    read_all(s, &(struct shelf_key){ 3, "", "" }, false, text);
    assert_string_equal(text, "");
    assert_int_equal(shelf_rank(s, &(struct shelf_key){ 2, "", "" }), 1);
    assert_int_equal(shelf_rank(s, &(struct shelf_key){ 2, "b", "y" }), 3);
    assert_null(shelf_get(s, &(struct shelf_key){ 1, "b", "x" }));
    assert_string_equal(object_name(shelf_get(s, &(struct shelf_key){ 2, "a", "z" })), "z");
    shelf_unref(s);
}

static void test_a_snapshot_stays_as_it_was(void **state)
{
    struct shelf *s = with(NULL, 1, "a", "a"), *old, *next;
    char text[256];

    (void)state;
    s = with(s, 1, "a", "b");
    old = shelf_ref(s);
    s = with(s, 1, "a", "c");
    next = shelf_remove(s, &(struct shelf_key){ 1, "a", "a" });
    shelf_unref(s);
    read_all(next, &(struct shelf_key){ 0, "", "" }, false, text);
    assert_string_equal(text, "a/b a/c ");
    read_all(old, &(struct shelf_key){ 0, "", "" }, false, text);
    assert_string_equal(text, "a/a a/b ");
    s = shelf_remove(next, &(struct shelf_key){ 1, "a", "nobody" });
    assert_ptr_equal(s, next);
    shelf_unref(s);
    shelf_unref(next);
    shelf_unref(old);
}

/* The same changes to a shelf and to a row of flags; every so often they must agree, and the tree must be shallow. */
static void test_many_changes_agree_with_a_plain_list(void **state)
{
    enum { NAMES = 700, STEPS = 20000 };
    static bool is_there[NAMES];
    struct shelf *s = NULL;
    unsigned seed = 12345;

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        unsigned n = (seed = seed * 1103515245u + 12345u) >> 16;
        struct shelf_key key = { 1, "n", NULL };
        struct shelf *next;
        char name[16];

        (void)snprintf(name, sizeof name, "%04u", n % NAMES);
        key.name = name;
        if (n & 0x4000) {
            s = with(s, 1, "n", name);
            is_there[n % NAMES] = true;
        } else {
            next = shelf_remove(s, &key);
            shelf_unref(s);
            s = next;
            is_there[n % NAMES] = false;
        }
        if (step % 1000 == 0) {
            size_t count = 0;

            for (int i = 0; i < NAMES; i++) {
                (void)snprintf(name, sizeof name, "%04d", i);
                assert_int_equal(shelf_get(s, &key) != NULL, is_there[i]);
                assert_int_equal(shelf_rank(s, &key), count);
                count += is_there[i];
            }
            assert_int_equal(shelf_count(s), count);
        }
    }
    shelf_unref(s);
}

/* Changes in place, with a snapshot held for some steps: it must not see them. */
static void test_changes_in_place_spare_snapshots(void **state)
{
    enum { NAMES = 64, STEPS = 20000 };
    static bool is_there[NAMES], was_there[NAMES];
    struct shelf *s = NULL, *held = NULL;
    unsigned seed = 4711;

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        unsigned n = (seed = seed * 1103515245u + 12345u) >> 16;
        struct shelf_key key = { 1, "n", NULL };
        char name[16];

        (void)snprintf(name, sizeof name, "%04u", n % NAMES);
        key.name = name;
        is_there[n % NAMES] = n & 0x4000;
        if (n & 0x4000) {
            struct object *o = make("n", name);

            s = shelf_set(s, 1, o);
            assert_ptr_equal(shelf_get(s, &key), o);
            object_unref(o);
        } else {
            s = shelf_drop(s, &key);
        }
        if (step % 7)
            continue;
        for (int i = 0; i < NAMES; i++) {
            (void)snprintf(name, sizeof name, "%04d", i);
            assert_int_equal(shelf_get(s, &key) != NULL, is_there[i]);
            assert_int_equal(shelf_get(held, &key) != NULL, was_there[i]);
        }
        shelf_unref(held);
        held = shelf_ref(s);
        memcpy(was_there, is_there, sizeof was_there);
    }
    shelf_unref(held);
    shelf_unref(s);
}

static void test_sorted_input_keeps_the_tree_shallow(void **state)
{
    struct shelf *s = NULL;
    struct shelf_walk w;
    char name[16];

    (void)state;
    for (int i = 0; i < 4096; i++) {
        (void)snprintf(name, sizeof name, "%06d", i);
        s = with(s, 1, "", name);
    }
    shelf_walk_init(&w, s, &(struct shelf_key){ 0, "", "" }, false);
    assert_true(w.depth <= 24);
    shelf_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_stand_in_order),
        cmocka_unit_test(test_a_snapshot_stays_as_it_was),
        cmocka_unit_test(test_many_changes_agree_with_a_plain_list),
        cmocka_unit_test(test_changes_in_place_spare_snapshots),
        cmocka_unit_test(test_sorted_input_keeps_the_tree_shallow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
