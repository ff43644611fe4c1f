#include "runtime/sandboxd/registry.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_ids_count_from_one(void **state)
{
    (void)state;
    assert_int_equal(registry_next_id(), 1);
    assert_int_equal(registry_next_id(), 2);
    assert_int_equal(registry_next_id(), 3);
}

static void test_found_until_removed(void **state)
{
    struct process many[1000] = { 0 };
    int32_t first = registry_next_id();

    (void)state;
    registry_add(&many[0], first, NULL);
    for (size_t i = 1; i < LEN(many); i++)
        registry_add(&many[i], registry_next_id(), NULL);
    for (size_t i = 0; i < LEN(many); i++)
        assert_ptr_equal(registry_find(first + (int32_t)i), &many[i]);
    assert_null(registry_find(first + (int32_t)LEN(many)));
    assert_null(registry_find(0));
    assert_null(registry_find(-1));
    assert_null(registry_find(INT32_MIN));
    for (size_t i = 0; i < LEN(many); i += 2)
        registry_remove(&many[i]);
    for (size_t i = 0; i < LEN(many); i++)
        assert_ptr_equal(registry_find(first + (int32_t)i), i % 2 ? &many[i] : NULL);
    for (size_t i = 0; i < LEN(many); i++)
        registry_remove(&many[i]); /* half of them twice */
    for (size_t i = 0; i < LEN(many); i++)
        assert_null(registry_find(first + (int32_t)i));
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_ids_count_from_one),
        cmocka_unit_test(test_found_until_removed),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
