/* Who calls, as it is said: what is accepted and what is not, and the preface. */
#include "router/caller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void test_texts(void **state)
{
    static const struct row {
        const char *name, *text, *want; /* NULL: refused */
    } rows[] = {
        { "an account", "{\"user\":\"u\",\"groups\":[\"a\",\"b\"]}",
          "{\"user\":\"u\",\"groups\":[\"a\",\"b\"]}" },
        { "without groups", "{\"user\":\"u\"}", "{\"user\":\"u\"}" },
        { "no groups in a list", "{\"groups\":[],\"user\":\"u\"}", "{\"user\":\"u\"}" },
        { "more than we know", "{\"user\":\"u\",\"uid\":\"1\"}", "{\"user\":\"u\"}" },
        { "nobody", "{\"user\":\"\"}", NULL },
        { "groups alone", "{\"groups\":[\"system:masters\"]}", NULL },
        { "two users", "{\"user\":\"a\",\"user\":\"b\"}", NULL },
        { "a user that ends early", "{\"user\":\"a\\u0000b\"}", NULL },
        { "a number", "{\"user\":1}", NULL },
        { "a group that is none", "{\"user\":\"u\",\"groups\":[\"\"]}", NULL },
        { "a number in groups", "{\"user\":\"u\",\"groups\":[1]}", NULL },
        { "groups that are no list", "{\"user\":\"u\",\"groups\":{\"a\":\"b\"}}", NULL },
        { "a text", "\"u\"", NULL },
        { "two of them", "{\"user\":\"u\"}{\"user\":\"v\"}", NULL },
        { "nothing", "", NULL },
    };

    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf text = BUF_INIT(4096);
        struct caller *c = NULL;
        struct json_out out;
        struct err e;

        if ((caller_parse(span_cstr(r->text), &c, &e) == 0) != (r->want != NULL))
            fail_msg("%s", r->name);
        if (!c)
            continue;
        json_out_init(&out, &text, 0);
        json_out_object_begin(&out);
        caller_write(c, &out);
        json_out_object_end(&out);
        assert_int_equal(json_out_end(&out, &e), 0);
        if (strcmp(buf_cstr(&text), r->want) != 0)
            fail_msg("%s: %s", r->name, buf_cstr(&text));
        caller_free(c);
    }
}

static void test_as_many_groups_as_a_user_has(void **state)
{
    (void)state;
    for (int n = CALLER_GROUPS_MAX; n <= CALLER_GROUPS_MAX + 1; n++) {
        OWN(buf_done) struct buf text = BUF_INIT(4096);
        struct caller *c = NULL;
        struct err e;

        assert_int_equal(buf_addf(&text, &e, "{\"user\":\"u\",\"groups\":[\"g\""), 0);
        for (int i = 1; i < n; i++)
            assert_int_equal(buf_addf(&text, &e, ",\"g%d\"", i), 0);
        assert_int_equal(buf_addf(&text, &e, "]}"), 0);
        assert_int_equal(caller_parse(buf_span(&text), &c, &e), n > CALLER_GROUPS_MAX ? -1 : 0);
        caller_free(c);
    }
}

static void test_the_preface(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(2 * CALLER_MAX_BYTES), long_text = BUF_INIT(1 << 20);
    struct err e;

    (void)state;
    assert_int_equal(caller_say(SPAN("{}"), &out, &e), 0);
    assert_int_equal(out.n, 6);
    assert_memory_equal(out.p, "\0\0\0\2{}", 6);
    assert_int_equal(caller_length((const uint8_t *)"\0\0\x80\0"), CALLER_MAX_BYTES);
    assert_int_equal(caller_length((const uint8_t *)"\0\0\x80\1"), 0);
    assert_int_equal(caller_length((const uint8_t *)"\xff\xff\xff\xff"), 0);
    assert_int_equal(caller_say(SPAN(""), &out, &e), -1);
    while (long_text.n <= CALLER_MAX_BYTES)
        assert_int_equal(buf_addc(&long_text, ' ', &e), 0);
    assert_int_equal(caller_say(buf_span(&long_text), &out, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_int_equal(out.n, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_as_many_groups_as_a_user_has),
        cmocka_unit_test(test_the_preface),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
