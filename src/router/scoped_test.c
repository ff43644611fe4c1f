/* Tokens for one sandbox: the contract's vectors, and every way in which one is not ours. */
#include "router/scoped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define SECRET  "0123456789abcdef0123456789abcdef"
#define PAYLOAD "eyJucyI6Im5zIiwibmFtZSI6ImJveCIsImV4cCI6MTkwMDAwMDAwMH0"
#define MAC     "9Op-VTpB_dXJwWcw6uTlVA3ZwA5DWgdcQtLaVRysj9M"

static const struct row {
    const char *name, *secret, *token;
    int64_t now;
    bool is_taken;
} rows[] = {
    { "the contract's", SECRET, "v1." PAYLOAD "." MAC, 1800000000, true },
    { "its last second", SECRET, "v1." PAYLOAD "." MAC, 1899999999, true },
    { "its end", SECRET, "v1." PAYLOAD "." MAC, 1900000000, false },
    { "another secret", "0123456789abcdef0123456789abcdeX", "v1." PAYLOAD "." MAC, 0, false },
    { "signed without the fixed text", SECRET,
      "v1." PAYLOAD ".nxcM7K1pUOEGHFHsq9Qj1V5_ctipBgY00GRw_6G8Iag", 0, false },
    { "another version", SECRET, "v2." PAYLOAD "." MAC, 0, false },
    { "no version", SECRET, PAYLOAD "." MAC, 0, false },
    { "no signature", SECRET, "v1." PAYLOAD, 0, false },
    { "an empty signature", SECRET, "v1." PAYLOAD ".", 0, false },
    { "half a signature", SECRET, "v1." PAYLOAD ".9Op-VTpB", 0, false },
    { "a dot more", SECRET, "v1." PAYLOAD "." MAC ".x", 0, false },
    { "another payload", SECRET, "v1.eyJucyI6Im5zIn0." MAC, 0, false },
    { "padded", SECRET, "v1." PAYLOAD "=." MAC, 0, false },
    { "nothing", SECRET, "", 0, false },
};

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct scoped s;

        if (scoped_read(span_cstr(r->secret), span_cstr(r->token), r->now, &s) != r->is_taken)
            fail_msg("%s", r->name);
        if (r->is_taken) {
            assert_string_equal(s.namespace, "ns");
            assert_string_equal(s.name, "box");
        }
    }
}

/* No single byte of a token can be another. */
static void test_flips(void **state)
{
    char token[] = "v1." PAYLOAD "." MAC;
    struct scoped s;

    (void)state;
    for (size_t i = 0; i + 1 < sizeof token; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            /* The last letter holds two bits that stand for nothing. */
            if (i + 2 == sizeof token)
                continue;
            token[i] = (char)(token[i] ^ 1 << bit);
            assert_false(scoped_read(SPAN(SECRET), span_cstr(token), 0, &s));
            token[i] = (char)(token[i] ^ 1 << bit);
        }
    }
    assert_true(scoped_read(SPAN(SECRET), span_cstr(token), 0, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_flips) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
