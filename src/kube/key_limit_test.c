#include "kube/key_limit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_each_has_so_many(void **state)
{
    struct key_limit_row *a[2], *b, *none = (struct key_limit_row *)a;
    struct key_limit c = { .max = 2 };

    (void)state;
    assert_true(key_limit_enter(&c, "a", &a[0]) && key_limit_enter(&c, "a", &a[1]));
    assert_false(key_limit_enter(&c, "a", &none));
    assert_null(none);
    assert_true(key_limit_enter(&c, "b", &b));
    key_limit_leave(&c, a[0]);
    assert_true(key_limit_enter(&c, "a", &a[0]));
    assert_false(key_limit_enter(&c, "a", &none));
    key_limit_leave(&c, a[0]);
    key_limit_leave(&c, a[1]);
    key_limit_leave(&c, b);
    key_limit_leave(&c, none);
    assert_int_equal(c.rows.count, 0);
    key_limit_done(&c);
}

static void test_without_a_limit_none_is_counted(void **state)
{
    struct key_limit_row *one;
    struct key_limit c = { 0 };

    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_true(key_limit_enter(&c, "a", &one));
        assert_null(one);
    }
    key_limit_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_has_so_many),
        cmocka_unit_test(test_without_a_limit_none_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
