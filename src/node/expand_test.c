#include "node/expand.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct span find(void *ctx, struct span name)
{
    (void)ctx;
    if (span_is(name, "A"))
        return SPAN("one");
    if (span_is(name, "EMPTY"))
        return SPAN("");
    return span_is(name, "LOOP") ? SPAN("$(A)$(LOOP)") : SPAN_NONE;
}

static const struct row {
    const char *name, *in, *want;
} rows[] = {
    { "nothing to do", "plain text", "plain text" },
    { "empty", "", "" },
    { "a variable", "x$(A)y", "xoney" },
    { "only a variable", "$(A)", "one" },
    { "two of them", "$(A)$(A)", "oneone" },
    { "an empty one", "[$(EMPTY)]", "[]" },
    { "unknown", "$(B)-$(A)", "$(B)-one" },
    { "no name", "$()", "$()" },
    { "escaped", "$$(A)", "$(A)" },
    { "escaped twice", "$$$$(A)", "$$(A)" },
    { "escape and variable", "$$$(A)", "$one" },
    { "a dollar at the end", "cost$", "cost$" },
    { "two at the end", "cost$$", "cost$" },
    { "not closed", "$(A", "$(A" },
    { "not closed, then one", "$(A$(A)", "$(A$(A)" }, /* the name is "A$(A" */
    { "shell's form", "$A ${A}", "$A ${A}" },
    { "what a value brings is left", "$(LOOP)", "$(A)$(LOOP)" },
    { "braces inside", "$(A))", "one)" },
};

static void texts(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(buf_done) struct buf out = BUF_INIT(256);
        struct err e;

        assert_int_equal(expand_text(span_cstr(r->in), find, NULL, &out, &e), 0);
        if (!span_is(buf_span(&out), r->want))
            fail_msg("%s: '%s' became '%s', not '%s'", r->name, r->in, buf_cstr(&out), r->want);
    }
}

static void ceiling(void **state)
{
    OWN(buf_done) struct buf out = BUF_INIT(5);
    struct err e;

    (void)state;
    assert_int_equal(expand_text(SPAN("$(A)$(A)"), find, NULL, &out, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(texts), cmocka_unit_test(ceiling) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
