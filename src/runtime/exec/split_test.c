#include "runtime/exec/split.h"

#include "runtime/exec/pyrepr.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TEXT_MAX_BYTES 4096

/* clang-format off */
/* want: the words, each in brackets; or the error text after '!'. */
static const struct row { const char *name; struct span in; const char *want; } rows[] = {
    { "quoted word",                 BYTES("echo 'hello world'"),           "[echo][hello world]" },
    { "escaped quote in quotes",     BYTES("a \"b\\\"c\" d"),               "[a][b\"c][d]" },
    { "escaped space",               BYTES("a\\ b c"),                      "[a b][c]" },
    { "shell characters are text",   BYTES("echo $HOME | wc; ls && x > y"), "[echo][$HOME][|][wc;][ls][&&][x][>][y]" },
    { "no comments",                 BYTES("a # c"),                        "[a][#][c]" },
    { "backslashes kept in quotes",  BYTES("\"\\$x \\` \\\\ \\a\""),        "[\\$x \\` \\ \\a]" },
    { "empty quotes",                BYTES("a''b ''"),                      "[ab][]" },
    { "quotes join",                 BYTES("a=\"b c\""),                    "[a=b c]" },
    { "both empty quotes alone",     BYTES("'' \"\""),                      "[][]" },
    { "all separators",              BYTES(" \ta\rb\nc \t"),                "[a][b][c]" },
    { "vertical tab and form feed",  BYTES("a\vb\fc"),                      "[a\vb\fc]" },
    { "backslash-newline is a newline", BYTES("a\\\nb"),                    "[a\nb]" },
    { "backslash in single quotes",  BYTES("'a\\'"),                        "[a\\]" },
    { "double in single and back",   BYTES("'\"' \"'\""),                   "[\"][']" },
    { "escape begins a word",        BYTES("\\  \\'"),                      "[ ][']" },
    { "not ASCII",                   BYTES("caf\xc3\xa9 \xff"),             "[caf\xc3\xa9][\xff]" },
    { "open single quote",           BYTES("a 'b"),                         "!No closing quotation" },
    { "open double quote",           BYTES("a\"b"),                         "!No closing quotation" },
    { "backslash at the end",        BYTES("a\\"),                          "!No escaped character" },
    { "backslash at the end of quotes", BYTES("\"a\\"),                     "!No escaped character" },
    { "empty",                       BYTES(""),                             "!list index out of range" },
    { "blank",                       BYTES(" \t\r\n"),                      "!list index out of range" },
    { "NUL in a word",               BYTES("a \0b"),                        "!embedded null byte" },
    { "NUL, but quotes first",       BYTES("a\0 'b"),                       "!No closing quotation" },
};

static const struct { double in; const char *want; } floats[] = {
    { 5.0, "5.0" }, { 0.1, "0.1" }, { 300, "300.0" }, { 2.5, "2.5" }, { 1e15, "1000000000000000.0" }, { 1e16, "1e+16" },
    { 123456789012345678.0, "1.2345678901234568e+17" }, { 0.0001, "0.0001" }, { 0.00001, "1e-05" }, { 1.0 / 3, "0.3333333333333333" },
    { 0.00012345, "0.00012345" }, { -2.75, "-2.75" }, { 0, "0.0" }, { -0.0, "-0.0" }, { DBL_MAX, "1.7976931348623157e+308" },
    { 5e-324, "5e-324" }, { 9007199254740993.0, "9007199254740992.0" }, { 0.30000000000000004, "0.30000000000000004" },
    { 100.25, "100.25" }, { 1.5e-7, "1.5e-07" }, { INFINITY, "inf" }, { -INFINITY, "-inf" },
};

static const struct { const char *name; struct span in; const char *want; } texts[] = {
    { "plain",                  BYTES("a b"),                "'a b'" },
    { "single quote",           BYTES("it's"),               "\"it's\"" },
    { "both quotes",            BYTES("'\""),                "'\\'\"'" },
    { "backslash",              BYTES("a\\b"),               "'a\\\\b'" },
    { "named controls",         BYTES("\t\n\r"),             "'\\t\\n\\r'" },
    { "other controls",         BYTES("\x01\x1b\x7f"),       "'\\x01\\x1b\\x7f'" },
    { "printable",              BYTES("\xc3\xa9\xe2\x82\xac"), "'\xc3\xa9\xe2\x82\xac'" },
    { "no-break space",         BYTES("\xc2\xa0"),           "'\\xa0'" },
    { "zero width space",       BYTES("\xe2\x80\x8b"),       "'\\u200b'" },
    { "private use, high",      BYTES("\xf3\xb0\x80\x80"),   "'\\U000f0000'" },
    { "not UTF-8",              BYTES("\xff"),               "'\\udcff'" },
};
/* clang-format on */

static void show(const struct split *s, struct buf *out)
{
    struct err e;

    for (size_t i = 0; i < s->argc; i++)
        assert_int_equal(buf_addf(out, &e, "[%s]", s->argv[i]), 0);
    assert_null(s->argv[s->argc]);
}

static void test_commands_split_as_a_shell_reads_words(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(TEXT_MAX_BYTES);
        struct split s = { 0 };
        struct err e = { 0 };

        if (split_command(r->in, &s, &e) == 0)
            show(&s, &out);
        else
            assert_int_equal(buf_addf(&out, &e, "!%s", e.msg), 0);
        split_done(&s);
        if (strcmp(buf_cstr(&out), r->want) != 0)
            fail_msg("%s: got '%s', want '%s'", r->name, buf_cstr(&out), r->want);
    }
}

static void test_a_command_over_the_ceiling_is_refused(void **state)
{
    size_t n = SPLIT_MAX_BYTES;
    uint8_t *p = own_new(n);
    struct split s = { 0 };
    struct err e;

    (void)state;
    memset(p, 'a', n);
    assert_int_equal(split_command(span_of(p, n - 1), &s, &e), 0);
    assert_int_equal(strlen(s.argv[0]), n - 1);
    split_done(&s);
    assert_int_equal(split_command(span_of(p, n), &s, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    free(p);
}

static void test_numbers_and_texts_in_the_servers_notation(void **state)
{
    struct buf out = BUF_INIT(TEXT_MAX_BYTES);
    struct err e;

    (void)state;
    EACH(r, floats) {
        buf_clear(&out);
        assert_int_equal(pyrepr_float(r->in, &out, &e), 0);
        assert_string_equal(buf_cstr(&out), r->want);
    }
    EACH(r, texts) {
        buf_clear(&out);
        assert_int_equal(pyrepr_str(r->in, &out, &e), 0);
        if (strcmp(buf_cstr(&out), r->want) != 0)
            fail_msg("%s: got %s, want %s", r->name, buf_cstr(&out), r->want);
    }
    buf_done(&out);
}

static void test_whole_sentences(void **state)
{
    static char *argv[] = { "sleep", "30", "it's", NULL };
    struct buf out = BUF_INIT(TEXT_MAX_BYTES);
    struct err e;

    (void)state;
    assert_int_equal(pyrepr_timeout(argv, 5, &out, &e), 0);
    assert_string_equal(buf_cstr(&out),
                        "Command '['sleep', '30', \"it's\"]' timed out after 5.0 seconds");
    buf_clear(&out);
    assert_int_equal(pyrepr_oserror(2, SPAN("nope"), &out, &e), 0);
    assert_string_equal(buf_cstr(&out), "[Errno 2] No such file or directory: 'nope'");
    buf_clear(&out);
    assert_int_equal(pyrepr_oserror(13, SPAN(""), &out, &e), 0);
    assert_string_equal(buf_cstr(&out), "[Errno 13] Permission denied: ''");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_commands_split_as_a_shell_reads_words),
        cmocka_unit_test(test_a_command_over_the_ceiling_is_refused),
        cmocka_unit_test(test_numbers_and_texts_in_the_servers_notation),
        cmocka_unit_test(test_whole_sentences),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
