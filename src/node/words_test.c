#include "node/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define STAMP "2026-11-16T09:30:00.123456789Z "

static const struct row {
    const char *name;
    struct span log;
    const char *want;
} rows[] = {
    { "nothing", SPAN_NONE, "" },
    { "both streams, in order", SPAN(STAMP "stdout F one\n" STAMP "stderr F two\n"), "one\ntwo\n" },
    { "it begins within a text", SPAN("ost\n" STAMP "stderr F kept\n"), "kept\n" },
    { "it begins within a stamp, behind which all is there",
      SPAN("789Z stdout F whole\n" STAMP "stderr F kept\n"), "whole\nkept\n" },
    { "a line without its end", SPAN(STAMP "stdout P half"), "" },
    { "a line in pieces", SPAN(STAMP "stdout P he\n" STAMP "stdout F llo\n"), "hello\n" },
    { "bytes that are no text",
      SPAN(STAMP "stdout F a\xff"
                 "b\n"),
      "a\xef\xbf\xbd"
      "b\n" },
};

static void test_what_is_said(void **state)
{
    char words[WORDS_LAST_BYTES + 1];

    (void)state;
    EACH(row, rows) {
        print_message("%s\n", row->name);
        words_of_log(row->log, words);
        assert_string_equal(words, row->want);
    }
}

static void test_how_much_is_said(void **state)
{
    OWN(buf_done) struct buf log = BUF_INIT(1 << 20);
    char words[WORDS_LAST_BYTES + 1];
    struct err e;

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(buf_addf(&log, &e, STAMP "stdout F %d\n", i), 0);
    words_of_log(buf_span(&log), words);
    assert_memory_equal(words, "20\n21\n", 6);
    assert_string_equal(words + strlen(words) - 6, "98\n99\n");
    buf_clear(&log);
    for (int i = 0; i < 10; i++)
        assert_int_equal(buf_addf(&log, &e, STAMP "stdout F %0500d\n", i), 0);
    words_of_log(buf_span(&log), words);
    assert_int_equal(strlen(words), WORDS_LOG_BYTES);
    assert_string_equal(words + WORDS_LOG_BYTES - 4, "009\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_how_much_is_said),
    };

    return cmocka_run_group_tests_name("node/words", tests, NULL, NULL);
}
