#include "kube/keymap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { NAMES = 1000 };

struct thing {
    struct keymap_node node;
    char namespace[8], name[16];
    bool is_in;
};

static void count(struct keymap_node *node, void *ctx)
{
    assert_true(CONTAINER(node, struct thing, node)->is_in);
    ++*(size_t *)ctx;
}

static void test_a_thing_is_found_by_both_its_names(void **state)
{
    struct keymap m = KEYMAP_INIT;
    struct keymap_node a = { 0 }, b = { 0 };

    (void)state;
    assert_null(keymap_get(&m, "x", "y"));
    keymap_add(&m, &a, "x", "yz");
    keymap_add(&m, &b, "xy", "z");
    assert_ptr_equal(keymap_get(&m, "x", "yz"), &a);
    assert_ptr_equal(keymap_get(&m, "xy", "z"), &b);
    assert_null(keymap_get(&m, "", "xyz"));
    assert_null(keymap_get(&m, "x", "y"));
    keymap_remove(&m, &a);
    assert_null(keymap_get(&m, "x", "yz"));
    assert_int_equal(m.count, 1);
    keymap_done(&m);
}

static void test_many_come_and_go(void **state)
{
    static struct thing things[NAMES];
    struct keymap m = KEYMAP_INIT;
    unsigned seed = 3;
    size_t in = 0, met = 0;

    (void)state;
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(things[i].namespace, sizeof things[i].namespace, "n%d", i % 7);
        (void)snprintf(things[i].name, sizeof things[i].name, "thing-%d", i);
    }
    for (int i = 0; i < NAMES * 20; i++) {
        struct thing *t;

        seed = seed * 1103515245u + 12345u;
        t = &things[seed / 65536u % NAMES];
        if (t->is_in)
            keymap_remove(&m, &t->node), in--;
        else
            keymap_add(&m, &t->node, t->namespace, t->name), in++;
        t->is_in = !t->is_in;
    }
    assert_int_equal(m.count, in);
    for (int i = 0; i < NAMES; i++) {
        struct keymap_node *found = keymap_get(&m, things[i].namespace, things[i].name);

        assert_ptr_equal(found, things[i].is_in ? &things[i].node : NULL);
    }
    keymap_each(&m, count, &met);
    assert_int_equal(met, in);
    keymap_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thing_is_found_by_both_its_names),
        cmocka_unit_test(test_many_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
