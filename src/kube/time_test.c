#include "kube/time.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct row {
    struct span in;
    bool is_good;
    time_t want;
    long ns;
} rows[] = {
    { BYTES("1970-01-01T00:00:00Z"), true, 0, 0 },
    { BYTES("2026-11-16T09:30:00Z"), true, 1794821400, 0 },
    { BYTES("2026-11-16T10:30:00.25+01:00"), true, 1794821400, 250000000 },
    { BYTES("2026-11-16T04:00:00.123456789-05:30"), true, 1794821400, 123456789 },
    { BYTES("2024-02-29T00:00:00Z"), true, 1709164800, 0 },
    { BYTES("2023-02-29T00:00:00Z"), false },
    { BYTES("2026-11-16T09:30:00"), false },
    { BYTES("2026-11-16 09:30:00Z"), false },
    { BYTES("2026-11-16T24:00:00Z"), false },
    { BYTES("2026-13-16T00:00:00Z"), false },
    { BYTES("2026-11-16T09:30:00.Z"), false },
    { BYTES("2026-11-16T09:30:00Z "), false },
    { BYTES("2026-11-16T09:30:00+0100"), false },
    { BYTES("-001-11-16T09:30:00Z"), false },
    { BYTES(""), false },
};

static void moments_are_read(void **state)
{
    EACH(r, rows) {
        struct timespec t = { 7, 7 };

        if (kube_time_parse(r->in, &t) != r->is_good)
            fail_msg("'%.*s'", SPAN_ARG(r->in));
        assert_int_equal(t.tv_sec, r->is_good ? r->want : 7);
        assert_int_equal(t.tv_nsec, r->is_good ? r->ns : 7);
    }
}

static void moments_are_written(void **state)
{
    char text[TIME_TEXT_BYTES];

    assert_string_equal(kube_time_text(text, 1794821400), "2026-11-16T09:30:00Z");
    assert_string_equal(kube_microtime_text(text, (struct timespec){ 1794821400, 1234567 }),
                        "2026-11-16T09:30:00.001234Z");
}

static const struct {
    int64_t seconds;
    const char *want;
} ages[] = {
    { -5, "<invalid>" }, { -1, "0s" },         { 0, "0s" },         { 119, "119s" },
    { 120, "2m" },       { 599, "9m59s" },     { 600, "10m" },      { 10799, "179m" },
    { 10800, "3h" },     { 28799, "7h59m" },   { 28800, "8h" },     { 172799, "47h" },
    { 172800, "2d" },    { 691199, "7d23h" },  { 691200, "8d" },    { 63071999, "729d" },
    { 63072000, "2y" },  { 63158400, "2y1d" }, { 252288000, "8y" },
};

static void ages_are_short(void **state)
{
    char text[KUBE_AGE_BYTES];

    EACH(r, ages) {
        assert_string_equal(kube_age_text(text, r->seconds), r->want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_read),
        cmocka_unit_test(moments_are_written),
        cmocka_unit_test(ages_are_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
