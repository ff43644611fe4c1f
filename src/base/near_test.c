#include "base/near.h"

#include "base/own.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *const known[] = { "listen", "router-listen", "log-level", "pools" };

static const struct row {
    const char *name, *want;
} rows[] = {
    { "lisen", "listen" },       { "router_listen", "router-listen" },
    { "loglevel", "log-level" }, { "pool", "pools" },
    { "poool", "pools" },        { "listen", "listen" },
    { "egress", NULL },          { "", NULL },
};

static void each(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct near near = { .name = r->name };
        struct err e = { .msg = "" };

        EACH(k, known) {
            near_try(&near, *k);
        }
        if (!r->want) {
            assert_null(near.best);
            assert_false(near_hint(&near, &e));
            assert_string_equal(e.hint, "");
            continue;
        }
        assert_non_null(near.best);
        assert_string_equal(near.best, r->want);
        assert_true(near_hint(&near, &e));
        assert_non_null(strstr(e.hint, r->want));
    }
}

static void long_names(void **state)
{
    char name[NEAR_NAME_MAX_BYTES + 2];
    struct near near = { .name = name };

    (void)state;
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    near_try(&near, name);
    assert_null(near.best);
    name[NEAR_NAME_MAX_BYTES] = '\0';
    near_try(&near, name);
    assert_ptr_equal(near.best, name);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each), cmocka_unit_test(long_names) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
