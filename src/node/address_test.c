#include "node/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_each_has_its_own(void **state)
{
    struct addresses a = { 0 }, b = { 0 };
    char text[ADDRESS_TEXT_BYTES], again[ADDRESS_TEXT_BYTES], uid[16];

    (void)state;
    for (int i = 0; i < 2000; i++) {
        unsigned last;

        (void)snprintf(uid, sizeof uid, "%d", i % 1000); /* half of them want the other half's */
        addresses_take(&a, "default", uid, text);
        assert_int_equal(sscanf(text, "127.%*u.%*u.%u", &last), 1);
        assert_in_range(last, 1, 254);
    }
    assert_int_equal(a.n, 2000);
    for (size_t i = 1; i < a.n; i++)
        assert_true(a.v[i - 1] < a.v[i]);
    addresses_take(&b, "default", "x", text);
    addresses_give(&b, text);
    addresses_take(&b, "default", "x", again);
    assert_string_equal(text, again);
    addresses_done(&a);
    addresses_done(&b);
}

static void test_what_a_status_says_is_taken(void **state)
{
    struct addresses a = { 0 };
    char text[ADDRESS_TEXT_BYTES];

    (void)state;
    addresses_take(&a, "default", "x", text);
    assert_false(addresses_claim(&a, text)); /* somebody has it */
    addresses_give(&a, text);
    assert_true(addresses_claim(&a, text));
    assert_false(addresses_claim(&a, "127.0.0.1"));
    assert_false(addresses_claim(&a, "10.0.0.1"));
    assert_false(addresses_claim(&a, "127.128.0.1"));
    assert_false(addresses_claim(&a, "nonsense"));
    addresses_give(&a, "nonsense");
    assert_int_equal(a.n, 1);
    addresses_done(&a);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_has_its_own),
        cmocka_unit_test(test_what_a_status_says_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
