#include "controller/domains.h"

#include "base/scratch.h"
#include "controller/limits.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
    const char *name, *text, *want; /* want: each with a blank */
} rows[] = {
    { "nothing", "", "" },
    { "one", "sandbox.users.io", "sandbox.users.io " },
    { "commas and lines", "a.io,b.io\nc.io", "a.io b.io c.io " },
    { "blanks, and ends of lines as elsewhere", " a.io ,\tb.io\r\n", "a.io b.io " },
    { "large letters", "A.Io", "a.io " },
    { "nothing between", ",,\n , \n", "" },
};

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct domains d;
        char got[256] = "";
        struct err e;

        assert_int_equal(domains_parse(span_cstr(r->text), &d, &e), 0);
        for (size_t i = 0; d.names[i]; i++)
            (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s ", d.names[i]);
        if (strcmp(got, r->want) != 0)
            fail_msg("%s: '%s', not '%s'", r->name, got, r->want);
        domains_done(&d);
    }
}

static void test_too_many_are_refused(void **state)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct domains d;
    struct err e;

    (void)state;
    for (int i = 0; i <= DOMAINS_MAX; i++)
        assert_int_equal(buf_addf(&text, &e, "%d.io\n", i), 0);
    assert_int_equal(domains_parse(buf_span(&text), &d, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
}

static void test_files(void **state)
{
    struct domains d = { NULL, NULL };
    struct scratch dir;
    char file[512];
    FILE *f;
    struct err e;

    (void)state;
    scratch_make(&dir);
    (void)snprintf(file, sizeof file, "%s/domains", dir.path);
    assert_int_equal(domains_read(file, &d, &e), 0); /* none is there */
    assert_null(d.names);
    f = fopen(file, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(domains_read(file, &d, &e), 0); /* nothing in it */
    assert_null(d.names);
    f = fopen(file, "w");
    (void)fputs("a.io\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(domains_read(file, &d, &e), 0);
    assert_string_equal(d.names[0], "a.io");
    assert_null(d.names[1]);
    domains_done(&d);
    assert_int_equal(domains_read(dir.path, &d, &e), -1); /* a directory */
    scratch_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_too_many_are_refused),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
