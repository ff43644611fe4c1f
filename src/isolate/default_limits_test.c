#include "isolate/default_limits.h"

#include "isolate/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define GIB (1ull << 30)

static void figures(void **state)
{
    static const struct row {
        const char *name, *meminfo, *pid_max;
        struct machine want;
    } rows[] = {
        { "usual",
          "MemTotal:       24683880 kB\nMemFree:  1 kB\n",
          "32768\n",
          { 24683880ull << 10, 32768 } },
        { "not first", "A: 1 kB\nMemTotal: 4 kB\n", "4194304\n", { 4096, 4194304 } },
        { "nothing", "", "", { 0, 0 } },
        { "nonsense", "MemTotal: many kB\n", "-1\n", { 0, 0 } },
    };

    (void)state;
    EACH(r, rows) {
        struct machine got;

        default_limits_parse(span_cstr(r->meminfo), span_cstr(r->pid_max), &got);
        if (got.memory_bytes != r->want.memory_bytes || got.pid_max != r->want.pid_max)
            fail_msg("%s: %llu, %llu", r->name, (unsigned long long)got.memory_bytes,
                     (unsigned long long)got.pid_max);
    }
}

static void decisions(void **state)
{
    static const struct row {
        const char *name;
        struct machine machine;
        struct box_limits one, all;
    } rows[] = {
        { "a large one: a tenth stays free",
          { 40 * GIB, 4194304 },
          { .memory_bytes = 10 * GIB, .pids = 1024 },
          { .memory_bytes = 36 * GIB, .pids = 3145728 } },
        { "a laptop: one GiB stays free",
          { 8 * GIB, 32768 },
          { .memory_bytes = 2 * GIB, .pids = 1024 },
          { .memory_bytes = 7 * GIB, .pids = 24576 } },
        { "a small one: half stays free",
          { 1 * GIB, 32768 },
          { .memory_bytes = GIB / 4, .pids = 1024 },
          { .memory_bytes = GIB / 2, .pids = 24576 } },
        { "few processes",
          { 8 * GIB, 400 },
          { .memory_bytes = 2 * GIB, .pids = 300 },
          { .memory_bytes = 7 * GIB, .pids = 300 } },
        { "nothing is known: no limit", { 0, 0 }, { 0 }, { 0 } },
    };

    (void)state;
    EACH(r, rows) {
        struct box_limits one = default_limits_one(&r->machine);
        struct box_limits all = default_limits_all(&r->machine);

        assert_int_equal(one.cpu_shares, DEFAULT_CPU_SHARES);
        assert_int_equal(all.cpu_shares, DEFAULT_CPU_SHARES);
        one.cpu_shares = all.cpu_shares = 0;
        if (memcmp(&one, &r->one, sizeof one) != 0 || memcmp(&all, &r->all, sizeof all) != 0)
            fail_msg("%s: one %llu %llu, all %llu %llu", r->name,
                     (unsigned long long)one.memory_bytes, (unsigned long long)one.pids,
                     (unsigned long long)all.memory_bytes, (unsigned long long)all.pids);
    }
}

static void filled(void **state)
{
    const struct box_limits defaults = { .memory_bytes = 10, .pids = 20 };
    struct box_limits got;

    (void)state;
    got = default_limits_fill(&(struct box_limits){ 0 }, &defaults);
    assert_memory_equal(&got, &defaults, sizeof got);
    got = default_limits_fill(&(struct box_limits){ .memory_bytes = 1, .pids = 99, .cpu_milli = 5 },
                              &defaults);
    assert_int_equal(got.memory_bytes, 1);
    assert_int_equal(got.pids, 99);
    assert_int_equal(got.cpu_milli, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(figures), cmocka_unit_test(decisions),
                                        cmocka_unit_test(filled) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
