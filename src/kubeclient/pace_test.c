#include "kubeclient/pace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_pauses_double_up_to_their_ceiling(void **state)
{
    struct backoff b = { 0 };
    uint64_t full_ms = 100, least = UINT64_MAX, most = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        uint64_t ms = backoff_next_ms(&b, 100, 5000);

        assert_in_range(ms, full_ms / 2, full_ms);
        full_ms = MIN(2 * full_ms, (uint64_t)5000);
    }
    for (int i = 0; i < 100; i++) {
        uint64_t ms = backoff_next_ms(&b, 100, 5000);

        least = MIN(least, ms);
        most = MAX(most, ms);
    }
    assert_true(least < most); /* a random part */
}

static void test_retry_after(void **state)
{
    static const struct {
        const char *value;
        bool is_fine;
        uint64_t ms;
    } rows[] = {
        { "0", true, 0 },
        { " 7 ", true, 7000 },
        { "9999999999999", true, 60000 },
        { "-1", false, 0 },
        { "soon", false, 0 },
        { "", false, 0 },
        { "Thu, 01 Jan 1970 00:16:50 GMT", true, 10000 },
        { "Thu, 01 Jan 1970 00:00:00 GMT", true, 0 },
        { "Thu, 01 Jan 2970 00:00:00 GMT", true, 60000 },
    };

    (void)state;
    EACH(r, rows) {
        uint64_t ms = 0;

        if (retry_after_ms(span_cstr(r->value), 1000, 60, &ms) != r->is_fine || ms != r->ms)
            fail_msg("'%s': %llu", r->value, (unsigned long long)ms);
    }
}

static void test_a_bucket_lets_a_burst_through_and_then_its_rate(void **state)
{
    struct bucket b;

    (void)state;
    bucket_init(&b, 10, 3, 1000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bucket_take_ms(&b, 1000), 0);
    for (uint64_t i = 1; i < 5; i++)
        assert_in_range(bucket_take_ms(&b, 1000), i * 100, i * 100 + 1);
    assert_in_range(bucket_take_ms(&b, 1400), 100, 101); /* four came meanwhile, and were owed */
    assert_int_equal(bucket_take_ms(&b, 100000), 0);     /* never more than the burst is saved up */
    assert_int_equal(bucket_take_ms(&b, 100000), 0);
    assert_int_equal(bucket_take_ms(&b, 100000), 0);
    assert_true(bucket_take_ms(&b, 100000) > 0);
    bucket_init(&b, 0, 0, 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(bucket_take_ms(&b, 0), 0); /* no rate, no wait */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_double_up_to_their_ceiling),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_a_bucket_lets_a_burst_through_and_then_its_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
