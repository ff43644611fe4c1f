#include "node/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define UID     "7f3c2a10-1b2c-4d5e-8f90-aabbccddeeff"
#define LABEL63 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"

static void test_names_are_read_back(void **state)
{
    static const struct row {
        const char *uid, *container;
        uint32_t attempt;
        const char *want;
    } rows[] = {
        { UID, "main", 0, UID "_main_0" },
        { UID, "a-b", 12, UID "_a-b_12" },
        { UID, LABEL63, UINT32_MAX, UID "_" LABEL63 "_4294967295" },
    };
    char name[RUN_NAME_BYTES];
    struct run_id id;
    struct err e;

    (void)state;
    EACH(r, rows) {
        assert_int_equal(run_name(name, r->uid, r->container, r->attempt, &e), 0);
        assert_string_equal(name, r->want);
        assert_true(run_read(name, &id));
        assert_string_equal(id.uid, r->uid);
        assert_string_equal(id.container, r->container);
        assert_int_equal(id.attempt, r->attempt);
    }
}

static void test_other_texts_are_no_names(void **state)
{
    static const char *const others[] = { "",           "demo",         UID,
                                          UID "_main",  UID "_main_",   UID "_main_x",
                                          UID "__0",    "_main_0",      UID "_main_4294967296",
                                          UID "_m/n_0", UID "_main_-1", UID "_main_01",
                                          "my_app_1",   "a-b_c_0",      UID "0_main_0" };
    char name[RUN_NAME_BYTES];
    struct run_id id;
    struct err e;

    (void)state;
    EACH(text, others) {
        if (run_read(*text, &id))
            fail_msg("'%s' was read", *text);
    }
    assert_int_equal(run_name(name, "../x", "main", 0, &e), -1);
    assert_int_equal(run_name(name, "uid-1", "main", 0, &e), -1);
    assert_int_equal(run_name(name, UID, "a_b", 0, &e), -1);
    assert_int_equal(run_name(name, UID, LABEL63 "h", 0, &e), -1);
    assert_int_equal(run_name(name, "", "main", 0, &e), -1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_read_back),
        cmocka_unit_test(test_other_texts_are_no_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
