#include "controller/rest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Some pages of the program's own, which nothing but this test looks at. */
#define PAGES 64
static const uint8_t ballast[PAGES * 4096] = { [0] = 1,
                                               [PAGES * 2048] = 2,
                                               [PAGES * 4096 - 1] = 3 };
static uint8_t changed[4096] = { 4 };

static uint64_t sum(void)
{
    uint64_t total = 0;

    for (size_t i = 0; i < sizeof ballast; i++)
        total += ((const volatile uint8_t *)ballast)[i];
    return total;
}

/* Pages in the middle of the ballast that this process has mapped, by /proc/self/pagemap. */
static size_t mapped(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)ballast + page - 1) / page;
    size_t count = sizeof ballast / page - 1, n = 0;
    FILE *f = fopen("/proc/self/pagemap", "r");
    uint64_t entry;

    assert_non_null(f);
    assert_int_equal(fseek(f, (long)(from * sizeof entry), SEEK_SET), 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fread(&entry, sizeof entry, 1, f), 1);
        n += entry >> 63;
    }
    (void)fclose(f);
    return n;
}

static void test_what_goes_comes_back_as_it_was(void **state)
{
    uint8_t *kept = malloc(100000);

    (void)state;
    memset(kept, 7, 100000);
    changed[100] = 9;
    assert_int_equal(sum(), 6);
    assert_true(mapped() >= PAGES / 2);
    rest_give_back();
    assert_true(mapped() < PAGES / 2);
    assert_int_equal(sum(), 6);
    assert_int_equal(changed[0] + changed[100], 13);
    assert_int_equal(kept[99999], 7);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_goes_comes_back_as_it_was) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
