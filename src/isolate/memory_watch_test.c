#include "isolate/memory_watch.h"

#include "isolate/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static void choices(void **state)
{
    static const struct row {
        const char *name;
        struct memory_use v[3];
        uint64_t available;
        size_t want;
    } rows[] = {
        /* the floor is 1 GiB */
        { "enough is left", { { 9 * GIB, GIB }, { 1, GIB }, { 1, GIB } }, 2 * GIB, SIZE_MAX },
        { "one is over", { { 1, GIB }, { 2 * GIB, GIB }, { GIB, GIB } }, 900 * MIB, 1 },
        { "the most over, not the largest",
          { { 5 * GIB, 4 * GIB }, { 3 * GIB, GIB }, { 1, 1 } },
          900 * MIB,
          1 },
        { "none is over: others took it",
          { { GIB / 2, GIB }, { 3, GIB }, { 4, GIB } },
          900 * MIB,
          SIZE_MAX },
        { "none is over, and little is left",
          { { GIB / 2, 2 * GIB }, { GIB / 2, GIB }, { 4, GIB } },
          400 * MIB,
          1 },
        { "small ones would not help",
          { { MIB, GIB }, { 3, GIB }, { 4, 4 } },
          400 * MIB,
          SIZE_MAX },
    };

    (void)state;
    EACH(r, rows) {
        size_t got = memory_watch_choose(r->v, 3, r->available, GIB);

        if (got != r->want)
            fail_msg("%s: got %zd, want %zd", r->name, (ssize_t)got, (ssize_t)r->want);
    }
    assert_true(memory_watch_choose(NULL, 0, 0, GIB) == SIZE_MAX);
}

static void pace(void **state)
{
    (void)state;
    assert_int_equal(memory_watch_wait_ms(0, GIB), WATCH_STEP_MS);
    assert_int_equal(memory_watch_wait_ms(GIB, GIB), WATCH_STEP_MS);
    assert_int_equal(memory_watch_wait_ms(2000 * GIB, GIB), WATCH_REST_MS);
    assert_int_equal(memory_watch_wait_ms(GIB + 200 * WATCH_BYTES_PER_MS, GIB), 200);
}

static void figures(void **state)
{
    uint64_t bytes = 0;

    (void)state;
    assert_true(memory_watch_parse(SPAN("MemTotal: 9 kB\nMemAvailable:    7 kB\n"), &bytes));
    assert_int_equal(bytes, 7 << 10);
    assert_false(memory_watch_parse(SPAN("MemTotal: 9 kB\n"), &bytes));
    assert_false(memory_watch_parse(SPAN("MemAvailable: x kB\n"), &bytes));
}

/* Ourselves, with memory of ours in it. */
static void measured(void **state)
{
    static uint8_t much[8 * MIB];

    (void)state;
    memset(much, 1, sizeof much);
    assert_true(memory_watch_measure(getpid()) >= sizeof much);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(choices), cmocka_unit_test(pace),
                                        cmocka_unit_test(figures), cmocka_unit_test(measured) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
