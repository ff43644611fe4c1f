#include "kubeclient/cut.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define VALUE_MAX 40

/* What comes out: the values joined by '|', then '#' and the envelope, then '!' if it broke off. */
static const char *run(enum cut_shape shape, struct span in, size_t step)
{
    static char text[512];
    struct cut c;
    struct err e;
    size_t used, n = 0;
    bool is_bad = false;

    text[0] = '\0';
    cut_init(&c, shape, VALUE_MAX);
    for (; in.n && !is_bad; in = span_skip(in, used)) {
        switch (cut_feed(&c, span_slice(in, 0, step), &used, &e)) {
        case FEED_DONE:
            n += (size_t)snprintf(text + n, sizeof text - n, "%s|", buf_cstr(&c.value));
            break;
        case FEED_BAD:
            is_bad = true;
            assert_int_equal(cut_feed(&c, in, &used, &e), FEED_BAD); /* and stays so */
            break;
        case FEED_MORE:
            break;
        }
        assert_true(used > 0 || is_bad);
    }
    is_bad = is_bad || cut_end(&c, &e) < 0;
    if (shape == CUT_ITEMS && !is_bad)
        n += (size_t)snprintf(text + n, sizeof text - n, "#%s", buf_cstr(&c.envelope));
    (void)snprintf(text + n, sizeof text - n, "%s", is_bad ? "!" : "");
    cut_done(&c);
    return text;
}

static const struct row {
    const char *name;
    enum cut_shape shape;
    const char *in, *want;
} rows[] = {
    { "nothing", CUT_STREAM, "", "" },
    { "one event", CUT_STREAM, "{\"a\":1}\n", "{\"a\":1}|" },
    { "two on one line, one on several", CUT_STREAM, "{}{\"b\":\n[1]}\r\n{}",
      "{}|{\"b\":\n[1]}|{}|" },
    { "brackets and quotes inside texts", CUT_STREAM, "{\"a\\\"}{\":\"]}\\\\\"}",
      "{\"a\\\"}{\":\"]}\\\\\"}|" },
    { "an event cut short", CUT_STREAM, "{\"a\":{}", "!" },
    { "no object", CUT_STREAM, "{} [1]", "{}|!" },
    { "an event above the ceiling", CUT_STREAM,
      "{\"a\":\"0123456789012345678901234567890123456789\"}", "!" },
    { "an empty list", CUT_ITEMS, "{\"kind\":\"PodList\",\"items\":[]}\n",
      "#{\"kind\":\"PodList\",\"items\":[]}" },
    { "null items", CUT_ITEMS, "{\"items\":null,\"a\":[1]}", "#{\"items\":null,\"a\":[1]}" },
    { "items and what stands around them", CUT_ITEMS,
      "{\"metadata\":{\"items\":[{}]}, \"items\" : [ {\"a\":1} , {\"b\":[{}]} ], \"z\":\"items\"}",
      "{\"a\":1}|{\"b\":[{}]}|#{\"metadata\":{\"items\":[{}]}, \"items\" : [], \"z\":\"items\"}" },
    { "a text that reads like a name", CUT_ITEMS, "{\"kind\":\"items\",\"other\":[{}]}",
      "#{\"kind\":\"items\",\"other\":[{}]}" },
    { "an item that is no object", CUT_ITEMS, "{\"items\":[{},5]}", "{}|!" },
    { "a list cut short in its items", CUT_ITEMS, "{\"items\":[{}", "{}|!" },
    { "a list cut short behind them", CUT_ITEMS, "{\"items\":[{}]", "{}|!" },
    { "no list at all", CUT_ITEMS, "<html>", "!" },
    { "nothing where a list should be", CUT_ITEMS, "", "!" },
    { "two lists", CUT_ITEMS, "{}{}", "!" },
    { "a refusal", CUT_ITEMS, "{\"kind\":\"Status\",\"code\":500}",
      "#{\"kind\":\"Status\",\"code\":500}" },
};

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        char whole[512];

        (void)snprintf(whole, sizeof whole, "%s", run(r->shape, span_cstr(r->in), SIZE_MAX));
        if (strcmp(whole, r->want) != 0)
            fail_msg("%s: got '%s'", r->name, whole);
        if (strcmp(run(r->shape, span_cstr(r->in), 1), whole) != 0)
            fail_msg("%s: byte by byte it differs", r->name);
    }
}

static void test_depth_has_an_end(void **state)
{
    struct cut c;
    struct err e;
    enum feed got = FEED_MORE;
    size_t used;

    (void)state;
    cut_init(&c, CUT_STREAM, 1 << 20);
    assert_int_equal(cut_feed(&c, SPAN("{"), &used, &e), FEED_MORE);
    for (int i = 0; i < 1000 && got == FEED_MORE; i++)
        got = cut_feed(&c, SPAN("["), &used, &e);
    assert_int_equal(got, FEED_BAD);
    assert_int_equal(e.code, ERR_LIMIT);
    cut_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_depth_has_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
