#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_set(void **state)
{
    struct err e = { .code = ERR_BUSY, .sys = 5, .hint = "old" };

    assert_int_equal(err_set(&e, ERR_NOT_FOUND, "no sandbox '%s'", "demo"), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.msg, "no sandbox 'demo'");
    assert_string_equal(e.hint, ""); /* a hint belongs to one error */
}

static void test_sys(void **state)
{
    struct err e;

    errno = ENOENT;
    assert_int_equal(err_sys(&e, "cannot open '%s'", "/x"), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(e.msg, "cannot open '/x': No such file or directory");
    assert_int_equal(err_errno(&e, EPERM, "cannot clone"), -1);
    assert_int_equal(e.code, ERR_DENIED);
    assert_string_equal(e.msg, "cannot clone: Operation not permitted");
    assert_int_equal(err_errno(&e, 54321, "cannot guess"), -1);
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_string_equal(e.msg, "cannot guess: error 54321");
}

static void test_wrap(void **state)
{
    struct err e;

    (void)err_errno(&e, EACCES, "cannot write");
    err_hint(&e, "run as %s", "root");
    assert_int_equal(err_wrap(&e, "cannot start sandbox '%s'", "demo"), -1);
    assert_int_equal(e.code, ERR_DENIED);
    assert_int_equal(e.sys, EACCES);
    assert_string_equal(e.msg, "cannot start sandbox 'demo': cannot write: Permission denied");
    assert_string_equal(e.hint, "run as root");
}

/* A text that is too long ends in "..." wherever it grew too long. */
static void test_cut(void **state)
{
    char big[1000];
    struct err e;

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    (void)err_set(&e, ERR_INVALID, "%s", big);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    assert_string_equal(e.msg + sizeof e.msg - 6, "xx...");
    (void)err_wrap(&e, "outer");
    assert_memory_equal(e.msg, "outer: xxx", 10);
    assert_string_equal(e.msg + sizeof e.msg - 6, "xx...");
    (void)err_errno(&e, ENOENT, "%.*s", (int)sizeof e.msg - 5, big); /* the cause does not fit */
    assert_string_equal(e.msg + sizeof e.msg - 4, "...");
    (void)err_set(&e, ERR_INVALID, "%.*s", (int)sizeof e.msg - 1, big); /* just fits */
    assert_string_equal(e.msg + sizeof e.msg - 6, "xxxxx");
    err_hint(&e, "%s", big);
    assert_int_equal(strlen(e.hint), sizeof e.hint - 1);
    assert_string_equal(e.hint + sizeof e.hint - 4, "...");
}

/* Every code has a whole row; a code from a peer's bytes is never an index out of the table. */
static void test_map(void **state)
{
    for (unsigned c = 0; c < ERR_CODE_COUNT; c++) {
        const struct err_map *m = err_map((enum err_code)c);

        assert_non_null(m->name);
        assert_non_null(m->kube_reason);
        assert_true(m->http >= 200 && m->http < 600 && m->grpc >= 0 && m->grpc <= 16);
        assert_true((c == ERR_NONE) == (m->exit_code == 0) && (c == ERR_NONE) == (m->grpc == 0));
        for (unsigned other = 0; other < c; other++)
            assert_string_not_equal(m->name, err_map((enum err_code)other)->name);
    }
    assert_ptr_equal(err_map((enum err_code)9999), err_map(ERR_INTERNAL));
    assert_ptr_equal(err_map((enum err_code) - 1), err_map(ERR_INTERNAL));
    assert_int_equal(err_map(ERR_USAGE)->exit_code, 2);
    assert_int_equal(err_map(ERR_LIMIT)->http, 413);
}

static void test_errno(void **state)
{
    static const struct {
        int sys;
        enum err_code code;
    } rows[] = {
        { ENOENT, ERR_NOT_FOUND },   { EACCES, ERR_DENIED },
        { EEXIST, ERR_EXISTS },      { EISDIR, ERR_CONFLICT },
        { ENOSPC, ERR_NO_SPACE },    { EMFILE, ERR_BUSY },
        { ETIMEDOUT, ERR_TIMEOUT },  { EPIPE, ERR_CLOSED },
        { ELOOP, ERR_INVALID },      { ECONNREFUSED, ERR_UNAVAILABLE },
        { ENOSYS, ERR_UNSUPPORTED }, { ECANCELED, ERR_CANCELED },
        { EIO, ERR_INTERNAL },
    };

    EACH(r, rows)
        assert_int_equal(err_code_of_errno(r->sys), r->code);
}

int main(void)
{
    const struct CMUnitTest list[] = { cmocka_unit_test(test_set),  cmocka_unit_test(test_sys),
                                       cmocka_unit_test(test_wrap), cmocka_unit_test(test_cut),
                                       cmocka_unit_test(test_map),  cmocka_unit_test(test_errno) };

    return cmocka_run_group_tests(list, NULL, NULL);
}
