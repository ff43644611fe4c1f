#include "kube/backoff.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_waits_double_up_to_the_most(void **state)
{
    static const struct row {
        unsigned failures;
        uint64_t want_ms;
    } rows[] = {
        { 1, 5 },
        { 2, 10 },
        { 3, 20 },
        { 10, 2560 },
        { 18, 655360 },
        { 19, 1000000 },
        { UINT32_MAX, 1000000 },
    };

    (void)state;
    EACH(r, rows) {
        if (backoff_ms(5, 1000000, r->failures) != r->want_ms)
            fail_msg("after %u failures: %llu", r->failures,
                     (unsigned long long)backoff_ms(5, 1000000, r->failures));
    }
    assert_int_equal(backoff_ms(UINT64_MAX / 2 + 1, UINT64_MAX, 3), UINT64_MAX);
}

static void test_jitter_only_adds_and_spreads(void **state)
{
    struct backoff b = { .first_ms = 1000, .most_ms = 4000, .jitter = 0.5 };
    bool differs = false;
    uint64_t first = backoff_jitter_ms(1000, 0.5);

    (void)state;
    for (int i = 0; i < 64; i++) {
        uint64_t ms = backoff_jitter_ms(1000, 0.5);

        assert_in_range(ms, 1000, 1499);
        differs |= ms != first;
    }
    assert_true(differs);
    assert_in_range(backoff_next_ms(&b), 1000, 1499);
    assert_in_range(backoff_next_ms(&b), 2000, 2999);
    assert_in_range(backoff_next_ms(&b), 4000, 5999);
    assert_in_range(backoff_next_ms(&b), 4000, 5999);
    backoff_reset(&b);
    assert_in_range(backoff_next_ms(&b), 1000, 1499);
    assert_int_equal(backoff_jitter_ms(77, 0), 77);
}

static void test_a_bucket_lets_a_burst_pass_then_its_rate(void **state)
{
    struct bucket b;

    (void)state;
    bucket_init(&b, 10, 3, 500);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bucket_reserve_ms(&b, 500), 0);
    assert_int_equal(bucket_reserve_ms(&b, 500), 100);
    assert_int_equal(bucket_reserve_ms(&b, 500), 200);
    assert_int_equal(bucket_reserve_ms(&b, 600), 200); /* one came, three are promised */
    assert_false(bucket_take(&b, 899));
    assert_true(bucket_take(&b, 900));
    assert_false(bucket_take(&b, 900));
    assert_false(bucket_take(&b, 10)); /* a clock that goes back gives nothing */
    for (int i = 0; i < 3; i++)
        assert_true(bucket_take(&b, 1000000)); /* never more than the burst */
    assert_false(bucket_take(&b, 1000000));
}

static void test_without_a_rate_nothing_waits(void **state)
{
    struct bucket b;

    (void)state;
    bucket_init(&b, 0, 0, 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(bucket_reserve_ms(&b, 0), 0);
        assert_true(bucket_take(&b, 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_double_up_to_the_most),
        cmocka_unit_test(test_jitter_only_adds_and_spreads),
        cmocka_unit_test(test_a_bucket_lets_a_burst_pass_then_its_rate),
        cmocka_unit_test(test_without_a_rate_nothing_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
