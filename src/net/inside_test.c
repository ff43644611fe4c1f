#include "net/inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

static void test_words_come_back_as_they_were_said(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(INSIDE_ANSWER_MAX_BYTES);
    struct inside_ask ask = { .id = UINT64_MAX, .pod = "3f-0c.A", .family = AF_INET6, .count = 4 };
    struct inside_ask got = { 0 };
    struct inside_answer answer = { .id = 3, .is_unknown = true, .error = "no \"pod\"" }, back;
    struct err e;

    (void)state;
    assert_int_equal(inside_ask_write(&ask, &text, &e), 0);
    assert_int_equal(inside_ask_read(buf_span(&text), &got, &e), 0);
    assert_true(got.id == ask.id && got.family == AF_INET6 && got.count == 4);
    assert_string_equal(got.pod, ask.pod);
    buf_clear(&text);
    assert_int_equal(inside_answer_write(&answer, &text, &e), 0);
    assert_int_equal(inside_answer_read(buf_span(&text), &back, &e), 0);
    assert_true(back.id == 3 && back.is_unknown);
    assert_string_equal(back.error, answer.error);
}

static void test_what_is_not_an_ask_is_refused(void **state)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
        { "nothing", "" },
        { "no object", "[]" },
        { "no id", "{\"pod\":\"a\",\"family\":4,\"count\":1}" },
        { "an id below zero", "{\"id\":-1,\"pod\":\"a\",\"family\":4,\"count\":1}" },
        { "no pod", "{\"id\":1,\"pod\":\"\",\"family\":4,\"count\":1}" },
        { "a path", "{\"id\":1,\"pod\":\"../a\",\"family\":4,\"count\":1}" },
        { "an end inside", "{\"id\":1,\"pod\":\"a\\u0000b\",\"family\":4,\"count\":1}" },
        { "another family", "{\"id\":1,\"pod\":\"a\",\"family\":1,\"count\":1}" },
        { "none wanted", "{\"id\":1,\"pod\":\"a\",\"family\":4,\"count\":0}" },
        { "too many wanted", "{\"id\":1,\"pod\":\"a\",\"family\":4,\"count\":5}" },
        { "said twice", "{\"id\":1,\"id\":2,\"pod\":\"a\",\"family\":4,\"count\":1}" },
        { "a pod that is too long",
          "{\"id\":1,\"pod\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
          "\"family\":4,\"count\":1}" },
    };
    struct inside_ask ask;
    struct err e;

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++)
        if (inside_ask_read(span_cstr(rows[i].text), &ask, &e) == 0)
            fail_msg("%s was taken: %s", rows[i].name, rows[i].text);
}

static void test_what_is_not_an_answer_is_refused(void **state)
{
    static const char *const rows[] = { "",
                                        "{}",
                                        "{\"id\":\"1\"}",
                                        "{\"id\":1,\"error\":\"\"}",
                                        "{\"id\":1,\"error\":5}",
                                        "{\"id\":1,\"unknown\":true}" };
    struct inside_answer answer;
    struct err e;

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++)
        if (inside_answer_read(span_cstr(rows[i]), &answer, &e) == 0)
            fail_msg("taken: %s", rows[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_come_back_as_they_were_said),
        cmocka_unit_test(test_what_is_not_an_ask_is_refused),
        cmocka_unit_test(test_what_is_not_an_answer_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
