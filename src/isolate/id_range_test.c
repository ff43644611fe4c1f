/* Ranges of host ids: taken by one, held as long as it lives, and refused when there are none. */
#include "isolate/id_range.h"

#include "base/scratch.h"
#include "isolate/testwho.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void skip_unless_root(void)
{
    if (geteuid() != 0)
        skip();
}

static uint32_t take(struct id_ranges *r, const char *name)
{
    uint32_t base = 0;
    struct err e;

    assert_int_equal(id_range_take(r, name, 1000, &base, &e), 0);
    assert_int_not_equal(base, 0);
    return base;
}

/* In the kernel's lists of users (kernel/user.c: 128 of them) those of many sandboxes are not all in one. */
static void test_where_they_are(void **state)
{
    unsigned lists[128] = { 0 };
    uint64_t last_end = 0;

    (void)state;
    for (size_t i = 0; i < IDS_SLOTS; i++) {
        uint32_t base = id_range_base(i), uid = base + 1000;

        assert_true(base >= IDS_BASE && base >= last_end);
        last_end = (uint64_t)base + IDS_COUNT;
        assert_true(last_end < UINT32_MAX && (i >= IDS_LOW_SLOTS || last_end < 1u << 31));
        lists[((uid >> 7) + uid) % LEN(lists)]++;
    }
    for (size_t i = 0; i < LEN(lists); i++)
        assert_true(lists[i] < 3 * IDS_SLOTS / LEN(lists));
    assert_int_equal(id_range_of_name("a"), id_range_of_name("a"));
    assert_int_not_equal(id_range_of_name("a"), id_range_of_name("b"));
    assert_true(id_range_of_name("a") < IDS_LOW_SLOTS);
}

/* Of a second process, with a lock of its own. Ends when its input does. */
struct other {
    pid_t pid;
    int hold_fd;
    uint32_t base;
};

static struct other other_take(const char *dir, const char *name)
{
    struct other o = { 0 };
    int hold[2], said[2];

    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    assert_int_equal(pipe2(said, O_CLOEXEC), 0);
    o.pid = fork();
    if (o.pid == 0) {
        uint32_t base = take(id_ranges_new(dir), name);
        char byte;

        (void)close(hold[1]);
        if (write(said[1], &base, sizeof base) != sizeof base)
            _exit(1);
        _exit(read(hold[0], &byte, 1) != 0);
    }
    (void)close(hold[0]);
    (void)close(said[1]);
    assert_int_equal(read(said[0], &o.base, sizeof o.base), sizeof o.base);
    (void)close(said[0]);
    o.hold_fd = hold[1];
    return o;
}

static void other_kill(struct other *o)
{
    assert_int_equal(kill(o->pid, SIGKILL), 0);
    assert_int_equal(waitpid(o->pid, NULL, 0), o->pid);
    (void)close(o->hold_fd);
}

static void test_taken_by_one(void **state)
{
    struct scratch s;
    struct id_ranges *r;
    struct other o;
    uint32_t own = id_range_base(id_range_of_name("id-range-test")), base;

    (void)state;
    skip_unless_root();
    scratch_make(&s);
    r = id_ranges_new(s.path);
    o = other_take(s.path, "id-range-test");
    assert_int_equal(o.base, own); /* a name has its own when it is free */
    base = take(r, "id-range-test");
    assert_int_not_equal(base, own);
    id_range_release(r, base);
    other_kill(&o);
    assert_int_equal(take(r, "id-range-test"), own); /* gone with its holder */
    o = other_take(s.path, "id-range-test");
    assert_int_not_equal(o.base, own);
    other_kill(&o);
    id_range_share(r, own);
    id_range_release(r, own);
    assert_int_not_equal(take(r, "id-range-test"), own); /* one of two has it still */
    id_range_release(r, own);
    assert_int_equal(take(r, "id-range-test"), own);
    id_ranges_free(r);
    scratch_remove(&s);
}

/* A process that has ranges is copied: what the copy takes is its own. */
static void test_a_copy_of_the_process(void **state)
{
    struct scratch s;
    struct id_ranges *r;
    uint32_t base;
    int status;
    pid_t pid;

    (void)state;
    skip_unless_root();
    scratch_make(&s);
    r = id_ranges_new(s.path);
    base = take(r, "id-range-test");
    pid = fork();
    if (pid == 0) {
        id_range_release(r, base); /* not its to give back */
        _exit(take(r, "id-range-test") == base);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_not_equal(take(r, "id-range-test"), base);
    id_ranges_free(r);
    scratch_remove(&s);
}

/* A user that no lock tells of: as a keeper's before there were locks. */
static void test_a_user_that_runs_something(void **state)
{
    struct scratch s;
    const uid_t inside[] = { 0, 1000, 33 };
    uint32_t own = id_range_base(id_range_of_name("id-range-test")), base = 0;
    struct id_ranges *r;
    struct err e;

    (void)state;
    skip_unless_root();
    scratch_make(&s);
    r = id_ranges_new(s.path);
    EACH(uid, inside) {
        int ready[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
            if (setresuid(own + *uid, own + *uid, own + *uid) < 0 || write(ready[1], "", 1) != 1)
                _exit(1);
            for (;;)
                (void)pause();
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        assert_int_equal(id_range_take(r, "id-range-test", 33, &base, &e), 0);
        assert_int_not_equal(base, own);
        id_range_release(r, base);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
        assert_int_equal(id_range_take(r, "id-range-test", 33, &base, &e), 0);
        assert_int_equal(base, own);
        id_range_release(r, base);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    id_ranges_free(r);
    scratch_remove(&s);
}

/* Those that other programs' processes have at the moment are not to be had. */
static void test_none_is_left(void **state)
{
    struct scratch s;
    static bool seen[IDS_SLOTS];
    size_t n = 0;
    struct id_ranges *r;
    uint32_t base = 0, last;
    char name[32] = "many";
    struct err e;

    (void)state;
    skip_unless_root();
    scratch_make(&s);
    r = id_ranges_new(s.path);
    do {
        size_t slot = 0;

        last = base;
        if (n)
            slot = base < IDS_HIGH_BASE ? (base - IDS_BASE) / IDS_STRIDE
                                        : IDS_LOW_SLOTS + (base - IDS_HIGH_BASE) / IDS_STRIDE;
        assert_true(n == 0 || id_range_base(slot) == base);
        assert_true(slot < IDS_SLOTS && !seen[slot]);
        seen[slot] = n > 0;
        (void)snprintf(name, sizeof name, "many-%zu", n++);
    } while (id_range_take(r, name, 1000, &base, &e) == 0);
    assert_true(n > IDS_SLOTS - 4000 && n <= IDS_SLOTS + 1);
    assert_int_equal(e.code, ERR_BUSY);
    assert_string_equal(e.msg, "all 16383 ranges of ids for root's sandboxes are taken");
    assert_int_equal(base, last); /* as it was */
    id_range_release(r, last);
    assert_int_equal(take(r, "more"), last);
    id_ranges_free(r);
    scratch_remove(&s);
}

/* Others could lock every byte of it, or put another file in its place. */
static void test_a_file_that_others_can_open(void **state)
{
    struct scratch s;
    struct id_ranges *r;
    char path[512];
    uint32_t base;
    struct err e;

    (void)state;
    skip_unless_root();
    scratch_make(&s);
    r = id_ranges_new(s.path);
    assert_int_equal(chmod(s.path, 0777), 0);
    assert_int_equal(id_range_take(r, "id-range-test", 0, &base, &e), -1);
    assert_int_equal(e.code, ERR_DENIED);
    assert_int_equal(chmod(s.path, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/ids", s.path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(id_range_take(r, "id-range-test", 0, &base, &e), -1);
    assert_int_equal(unlink(path), 0);
    OWN_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(fchmod(fd, 0644), 0);
    assert_int_equal(id_range_take(r, "id-range-test", 0, &base, &e), -1);
    assert_int_equal(e.code, ERR_DENIED);
    assert_int_equal(fchmod(fd, 0600), 0);
    assert_int_equal(id_range_take(r, "id-range-test", 0, &base, &e), 0);
    id_ranges_free(r);
    scratch_remove(&s);
}

static int take_as_nobody(void)
{
    struct id_ranges *r = id_ranges_new("/nowhere");
    uint32_t base = 7;
    struct err e;
    int rc = id_range_take(r, "id-range-test", 1000, &base, &e) == 0 && base == 0 ? 0 : 1;

    id_range_share(r, base);
    id_range_release(r, base);
    id_ranges_free(r);
    return rc;
}

static void test_an_account_has_none(void **state)
{
    (void)state;
    skip_unless_root();
    assert_int_equal(testwho_run_as_nobody(take_as_nobody), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_they_are),
        cmocka_unit_test(test_taken_by_one),
        cmocka_unit_test(test_a_copy_of_the_process),
        cmocka_unit_test(test_a_user_that_runs_something),
        cmocka_unit_test(test_none_is_left),
        cmocka_unit_test(test_a_file_that_others_can_open),
        cmocka_unit_test(test_an_account_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
