#include "base/json_num.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* clang-format off */
static const struct row { double v; const char *text; } rows[] = {
    { 0.0, "0.0" }, { -0.0, "-0.0" }, { 1.0, "1.0" }, { 5.0, "5.0" }, { -2.5, "-2.5" }, { 0.1, "0.1" },
    { 100.0, "100.0" }, { 1e15, "1000000000000000.0" }, { 1e16, "1e+16" }, { 123456789012345680.0, "1.2345678901234568e+17" },
    { 1e22, "1e+22" }, { 1e23, "1e+23" }, { 1e100, "1e+100" }, { 0.0001, "0.0001" }, { 0.00012345, "0.00012345" },
    { 0.00001, "1e-05" }, { 1.5e-7, "1.5e-07" }, { 1.0 / 3, "0.3333333333333333" }, { 2.0 / 3, "0.6666666666666666" },
    { 0.1 + 0.2, "0.30000000000000004" }, { 5e-324, "5e-324" }, { 2.2250738585072014e-308, "2.2250738585072014e-308" },
    { 2.225073858507201e-308, "2.225073858507201e-308" }, { 1.7976931348623157e308, "1.7976931348623157e+308" },
    { 5.684341886080802e-14, "5.684341886080802e-14" }, /* 2^-44: the nearest 16 digits do not read back */
    { 9007199254740991.0, "9007199254740991.0" }, { 9007199254740992.0, "9007199254740992.0" }, { 9007199254740993.0, "9007199254740992.0" },
    { 1731744000.123456, "1731744000.123456" }, { 12345.678, "12345.678" }, { 999999999999999.9, "999999999999999.9" },
    { 9.5, "9.5" }, { 4.35, "4.35" }, { 0.5, "0.5" },
};

static const struct read_row { const char *text; double v; } reads[] = {
    { "9007199254740993", 9007199254740992.0 },   /* a tie: to even */
    { "9007199254740993.0000000000000000000000000000000001", 9007199254740994.0 },
    { "1e22", 1e22 }, { "1e23", 1e23 }, { "10000000000000000000000", 1e22 }, { "0.000001", 1e-6 }, { "0e999999999999999", 0 },
    { "0.0e-5", 0 }, { "1e-99999999999999999999", 0 }, { "2.4703282292062328e-324", 5e-324 }, { "2.4703282292062327e-324", 0 },
    { "123456789.123456789e-300", 1.23456789123456789e-292 }, { "00000.5", 0.5 },
};
/* clang-format on */

static void test_write(void **state)
{
    EACH(r, rows) {
        char text[JSON_NUM_TEXT_BYTES + 1];
        double back = NAN;
        size_t n = json_num_write(r->v, text);

        text[n] = '\0';
        assert_string_equal(text, r->text);
        assert_true(json_num_read(span_of(text, n), &back) && back == r->v);
        assert_int_equal(signbit(back) != 0, signbit(r->v) != 0);
    }
}

static void test_read(void **state)
{
    EACH(r, reads) {
        double v = NAN;

        if (!json_num_read(span_cstr(r->text), &v) || v != r->v)
            fail_msg("%s: %.17g, want %.17g", r->text, v, r->v);
    }
}

static void test_not_finite(void **state)
{
    double v = 7;

    assert_false(json_num_read(SPAN("1e309"), &v));
    assert_false(json_num_read(SPAN("-1.8e308"), &v));
    assert_false(json_num_read(SPAN("1e99999999999999999999999"), &v));
    assert_true(v == 7);
}

/* A tie is decided at the digit that breaks it, however far out; 5000 digits are more than we keep. */
static void test_far_digits(void **state)
{
    static char text[5100];
    double v = 0;

    memset(text, '0', sizeof text);
    memcpy(text, "9007199254740993.", 17);
    assert_true(json_num_read(span_of(text, 5000), &v) && v == 9007199254740992.0);
    text[4999] = '1';
    assert_true(json_num_read(span_of(text, 5000), &v) && v == 9007199254740994.0);
}

/* Any bit pattern survives the trip: a cheap generator walks them. */
static void test_round_trip(void **state)
{
    uint64_t bits = 88172645463325252u;

    for (int i = 0; i < 20000; i++) {
        char text[JSON_NUM_TEXT_BYTES];
        double v, back = 0;

        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        assert_true(json_num_read(span_of(text, json_num_write(v, text)), &back));
        assert_memory_equal(&back, &v, sizeof v);
    }
}

static void test_integers(void **state)
{
    static const struct {
        int64_t v;
        const char *text;
    } ints[] = { { 0, "0" },
                 { 7, "7" },
                 { -7, "-7" },
                 { 10, "10" },
                 { 99, "99" },
                 { 100, "100" },
                 { INT64_MAX, "9223372036854775807" },
                 { INT64_MIN, "-9223372036854775808" } };
    char text[JSON_NUM_TEXT_BYTES];

    EACH(r, ints)
        assert_true(span_is(span_of(text, json_num_write_i64(r->v, text)), r->text));
    assert_true(
        span_is(span_of(text, json_num_write_u64(UINT64_MAX, text)), "18446744073709551615"));
    assert_true(span_is(span_of(text, json_num_write_u64(0, text)), "0"));
}

/* A library's host may have set any locale; where one with a decimal comma is here, nothing changes. */
static void test_locale(void **state)
{
    static const char *const commas[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8" };

    for (size_t i = 0; i < LEN(commas); i++)
        if (setlocale(LC_ALL, commas[i]))
            break;
    test_write(state);
    test_read(state);
    (void)setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(test_write),      cmocka_unit_test(test_read),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_far_digits),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_integers),
        cmocka_unit_test(test_locale),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
