#include "kubeclient/pace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_retry_after(void **state)
{
    static const struct {
        const char *value;
        bool is_fine;
        uint64_t ms;
    } rows[] = {
        { "0", true, 0 },
        { " 7 ", true, 7000 },
        { "9999999999999", true, 60000 },
        { "-1", false, 0 },
        { "soon", false, 0 },
        { "", false, 0 },
        { "Thu, 01 Jan 1970 00:16:50 GMT", true, 10000 },
        { "Thu, 01 Jan 1970 00:00:00 GMT", true, 0 },
        { "Thu, 01 Jan 2970 00:00:00 GMT", true, 60000 },
    };

    (void)state;
    EACH(r, rows) {
        uint64_t ms = 0;

        if (retry_after_ms(span_cstr(r->value), 1000, 60, &ms) != r->is_fine || ms != r->ms)
            fail_msg("'%s': %llu", r->value, (unsigned long long)ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry_after),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
