#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* clang-format off */
static const struct row { time_t t; long ns; const char *http, *rfc3339, *rfc3339_ms; } rows[] = {
    { 0,          0,         "Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z" },
    { 784111777,  1000000,   "Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", "1994-11-06T08:49:37.001Z" },
    { 951782400,  999999999, "Tue, 29 Feb 2000 00:00:00 GMT", "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.999Z" },
    { 1794821400, 123456789, "Mon, 16 Nov 2026 09:30:00 GMT", "2026-11-16T09:30:00Z", "2026-11-16T09:30:00.123Z" },
    { 4102444799, 0,         "Thu, 31 Dec 2099 23:59:59 GMT", "2099-12-31T23:59:59Z", "2099-12-31T23:59:59.000Z" },
};

static const char *const bad[] = {
    "", "Mon", "Mon, 16 Nov 2026 09:30:00", "Mon, 16 Nov 2026 09:30:00 UTC", "Mon, 16 Nov 2026 09:30:00 GMT ", "Mon, 16 Nov 2026 9:30:00 GMT ",
    "Mon, 16 Nov 2026 24:00:00 GMT", "Mon, 16 Nov 2026 09:60:00 GMT", "Mon, 16 Nov 2026 09:30:61 GMT", "Mon, 00 Nov 2026 09:30:00 GMT",
    "Mon, 32 Nov 2026 09:30:00 GMT", "Mon, -1 Nov 2026 09:30:00 GMT", "Mon, +1 Nov 2026 09:30:00 GMT", "Mon, 16 nov 2026 09:30:00 GMT",
    "Mon, 16 anF 2026 09:30:00 GMT", "Xyz, 16 Nov 2026 09:30:00 GMT", "Mon, 16 Nov 0000 09:30:00 GMT", "Mon; 16 Nov 2026 09:30:00 GMT",
    "Monday, 16-Nov-26 09:30:00 GMT", "Mon Nov 16 09:30:00 2026",
};
/* clang-format on */

static void test_texts(void **state)
{
    char text[TIME_TEXT_BYTES];

    EACH(r, rows) {
        struct timespec t = { .tv_sec = r->t, .tv_nsec = r->ns };
        time_t back = 7;

        assert_string_equal(time_http(text, r->t), r->http);
        assert_string_equal(time_rfc3339(text, t, false), r->rfc3339);
        assert_string_equal(time_rfc3339(text, t, true), r->rfc3339_ms);
        assert_true(time_http_parse(r->http, &back));
        assert_int_equal(back, r->t);
    }
}

/* The C library's calendar is the judge: a moment in each day of more than an era around 1970, with all its leap years. */
static void test_calendar(void **state)
{
    char text[TIME_TEXT_BYTES], want[TIME_TEXT_BYTES];

    for (int64_t day = -100 * 366; day < 500 * 366; day++) {
        struct timespec t = { .tv_sec = day * 86400 + (day * 7919 % 86400 + 86400) % 86400 };
        struct tm tm;

        assert_non_null(gmtime_r(&t.tv_sec, &tm));
        assert_true(strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0);
        assert_string_equal(time_rfc3339(text, t, false), want);
        assert_true(strftime(want, sizeof want, "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
        assert_string_equal(time_http(text, t.tv_sec), want);
    }
}

static void test_refused(void **state)
{
    for (size_t i = 0; i < LEN(bad); i++) {
        time_t t = 7;

        if (time_http_parse(bad[i], &t) || t != 7)
            fail_msg("'%s' was read as %lld", bad[i], (long long)t);
    }
}

static void test_clock(void **state)
{
    uint64_t ms = time_mono_ms(), us = time_mono_us(), later = time_mono_us();

    assert_true(us / 1000 >= ms && us / 1000 - ms < 60000);
    assert_true(later >= us);
}

int main(void)
{
    const struct CMUnitTest list[] = { cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_calendar),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_clock) };

    return cmocka_run_group_tests(list, NULL, NULL);
}
