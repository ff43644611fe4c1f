#include "podstream/log_filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

/* clang-format off */
static const struct log_entry entries[] = {
    { BYTES("2026-11-16T09:30:00.000000001Z"), POD_STDOUT, true, BYTES("one") },
    { BYTES("2026-11-16T09:30:01.000000000Z"), POD_STDERR, true, BYTES("two") },
    { BYTES("2026-11-16T09:30:01.500000000Z"), POD_STDOUT, false, BYTES("thr") },
    { BYTES("2026-11-16T09:30:01.600000000Z"), POD_STDERR, true, BYTES("between") },
    { BYTES("2026-11-16T09:30:02.000000000Z"), POD_STDOUT, true, BYTES("ee") },
    { BYTES("2026-11-16T09:30:03.000000000Z"), POD_STDOUT, true, BYTES("") },
};
/* clang-format on */

static void test_wishes(void **state)
{
    static const struct row {
        const char *name;
        struct pod_log_wish wish;
        uint64_t skip;
        const char *want;
        bool is_full;
    } rows[] = {
        { "all", { .since = "" }, 0, "one\ntwo\nthrbetween\nee\n\n", false },
        { "stdout", { .since = "", .streams = POD_STREAMS_STDOUT }, 0, "one\nthree\n\n", false },
        { "stderr", { .since = "", .streams = POD_STREAMS_STDERR }, 0, "two\nbetween\n", false },
        { "the tail", { .since = "" }, 3, "ee\n\n", false },
        { "no tail", { .since = "" }, 5, "", false },
        { "since a second",
          { .since = "2026-11-16T09:30:01Z" },
          0,
          "two\nthrbetween\nee\n\n",
          false },
        { "since a part of one",
          { .since = "2026-11-16T09:30:01.55Z" },
          0,
          "between\nee\n\n",
          false },
        { "since later", { .since = "2026-11-16T09:31:00Z" }, 0, "", false },
        { "the tail counts before the time", { .since = "2026-11-16T09:30:02Z" }, 4, "\n", false },
        { "times",
          { .since = "2026-11-16T09:30:01.1Z", .has_times = true, .streams = POD_STREAMS_STDOUT },
          0,
          "2026-11-16T09:30:01.500000000Z three\n2026-11-16T09:30:03.000000000Z \n",
          false },
        { "bytes", { .since = "", .limit = 6 }, 0, "one\ntw", true },
        { "bytes with times", { .since = "", .limit = 5, .has_times = true }, 0, "2026-", true },
        { "bytes of the tail", { .since = "", .limit = 3 }, 3, "ee\n", true },
    };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(4096);
        struct pod_log_wish wish = r->wish;
        struct log_filter f;

        if (!wish.limit)
            wish.limit = UINT64_MAX;
        log_filter_init(&f, &wish, r->skip);
        EACH(entry, entries)
            log_filter_add(&f, entry, &out);
        if (!span_is(buf_span(&out), r->want) || log_filter_is_full(&f) != r->is_full)
            fail_msg("%s: '%s'", r->name, buf_cstr(&out));
    }
}

int main(void)
{
    const struct CMUnitTest all[] = { cmocka_unit_test(test_wishes) };

    return cmocka_run_group_tests(all, NULL, NULL);
}
