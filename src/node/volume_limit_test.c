#include "node/volume_limit.h"

#include "node/limits.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MIB (1ull << 20)

/* Measured one after the other: what it holds in MiB, when, and whether that ends its Pod. */
struct step {
    uint64_t mib, ms;
    bool ends;
};

static const struct row {
    const char *name;
    uint64_t limit_mib, start_mib;
    struct step steps[6];
} rows[] = {
    { "within its size", 64, 0, { { 10, 1, false }, { 64, 100, false }, { 64, 5000, false } } },
    { "a tenth over, for long", 64, 0, { { 70, 1, false }, { 70, 9000, false } } },
    { "more for a second", 64, 0, { { 71, 1, false }, { 72, 900, false }, { 71, 1001, true } } },
    { "more, and back in time",
      64,
      0,
      { { 100, 1, false }, { 60, 800, false }, { 100, 1500, false }, { 100, 2500, true } } },
    { "twice its size at once", 64, 0, { { 127, 1, false }, { 128, 2, true } } },
    { "too much at the start stays", 64, 500, { { 500, 1, false }, { 501, 9000, false } } },
    { "and may not grow", 64, 500, { { 500, 1, false }, { 502, 2, true } } },
    { "nor grow back", 64, 500, { { 300, 1, false }, { 302, 2, true } } },
    { "nor below its size before",
      64,
      500,
      { { 10, 1, false },
        { 64, 2, false },
        { 70, 5000, false },
        { 80, 5001, false },
        { 80, 6001, true } } },
    { "no limit", 0, 0, { { 1 << 20, 1, false } } },
};

static void test_rules(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct volume_limit v;

        volume_limit_start(&v, r->limit_mib ? r->limit_mib * MIB : VOLUME_NO_LIMIT,
                           r->start_mib * MIB);
        for (const struct step *s = r->steps; s < r->steps + LEN(r->steps) && s->ms; s++)
            if (volume_limit_judge(&v, s->mib * MIB, s->ms) != s->ends)
                fail_msg("%s: at %llu ms with %llu MiB", r->name, (unsigned long long)s->ms,
                         (unsigned long long)s->mib);
    }
}

static void test_room(void **state)
{
    struct volume_limit v;

    (void)state;
    volume_limit_start(&v, 100 * MIB, 10 * MIB);
    assert_int_equal(volume_limit_room(&v), 100 * MIB);
    assert_false(volume_limit_judge(&v, 120 * MIB, 1));
    assert_int_equal(volume_limit_room(&v), 0);
    volume_limit_start(&v, VOLUME_NO_LIMIT, 10 * MIB);
    assert_true(volume_limit_room(&v) == UINT64_MAX);
    volume_limit_start(&v, UINT64_MAX - 1, 0); /* no overflow */
    assert_true(volume_limit_room(&v) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rules), cmocka_unit_test(test_room) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
