#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static uint64_t pair(const char *a, const char *b)
{
    return hash_add(hash_add(0, span_cstr(a)), span_cstr(b));
}

static void test_the_same_text_has_the_same_number(void **state)
{
    (void)state;
    assert_true(pair("default", "a-name-of-some-length") ==
                pair("default", "a-name-of-some-length"));
    assert_true(hash_add(0, SPAN_NONE) == hash_add(0, SPAN("")));
}

static void test_where_a_pair_is_cut_counts(void **state)
{
    (void)state;
    assert_true(pair("ab", "c") != pair("a", "bc"));
    assert_true(pair("", "abc") != pair("abc", ""));
    assert_true(hash_add(0, SPAN("\0")) != hash_add(0, SPAN("\0\0")));
}

static void test_names_that_count_up_spread(void **state)
{
    enum { SLOTS = 256, NAMES = SLOTS * 32 };
    unsigned used[SLOTS] = { 0 };
    char name[32];

    (void)state;
    for (int i = 0; i < NAMES; i++) {
        int n = snprintf(name, sizeof name, "sandbox-%d", i);

        used[hash_add(0, span_of(name, (size_t)n)) % SLOTS]++;
    }
    for (int i = 0; i < SLOTS; i++)
        assert_in_range(used[i], 1, 96); /* 32 on average; chance stays far within this */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_text_has_the_same_number),
        cmocka_unit_test(test_where_a_pair_is_cut_counts),
        cmocka_unit_test(test_names_that_count_up_spread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
