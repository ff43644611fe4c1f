#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_span_compare(void **state)
{
    assert_true(span_eq(SPAN("a\0b"), SPAN("a\0b")));
    assert_false(span_eq(SPAN("a\0b"), SPAN("a\0c")));
    assert_true(span_eq(SPAN_NONE, SPAN("")));
    assert_true(span_is(SPAN_NONE, ""));
    assert_true(span_is(SPAN("abc"), "abc"));
    assert_false(span_is(SPAN("abc"), "ab") || span_is(SPAN("ab"), "abc"));
    assert_true(span_is_nocase(SPAN("KeEp-1"), "keep-1"));
    assert_false(span_is_nocase(SPAN("k\0"), "k") || span_is_nocase(SPAN("@"), "`"));
    assert_true(span_starts(SPAN("abc"), "ab") && span_starts(SPAN("abc"), "") &&
                span_starts(SPAN_NONE, ""));
    assert_false(span_starts(SPAN("ab"), "abc"));
    assert_true(span_ends(SPAN("abc"), "bc") && span_ends(SPAN_NONE, ""));
    assert_false(span_ends(SPAN("bc"), "abc"));
    assert_int_equal(span_cstr(NULL).n, 0);
}

static void test_span_find(void **state)
{
    assert_int_equal(span_find(SPAN("a=b=c"), '='), 1);
    assert_int_equal(span_find(SPAN("a\0b"), 'b'), 2);
    assert_int_equal(span_find(SPAN("abc"), '='), SIZE_MAX);
    assert_int_equal(span_find(SPAN_NONE, '='), SIZE_MAX);
    assert_int_equal(span_find_str(SPAN("one\r\n\r\n"), SPAN("\r\n\r\n")), 3);
    assert_int_equal(span_find_str(SPAN("one"), SPAN("two")), SIZE_MAX);
    assert_int_equal(span_find_str(SPAN_NONE, SPAN("x")), SIZE_MAX);
    assert_int_equal(span_find_str(SPAN("x"), SPAN_NONE), 0);
}

static void test_span_slice(void **state)
{
    struct span s = SPAN("hello");

    assert_true(span_is(span_slice(s, 1, 3), "el"));
    assert_true(span_is(span_slice(s, 3, 99), "lo"));
    assert_true(span_is(span_slice(s, 3, 1), ""));
    assert_true(span_is(span_slice(s, 99, SIZE_MAX), ""));
    assert_true(span_is(span_skip(s, 4), "o"));
    assert_true(span_is(span_skip(s, 6), ""));
    assert_null(span_slice(SPAN_NONE, 0, 5).p);
    assert_true(span_is(span_trim(SPAN(" \t a b\t ")), "a b"));
    assert_true(span_is(span_trim(SPAN(" \t")), ""));
    assert_true(span_is(span_trim(SPAN("\na\n")), "\na\n"));
}

/* clang-format off */
static const struct cut_row { const char *in; const char *pieces; } cuts[] = {
    { "", "" }, { "a", "a|" }, { "a,b", "a|b|" }, { "a,", "a|" }, { ",a", "|a|" }, { ",", "|" }, { "a,,b", "a||b|" }, { ",,", "||" },
};
/* clang-format on */

static void test_span_cut(void **state)
{
    EACH(r, cuts) {
        OWN(buf_done) struct buf got = BUF_INIT(64);
        struct span rest = span_cstr(r->in), piece;
        struct err e;

        while (span_cut(&rest, ',', &piece))
            assert_int_equal(buf_addf(&got, &e, "%.*s|", SPAN_ARG(piece)), 0);
        assert_string_equal(buf_cstr(&got), r->pieces);
    }
}

static void test_dup(void **state)
{
    OWN_MEM char *s = span_dup(SPAN("a\0b")), *none = span_dup(SPAN_NONE);

    assert_memory_equal(s, "a\0b", 4);
    assert_string_equal(none, "");
}

/* Terminated after every step, and the ceiling holds to the byte, however the bytes come. */
static void test_ceiling(void **state)
{
    for (size_t max = 0; max < 200; max++) {
        OWN(buf_done) struct buf b = BUF_INIT(max);
        struct err e;
        size_t i = 0;

        assert_string_equal(buf_cstr(&b), "");
        for (; i < max; i++) {
            int r = i % 3 == 0   ? buf_addc(&b, 'x', &e)
                    : i % 3 == 1 ? buf_add(&b, SPAN("x"), &e)
                                 : buf_addf(&b, &e, "%c", 'x');

            assert_int_equal(r, 0);
            assert_int_equal(strlen(buf_cstr(&b)), i + 1);
            assert_true(b.cap <= max + 1);
        }
        assert_int_equal(buf_addc(&b, 'x', &e), -1);
        assert_int_equal(buf_add(&b, SPAN("x"), &e), -1);
        assert_int_equal(buf_addf(&b, &e, "%d", 7), -1);
        assert_int_equal(e.code, ERR_LIMIT);
        assert_int_equal(buf_add(&b, SPAN_NONE, &e), 0);
        assert_int_equal(b.n, max);
        assert_int_equal(strlen(buf_cstr(&b)), max);
    }
}

static void test_whole_or_nothing(void **state)
{
    OWN(buf_done) struct buf b = BUF_INIT(8);
    struct err e;

    assert_int_equal(buf_add(&b, SPAN("12345"), &e), 0);
    assert_int_equal(buf_add(&b, SPAN("6789"), &e), -1);
    assert_string_equal(e.msg, "more than 8 bytes");
    assert_int_equal(buf_addf(&b, &e, "%s", "6789"), -1);
    assert_string_equal(buf_cstr(&b), "12345");
    assert_int_equal(buf_reserve(&b, SIZE_MAX, &e), -1);
    assert_int_equal(buf_reserve(&b, 4, &e), -1);
    assert_int_equal(buf_add_capped(&b, SPAN("6789")), 1);
    assert_string_equal(buf_cstr(&b), "12345678");
    assert_int_equal(buf_add_capped(&b, SPAN("x")), 1);
}

static void test_format_grows(void **state)
{
    OWN(buf_done) struct buf b = BUF_INIT(100000);
    struct err e;

    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_addf(&b, &e, "%04d,", i), 0);
    assert_int_equal(b.n, 5000);
    assert_memory_equal(b.p + 4990, "0998,0999,", 11);
}

static void test_in_place(void **state)
{
    OWN(buf_done) struct buf b = BUF_INIT(100);
    struct err e;

    assert_int_equal(buf_room(&b), 0);
    assert_int_equal(buf_reserve(&b, 10, &e), 0);
    assert_true(buf_room(&b) >= 10);
    memcpy(b.p, "0123456789", 10);
    buf_grown(&b, 10);
    assert_string_equal(buf_cstr(&b), "0123456789");
    buf_consume(&b, 0);
    buf_consume(&b, 4);
    assert_string_equal(buf_cstr(&b), "456789");
    buf_truncate(&b, 6);
    buf_truncate(&b, 2);
    assert_string_equal(buf_cstr(&b), "45");
    buf_consume(&b, 2);
    assert_string_equal(buf_cstr(&b), "");
    buf_clear(&b);
    assert_true(b.cap > 0);
}

static void test_empty(void **state)
{
    struct buf b = BUF_INIT(5);

    buf_clear(&b);
    buf_truncate(&b, 0);
    buf_consume(&b, 0);
    buf_grown(&b, 0);
    assert_null(b.p);
    buf_done(&b);
    assert_int_equal(b.max, 5);
}

static void test_move(void **state)
{
    OWN(buf_done) struct buf from = BUF_INIT(100), to = BUF_INIT(50);
    const uint8_t *block;
    struct err e;

    assert_int_equal(buf_add(&from, SPAN("content"), &e), 0);
    assert_int_equal(buf_add(&to, SPAN("old"), &e), 0);
    block = from.p;
    buf_move(&to, &from);
    assert_ptr_equal(to.p, block);
    assert_string_equal(buf_cstr(&to), "content");
    assert_string_equal(buf_cstr(&from), "");
    assert_int_equal(from.max, 100);
    assert_int_equal(buf_add(&from, SPAN("again"), &e), 0);
}

/* A block that was another's may be larger than the ceiling allows. */
static void test_ceiling_below_the_block(void **state)
{
    OWN(buf_done) struct buf large = BUF_INIT(1000), b = BUF_INIT(4);
    struct err e;

    (void)state;
    assert_int_equal(buf_reserve(&large, 900, &e), 0);
    buf_pass_block(&b, &large);
    assert_int_equal(buf_addf(&b, &e, "%s", "12345"), -1);
    assert_int_equal(buf_add(&b, SPAN("123"), &e), 0);
    assert_int_equal(buf_addf(&b, &e, "%d", 45), -1);
    assert_int_equal(buf_addc(&b, '4', &e), 0);
    assert_int_equal(buf_addc(&b, '5', &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(buf_add_capped(&b, SPAN("5")), 1);
    assert_string_equal(buf_cstr(&b), "1234");
}

static void test_texts_are_cut(void **state)
{
    OWN(buf_done) struct buf b = BUF_INIT(6);

    (void)state;
    buf_addf_capped(&b, "%d ", 12);
    buf_addf_capped(&b, "%s", "3456789");
    assert_string_equal(buf_cstr(&b), "12 345");
    assert_int_equal(b.n, 6);
    buf_addf_capped(&b, "%s", "more");
    buf_addc_capped(&b, 'x');
    assert_string_equal(buf_cstr(&b), "12 345");
    buf_clear(&b);
    buf_addf_capped(&b, "%s", "");
    buf_addc_capped(&b, 'x');
    assert_string_equal(buf_cstr(&b), "x");
}

int main(void)
{
    const struct CMUnitTest list[] = {
        cmocka_unit_test(test_span_compare),
        cmocka_unit_test(test_span_find),
        cmocka_unit_test(test_span_slice),
        cmocka_unit_test(test_span_cut),
        cmocka_unit_test(test_dup),
        cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_whole_or_nothing),
        cmocka_unit_test(test_format_grows),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_move),
        cmocka_unit_test(test_ceiling_below_the_block),
        cmocka_unit_test(test_texts_are_cut),
    };

    return cmocka_run_group_tests(list, NULL, NULL);
}
