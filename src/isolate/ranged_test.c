/* Files of other ids, worked on by an account with a range; and what one without it is told. */
#include "isolate/ranged.h"

#include "base/scratch.h"
#include "isolate/testwho.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#define RANGE_BASE 1000000 /* as testwho.c has it */

struct work {
    int dir_fd;
    unsigned answer;
};

static int leave_file(void *ctx, struct err *e)
{
    struct work *w = ctx;
    OWN_FD int fd = -1;

    if (mkdirat(w->dir_fd, "theirs", 0700) < 0)
        return err_sys(e, "mkdir");
    fd = openat(w->dir_fd, "theirs/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || fchown(fd, 33, 2000) < 0 ||
        fchownat(w->dir_fd, "theirs", 33, 2000, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(e, "chown");
    w->answer = geteuid() + 42;
    return 0;
}

static int remove_file(void *ctx, struct err *e)
{
    struct work *w = ctx;

    if (unlinkat(w->dir_fd, "theirs/file", 0) < 0 ||
        unlinkat(w->dir_fd, "theirs", AT_REMOVEDIR) < 0)
        return err_sys(e, "remove");
    w->answer = 7;
    return 0;
}

static int refuse(void *ctx, struct err *e)
{
    struct work *w = ctx;

    w->answer = 99;
    (void)err_set(e, ERR_CONFLICT, "no");
    err_hint(e, "never");
    return -1;
}

static int die(void *ctx, struct err *e)
{
    (void)ctx;
    (void)e;
    _exit(0);
}

static void files_of_others(void **state)
{
    struct scratch scratch;
    struct work w = { 0 };
    struct ranged_job job = {
        .fn = leave_file, .ctx = &w, .result = &w.answer, .result_n = sizeof w.answer
    };
    struct stat st;
    struct err e;

    (void)state;
    scratch_make(&scratch);
    w.dir_fd = scratch.fd;
    assert_int_equal(ranged_run(&job, &e), 0); /* it makes the namespace itself */
    assert_int_equal(w.answer, 42);            /* it was 0 in there */
    assert_int_equal(fstatat(w.dir_fd, "theirs", &st, 0), 0);
    assert_int_equal(st.st_uid, RANGE_BASE + 32);
    assert_int_equal(st.st_gid, RANGE_BASE + 1999);
    assert_int_equal(unlinkat(w.dir_fd, "theirs/file", 0), -1);
    assert_int_equal(errno, EACCES);
    job.fn = refuse; /* what a failed job changed does not come back */
    assert_int_equal(ranged_run(&job, &e), -1);
    assert_string_equal(e.msg, "no");
    assert_string_equal(e.hint, "never");
    assert_int_equal(w.answer, 42);
    job.fn = die;
    assert_int_equal(ranged_run(&job, &e), -1);
    assert_non_null(strstr(e.msg, "the process that was to work on files of other ids died"));
    assert_int_equal(ranged_check(&e), 0);
    job.fn = remove_file; /* in the one that is there */
    assert_int_equal(ranged_run(&job, &e), 0);
    assert_int_equal(w.answer, 7);
    assert_int_equal(fstatat(w.dir_fd, "theirs", &st, 0), -1);
    scratch_remove(&scratch);
}

static void no_range(void **state)
{
    struct err e;

    (void)state;
    assert_int_equal(ranged_check(&e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_string_equal(e.msg, "user 65534 has no 65536 ids in /etc/subuid and /etc/subgid");
    assert_non_null(strstr(e.hint, "usermod"));
}

static int run_ranged(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(files_of_others) };

    return cmocka_run_group_tests_name("an account with a range", tests, NULL, NULL);
}

static int run_nobody(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_range) };

    return cmocka_run_group_tests_name("an account", tests, NULL, NULL);
}

int main(void)
{
    if (geteuid() != 0) {
        printf("1..0 # skipped: needs root\n");
        return 0;
    }
    return testwho_run_as_ranged(run_ranged) | testwho_run_as_nobody(run_nobody);
}
