#include "base/str.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* clang-format off */
static const struct u64_row { const char *in; uint64_t max; bool ok; uint64_t v; } u64s[] = {
    { "0", 0, true, 0 }, { "1", 0, false, 0 }, { "9", 9, true, 9 }, { "10", 9, false, 0 }, { "007", 9, true, 7 },
    { "18446744073709551615", UINT64_MAX, true, UINT64_MAX }, { "18446744073709551616", UINT64_MAX, false, 0 },
    { "99999999999999999999999", UINT64_MAX, false, 0 }, { "65535", 65535, true, 65535 }, { "65536", 65535, false, 0 },
    { "", 9, false, 0 }, { " 1", 9, false, 0 }, { "1 ", 9, false, 0 }, { "+1", 9, false, 0 }, { "-1", 9, false, 0 },
    { "0x1", 99, false, 0 }, { "1a", 99, false, 0 }, { "\xd9\xa1", 99, false, 0 },
};
static const struct i64_row { const char *in; int64_t min, max; bool ok; int64_t v; } i64s[] = {
    { "-9223372036854775808", INT64_MIN, INT64_MAX, true, INT64_MIN }, { "-9223372036854775809", INT64_MIN, INT64_MAX, false, 0 },
    { "9223372036854775807", INT64_MIN, INT64_MAX, true, INT64_MAX }, { "9223372036854775808", INT64_MIN, INT64_MAX, false, 0 },
    { "-5", -4, 4, false, 0 }, { "5", -4, 4, false, 0 }, { "-4", -4, 4, true, -4 }, { "-0", -4, 4, true, 0 },
    { "-", -4, 4, false, 0 }, { "", -4, 4, false, 0 }, { "--1", -4, 4, false, 0 }, { "+1", -4, 4, false, 0 },
};
static const struct double_row { const char *in; bool ok; double v; } doubles[] = {
    { "0", true, 0 }, { "1.5", true, 1.5 }, { "-2.5e3", true, -2500 }, { "+7", true, 7 }, { ".5", true, 0.5 }, { "5.", true, 5 },
    { "1E+2", true, 100 }, { "1e-2", true, 0.01 }, { "00.1", true, 0.1 }, { "1e308", true, 1e308 },
    { "0.00000000000000000000000000000000000000000000000000000000000000000000000000000001", true, 1e-80 },
    { "1e309", false, 0 }, { "", false, 0 }, { ".", false, 0 }, { "-", false, 0 }, { "+", false, 0 }, { "e5", false, 0 },
    { "1e", false, 0 }, { "1e+", false, 0 }, { "1.2.3", false, 0 }, { "1,5", false, 0 }, { "inf", false, 0 }, { "nan", false, 0 },
    { "0x10", false, 0 }, { " 1", false, 0 }, { "1 ", false, 0 }, { "+-1", false, 0 }, { "1e5e5", false, 0 },
};
static const struct duration_row { const char *in; bool ok; uint64_t ms; } durations[] = {
    { "500ms", true, 500 }, { "2m", true, 120000 }, { "1h30m", true, 5400000 }, { "1.5s", true, 1500 }, { "1.5", true, 1500 },
    { "30", true, 30000 }, { "0", true, 0 }, { "1500us", true, 2 }, { "1ns", true, 0 }, { "1m0.5s", true, 60500 }, { ".5s", true, 500 },
    { "24h", true, 86400000 }, { "24h1ms", false, 0 }, { "1h30", false, 0 }, { "10s5", false, 0 }, { "", false, 0 }, { "s", false, 0 },
    { "-1s", false, 0 }, { "+1s", false, 0 }, { "1x", false, 0 }, { "1 s", false, 0 }, { "1.2.3s", false, 0 }, { "1S", false, 0 },
    { "1e3", false, 0 }, { "999999999999999999999999999h", false, 0 }, { "inf", false, 0 },
};
static const struct bytes_row { const char *in; bool ok; uint64_t v; } sizes[] = {
    { "4096", true, 4096 }, { "64KiB", true, 65536 }, { "64k", true, 65536 }, { "10M", true, 10485760 }, { "1g", true, 1073741824 },
    { "2Ti", true, 2199023255552 }, { "5b", true, 5 }, { "7B", true, 7 }, { "1kb", true, 1024 }, { "0", true, 0 }, { "16777215T", true, 16777215ull << 40 },
    { "16777216T", false, 0 }, { "", false, 0 }, { "k", false, 0 }, { "1x", false, 0 }, { "1kk", false, 0 }, { "1bb", false, 0 },
    { "1.5k", false, 0 }, { "-1", false, 0 }, { "1 k", false, 0 }, { "1kib2", false, 0 },
};
static const struct bool_row { const char *in; bool ok, v; } bools[] = {
    { "1", true, true }, { "t", true, true }, { "TRUE", true, true }, { "True", true, true }, { "yes", true, true }, { "on", true, true },
    { "0", true, false }, { "F", true, false }, { "false", true, false }, { "False", true, false }, { "no", true, false }, { "off", true, false },
    { "", false, false }, { "tRUE", false, false }, { "2", false, false }, { "true ", false, false }, { "y", false, false },
};
/* clang-format on */

static void test_numbers(void **state)
{
    EACH(r, u64s) {
        uint64_t v = 77;

        if (str_u64(span_cstr(r->in), r->max, &v) != r->ok || v != (r->ok ? r->v : 77))
            fail_msg("u64 '%s': %llu", r->in, (unsigned long long)v);
    }
    EACH(r, i64s) {
        int64_t v = 77;

        if (str_i64(span_cstr(r->in), r->min, r->max, &v) != r->ok || v != (r->ok ? r->v : 77))
            fail_msg("i64 '%s': %lld", r->in, (long long)v);
    }
    EACH(r, doubles) {
        double v = 77;

        if (str_double(span_cstr(r->in), &v) != r->ok || v != (r->ok ? r->v : 77))
            fail_msg("double '%s': %g", r->in, v);
    }
}

static void test_units(void **state)
{
    EACH(r, durations) {
        uint64_t v = 77;

        if (str_duration_ms(span_cstr(r->in), 86400000, &v) != r->ok || v != (r->ok ? r->ms : 77))
            fail_msg("duration '%s': %llu", r->in, (unsigned long long)v);
    }
    EACH(r, sizes) {
        uint64_t v = 77;

        if (str_bytes(span_cstr(r->in), UINT64_MAX, &v) != r->ok || v != (r->ok ? r->v : 77))
            fail_msg("bytes '%s': %llu", r->in, (unsigned long long)v);
    }
    EACH(r, bools) {
        bool v = !r->v;

        if (str_bool(span_cstr(r->in), &v) != r->ok || v != (r->ok ? r->v : !r->v))
            fail_msg("bool '%s'", r->in);
    }
}

static void test_unit_ceilings(void **state)
{
    uint64_t v = 77;

    assert_true(str_bytes(SPAN("4k"), 4096, &v) && v == 4096);
    assert_false(str_bytes(SPAN("5k"), 4096, &v));
    assert_true(str_duration_ms(SPAN("9e0s"), UINT64_MAX, &v) == false);
    assert_false(str_duration_ms(SPAN("18446744073709551616ms"), UINT64_MAX, &v));
    assert_true(str_duration_ms(SPAN("9007199254740992ms"), UINT64_MAX, &v) &&
                v == 9007199254740992u);
}

/* clang-format off */
static const struct pair { const char *name; struct span plain, coded; } decodes[] = {
    { "plain", BYTES("a/b.txt"), BYTES("a/b.txt") }, { "escape", BYTES("a b"), BYTES("a%20b") }, { "slash", BYTES("a/b"), BYTES("a%2Fb") },
    { "lower case", BYTES("/"), BYTES("%2f") }, { "once only", BYTES("%2e"), BYTES("%252e") }, { "plus is literal", BYTES("a+b"), BYTES("a+b") },
    { "NUL", BYTES("a\0b"), BYTES("a%00b") }, { "cut escape", BYTES("a%2"), BYTES("a%2") }, { "percent at end", BYTES("%"), BYTES("%") },
    { "bad hex", BYTES("%zz%4g"), BYTES("%zz%4g") }, { "bad then good", BYTES("%A"), BYTES("%%41") }, { "bytes", BYTES("\xc3\xa9"), BYTES("%C3%A9") },
    { "empty", BYTES(""), BYTES("") },
};
static const struct encode_row { const char *safe; struct span plain; const char *coded; } encodes[] = {
    { "", BYTES("a/b c"), "a%2Fb%20c" }, { "/", BYTES("a/b c"), "a/b%20c" }, { "", BYTES("-_.~"), "-_.~" }, { "", BYTES("\0\xff%+"), "%00%FF%25%2B" },
    { "", BYTES(""), "" }, { "", BYTES("@[`{"), "%40%5B%60%7B" },
};
static const struct pair base64s[] = {
    { "0", BYTES(""), BYTES("") }, { "1", BYTES("f"), BYTES("Zg==") }, { "2", BYTES("fo"), BYTES("Zm8=") }, { "3", BYTES("foo"), BYTES("Zm9v") },
    { "4", BYTES("foob"), BYTES("Zm9vYg==") }, { "bits", BYTES("\xfb\xff\xfe\0"), BYTES("+//+AA==") },
};
static const struct { const char *in, *msg; } bad64s[] = {
    { "Zg=", "base64 text of 3 characters: not a multiple of 4" }, { "Zg", "base64 text of 2 characters: not a multiple of 4" },
    { "Zm9vZ===", "base64 text: bad character at 5" }, { "====", "base64 text: bad character at 0" }, { "Zg==Zg==", "base64 text: bad character at 2" },
    { "Zm9v-_AA", "base64 text: bad character at 4" }, { "Zm 9", "base64 text: bad character at 2" }, { "Zm9vZm\nv", "base64 text: bad character at 6" },
};
/* clang-format on */

static void test_percent(void **state)
{
    struct err e;

    EACH(r, decodes) {
        OWN(buf_done) struct buf out = BUF_INIT(100);

        assert_int_equal(str_percent_decode(r->coded, &out, &e), 0);
        if (!span_eq(buf_span(&out), r->plain))
            fail_msg("%s: '%s'", r->name, buf_cstr(&out));
    }
    EACH(r, encodes) {
        OWN(buf_done)
        struct buf out = BUF_INIT(100), tight = BUF_INIT(strlen(r->coded) - (r->plain.n > 0));

        assert_int_equal(str_percent_encode(r->plain, r->safe, &out, &e), 0);
        assert_string_equal(buf_cstr(&out), r->coded);
        assert_int_equal(str_percent_encode(r->plain, r->safe, &tight, &e), r->plain.n ? -1 : 0);
    }
}

static void test_base64url(void **state)
{
    static const struct {
        struct span plain;
        const char *coded;
    } rows[] = { { BYTES(""), "" },
                 { BYTES("f"), "Zg" },
                 { BYTES("fo"), "Zm8" },
                 { BYTES("\xfb\xff\xfe"), "-__-" } };
    static const char *const bad[] = { "Zg==", "+//+", "Z", "Zm 9" };
    struct err e;

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf coded = BUF_INIT(100), plain = BUF_INIT(100);

        assert_int_equal(str_base64url_encode(r->plain, &coded, &e), 0);
        assert_string_equal(buf_cstr(&coded), r->coded);
        assert_int_equal(str_base64url_decode(span_cstr(r->coded), &plain, &e), 0);
        assert_true(span_eq(buf_span(&plain), r->plain));
    }
    EACH(text, bad) {
        OWN(buf_done) struct buf plain = BUF_INIT(100);

        assert_int_equal(str_base64url_decode(span_cstr(*text), &plain, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static void test_base64(void **state)
{
    struct err e;

    EACH(r, base64s) {
        OWN(buf_done) struct buf coded = BUF_INIT(100), plain = BUF_INIT(100);

        assert_int_equal(str_base64_encode(r->plain, &coded, &e), 0);
        assert_true(span_eq(buf_span(&coded), r->coded));
        assert_int_equal(str_base64_decode(r->coded, &plain, &e), 0);
        assert_true(span_eq(buf_span(&plain), r->plain));
    }
    EACH(r, bad64s) {
        OWN(buf_done) struct buf out = BUF_INIT(100);

        assert_int_equal(buf_add(&out, SPAN("kept"), &e), 0);
        assert_int_equal(str_base64_decode(span_cstr(r->in), &out, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(e.msg, r->msg);
        assert_string_equal(buf_cstr(&out), "kept");
    }
}

/* clang-format off */
static const struct utf8_row { const char *name; struct span in; size_t len, need, tail; const char *lossy; } utf8s[] = {
    { "ascii",            BYTES("a"),                1, 1, 0, "a" },
    { "NUL",              BYTES("\0"),               1, 1, 0, "" },
    { "two",              BYTES("\xc3\xa9"),         2, 1, 0, "\xc3\xa9" },
    { "three",            BYTES("\xe2\x82\xac"),     3, 1, 0, "\xe2\x82\xac" },
    { "four",             BYTES("\xf0\x9f\x98\x80"), 4, 1, 0, "\xf0\x9f\x98\x80" },
    { "two cut",          BYTES("\xc3"),             0, 1, 1, "\xef\xbf\xbd" },
    { "three cut to one", BYTES("\xe2"),             0, 1, 1, "\xef\xbf\xbd" },
    { "three cut to two", BYTES("\xe2\x82"),         0, 2, 2, "\xef\xbf\xbd" },
    { "four cut to three", BYTES("\xf0\x9f\x98"),    0, 3, 3, "\xef\xbf\xbd" },
    { "continuation",     BYTES("\x80"),             0, 1, 0, "\xef\xbf\xbd" },
    { "overlong two",     BYTES("\xc0\xaf"),         0, 1, 0, "\xef\xbf\xbd\xef\xbf\xbd" },
    { "overlong three",   BYTES("\xe0\x80\xaf"),     0, 1, 0, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    { "surrogate",        BYTES("\xed\xa0\x80"),     0, 1, 0, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    { "above the last",   BYTES("\xf4\x90\x80\x80"), 0, 1, 0, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    { "f5",               BYTES("\xf5"),             0, 1, 0, "\xef\xbf\xbd" },
    { "ff",               BYTES("\xff"),             0, 1, 0, "\xef\xbf\xbd" },
    { "broken by ascii",  BYTES("\xe2\x82z"),        0, 2, 0, "\xef\xbf\xbdz" },
    { "broken by a lead", BYTES("\xf0\x9f\xc3\xa9"), 0, 2, 0, "\xef\xbf\xbd\xc3\xa9" },
    { "text then cut",    BYTES("abcdefghij\xc3"),   1, 1, 1, "abcdefghij\xef\xbf\xbd" },
    { "long ascii",       BYTES("0123456789abcdef\xff" "0123456789"), 1, 1, 0, "0123456789abcdef\xef\xbf\xbd" "0123456789" },
};
/* clang-format on */

static void test_utf8(void **state)
{
    EACH(r, utf8s) {
        OWN(buf_done) struct buf out = BUF_INIT(100);
        size_t need = 0, len = str_utf8_len(r->in, &need);
        bool is_valid = strstr(r->lossy, "\xef\xbf\xbd") == NULL;
        struct err e;

        if (len != r->len || (len == 0 && need != r->need))
            fail_msg("%s: length %zu need %zu", r->name, len, need);
        if (str_utf8_partial_tail(r->in) != r->tail)
            fail_msg("%s: tail %zu", r->name, str_utf8_partial_tail(r->in));
        if (str_utf8_valid(r->in) != is_valid)
            fail_msg("%s: valid?", r->name);
        assert_int_equal(str_utf8_lossy(r->in, &out, &e), 0);
        assert_string_equal(buf_cstr(&out), r->lossy);
        assert_true(str_utf8_valid(buf_span(&out)));
    }
    assert_true(str_utf8_valid(SPAN_NONE));
    assert_int_equal(str_utf8_partial_tail(SPAN_NONE), 0);
}

/* Cutting a stream anywhere and keeping the partial tail for the next piece gives the whole's text. */
static void test_utf8_in_pieces(void **state)
{
    struct span whole = SPAN("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\xe2\x82");

    for (size_t cut = 0; cut <= whole.n; cut++) {
        OWN(buf_done) struct buf once = BUF_INIT(100), twice = BUF_INIT(100);
        struct span first = span_slice(whole, 0, cut);
        struct err e;

        first.n -= str_utf8_partial_tail(first);
        assert_int_equal(str_utf8_lossy(whole, &once, &e), 0);
        assert_int_equal(str_utf8_lossy(first, &twice, &e), 0);
        assert_true(str_utf8_valid(first));
        assert_int_equal(str_utf8_lossy(span_skip(whole, first.n), &twice, &e), 0);
        assert_string_equal(buf_cstr(&once), buf_cstr(&twice));
    }
}

static void test_secret(void **state)
{
    assert_true(str_eq_secret(SPAN("token"), SPAN("token")));
    assert_false(str_eq_secret(SPAN("token"), SPAN("tokeN")));
    assert_false(str_eq_secret(SPAN("token"), SPAN("Token")));
    assert_false(str_eq_secret(SPAN("token"), SPAN("token1")));
    assert_true(str_eq_secret(SPAN_NONE, SPAN("")));
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_units),
        cmocka_unit_test(test_unit_ceilings), cmocka_unit_test(test_percent),
        cmocka_unit_test(test_base64),        cmocka_unit_test(test_base64url),
        cmocka_unit_test(test_utf8),          cmocka_unit_test(test_utf8_in_pieces),
        cmocka_unit_test(test_secret),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
