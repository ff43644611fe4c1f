#include "kube/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* want NULL: not a quantity. */
static const struct row {
    const char *in, *want;
} rows[] = {
    { "0", "0" },
    { "1", "1" },
    { "+5", "5" },
    { "-5", "-5" },
    { "1000", "1k" },
    { "1500m", "1500m" },
    { "2000m", "2" },
    { "0.5", "500m" },
    { ".5", "500m" },
    { "5.", "5" },
    { "1.5", "1500m" },
    { "1024Mi", "1Gi" },
    { "1.5Gi", "1536Mi" },
    { "0.5Ki", "512" },
    { "1023Ki", "1023Ki" },
    { "1000Ki", "1000Ki" },
    { "1Ki", "1Ki" },
    { "0Ki", "0" },
    { "1e3", "1e3" },
    { "1E3", "1e3" },
    { "12e6", "12e6" },
    { "1e0", "1" },
    { "5e-3", "5e-3" },
    { "1E", "1E" },
    { "100n", "100n" },
    { "0.1n", "1n" },
    { "0.0000000001", "1n" },
    { "0.00000000000000000000001", "1n" },
    { "1e-30", "1e-9" },
    { "123456789012345678901234567890", "9223372036854775807" },
    { "100E", "9223372036854775807" },
    { "8Ei", "9223372036854775807" },
    { "1e19", "9223372036854775807" },
    { "", NULL },
    { "abc", NULL },
    { ".", NULL },
    { "1.2.3", NULL },
    { "1 Gi", NULL },
    { "1K", NULL },
    { "1mi", NULL },
    { "1e", NULL },
    { "1e+", NULL },
    { "1e1.5", NULL },
    { "--1", NULL },
    { "1e99999999999", NULL },
};

static void each(void **state)
{
    EACH(r, rows) {
        struct quantity q;
        char text[QUANTITY_TEXT_BYTES];
        bool is_one = quantity_parse(span_cstr(r->in), &q);
        const char *got = is_one ? quantity_text(&q, text) : NULL;

        if (is_one != (r->want != NULL) || (is_one && strcmp(got, r->want) != 0))
            fail_msg("'%s': got %s, want %s", r->in, got ? got : "no quantity",
                     r->want ? r->want : "no quantity");
    }
}

static void amounts_compare(void **state)
{
    struct quantity a, b;

    assert_true(quantity_parse(SPAN("1Gi"), &a) && quantity_parse(SPAN("1G"), &b));
    assert_true(quantity_compare(&a, &b) > 0);
    assert_true(quantity_parse(SPAN("1000m"), &a) && quantity_parse(SPAN("1"), &b));
    assert_true(quantity_compare(&a, &b) == 0);
    assert_true(quantity_is_whole(&a));
    assert_true(quantity_parse(SPAN("-1m"), &a) && !quantity_is_whole(&a));
    assert_true(quantity_compare(&a, &b) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each),
        cmocka_unit_test(amounts_compare),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
