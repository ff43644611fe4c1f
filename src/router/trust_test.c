/* Ranges of addresses: who is inside, and what is no range. */
#include "router/trust.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const struct row {
    const char *ranges, *ip;
    bool is_in;
} rows[] = {
    { "", "10.0.0.1", false },
    { "10.0.0.0/8", "10.255.0.1", true },
    { "10.0.0.0/8", "11.0.0.1", false },
    { "10.1.2.3/8", "10.9.9.9", true }, /* bits behind the mask do not count */
    { "10.0.0.128/25", "10.0.0.200", true },
    { "10.0.0.128/25", "10.0.0.100", false },
    { "192.0.2.7", "192.0.2.7", true },
    { "192.0.2.7", "192.0.2.8", false },
    { "0.0.0.0/0", "8.8.8.8", true },
    { "0.0.0.0/0", "::1", false },
    { "fd00::/8, 10.0.0.0/8", "fd12::1", true },
    { " , fd00::/7 ,", "fc00::1", true },
    { "2001:db8::/33", "2001:db8:8000::1", false },
    { "2001:db8::/33", "2001:db8:7fff::1", true },
};

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct trust t = { 0 };
        struct net_addr a;
        struct err e;

        assert_int_equal(trust_add(&t, r->ranges, &e), 0);
        assert_true(net_addr_of_ip(span_cstr(r->ip), 80, &a));
        if (trust_has(&t, &a) != r->is_in)
            fail_msg("%s in '%s'", r->ip, r->ranges);
    }
}

static void test_what_is_no_range(void **state)
{
    static const char *const bad[] = { "10.0.0.0/33", "10.0.0/8",  "here",       "10.0.0.0/",
                                       "::/129",      "[::1]/128", "10.0.0.0/-1" };
    struct trust t = { 0 };
    struct err e;

    (void)state;
    EACH(text, bad) {
        assert_int_equal(trust_add(&t, *text, &e), -1);
        assert_int_equal(e.code, ERR_USAGE);
        assert_non_null(strstr(e.msg, *text));
    }
    for (size_t i = 0; i < TRUST_MAX; i++)
        assert_int_equal(trust_add(&t, "10.0.0.1", &e), 0);
    assert_int_equal(trust_add(&t, "10.0.0.1", &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows),
                                        cmocka_unit_test(test_what_is_no_range) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
