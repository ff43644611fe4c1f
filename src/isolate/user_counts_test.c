/* The process that makes a sandbox's user namespace is another user meanwhile, and as before afterwards; what a sandbox may
 * have of each count. That the kernel counts apart then is tested from outside: tests/security/test_user_counts.py. */
#include "isolate/user_counts.h"

#include "base/fd.h"
#include "isolate/limits.h"
#include "isolate/testwho.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

static const struct ids one = { .kind = IDS_ONE, .count = 1 };
static const struct ids range = { .kind = IDS_ROOT, .base = IDS_BASE, .count = IDS_COUNT };

static struct rlimit signals(void)
{
    struct rlimit now;

    assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &now), 0);
    return now;
}

static void test_another_user_meanwhile(void **state)
{
    struct user_counts u;
    rlim_t before = signals().rlim_cur;
    int bits = prctl(PR_GET_SECUREBITS), number = 0;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(prctl(PR_SET_PDEATHSIG, SIGUSR1), 0);
    user_counts_begin(&u, IDS_BASE);
    assert_true(u.is_owner);
    assert_int_equal(geteuid(), IDS_BASE);
    assert_int_equal(getuid(), 0);
    assert_int_equal(setfsuid((uid_t)-1), 0); /* files are still root's to open */
    user_counts_end(&u);
    assert_int_equal(geteuid(), 0);
    assert_int_equal(setfsuid((uid_t)-1), 0);
    assert_int_equal(prctl(PR_GET_SECUREBITS), bits);
    assert_int_equal(prctl(PR_GET_PDEATHSIG, &number), 0);
    assert_int_equal(number, SIGUSR1);
    assert_int_equal(prctl(PR_SET_PDEATHSIG, 0), 0);
    assert_true(signals().rlim_cur == before);
}

static void test_limits_are_lower_meanwhile(void **state)
{
    struct user_counts u;
    struct rlimit before = signals();

    (void)state;
    if (before.rlim_cur == RLIM_INFINITY)
        skip();
    user_counts_begin(&u, 0);
    assert_true(signals().rlim_cur == before.rlim_cur - before.rlim_cur / 4);
    assert_true(signals().rlim_max == before.rlim_max);
    user_counts_end(&u);
    assert_true(signals().rlim_cur == before.rlim_cur && signals().rlim_max == before.rlim_max);
}

static int a_quarter(void)
{
    OWN(buf_done) struct buf text = BUF_INIT(32);
    uint64_t counts[USER_COUNTS];
    struct err e;

    if (fd_read_file("/proc/sys/fs/inotify/max_user_instances", &text, &e) < 0)
        return 0; /* none are counted here */
    user_counts_of_sandbox(&one, counts);
    return counts[USER_INOTIFY_INSTANCES] == strtoull(buf_cstr(&text), NULL, 10) / 4 ? 0 : 1;
}

static void test_what_a_sandbox_may_have(void **state)
{
    uint64_t counts[USER_COUNTS];

    (void)state;
    assert_int_equal(a_quarter(), 0);
    if (geteuid() != 0)
        skip();
    user_counts_of_sandbox(&range, counts);
    for (int i = 0; i < USER_COUNTS; i++)
        assert_int_equal(counts[i], 0); /* its own user's, all of it */
    assert_int_equal(testwho_run_as_nobody(a_quarter), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_user_meanwhile),
        cmocka_unit_test(test_limits_are_lower_meanwhile),
        cmocka_unit_test(test_what_a_sandbox_may_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
