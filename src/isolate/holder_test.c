/* Maps of ids, made with and without a process in reserve. Here it is a fork: strands are for static programs, whose volumes
 * the end-to-end tests look at. */
#include "isolate/holder.h"

#include "base/fd.h"
#include "isolate/id_range.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void skip_unless_root(void)
{
    if (geteuid() != 0)
        skip();
}

/* The children of this process: how many, and the last one's pid. */
static size_t children(pid_t *ret_last)
{
    FILE *f = fopen("/proc/thread-self/children", "re");
    size_t n = 0;
    int pid;

    if (!f)
        skip(); /* a kernel without CONFIG_PROC_CHILDREN */
    while (fscanf(f, "%d", &pid) == 1) {
        n++;
        if (ret_last)
            *ret_last = pid;
    }
    fclose(f);
    return n;
}

/* In a child that goes there: the first line of its map. */
static void read_map(int fd, const char *file, unsigned *ret_base, unsigned *ret_count)
{
    int ends[2];
    unsigned inside = 1;
    char line[64] = "";

    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();

    if (pid == 0) {
        int map = setns(fd, CLONE_NEWUSER) < 0 ? -1 : open(file, O_RDONLY | O_CLOEXEC);
        ssize_t n = map < 0 ? -1 : read(map, line, sizeof line - 1);

        _exit(n > 0 && write(ends[1], line, (size_t)n) == n ? 0 : 1);
    }
    close(ends[1]);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(sscanf(line, "%u %u %u", &inside, ret_base, ret_count), 3);
    assert_int_equal(inside, 0);
}

static void check_a_map(const char *name)
{
    struct err e;
    struct ids ids;
    unsigned base, count;

    assert_int_equal(ids_choose(id_range_base(id_range_of_name(name)), 0, 0, false, &ids, &e), 0);
    OWN_FD int fd = holder_open_map(&ids, &e);

    assert_true(fd >= 0);
    read_map(fd, "/proc/self/uid_map", &base, &count);
    assert_int_equal(base, ids.base);
    assert_int_equal(count, ids.count);
    read_map(fd, "/proc/self/gid_map", &base, &count);
    assert_int_equal(base, ids.gid_base);
}

static void test_a_map_is_as_it_was_asked_for(void **state)
{
    (void)state;
    skip_unless_root();
    assert_false(holder_wants_spare());
    check_a_map("one");
    check_a_map("another");
    assert_int_equal(children(NULL), 0);
    assert_true(holder_wants_spare());
}

static void test_the_reserve_is_one_process(void **state)
{
    pid_t spare, next;

    (void)state;
    skip_unless_root();
    holder_make_spare();
    assert_false(holder_wants_spare());
    assert_int_equal(children(&spare), 1);
    holder_make_spare(); /* there is one */
    assert_int_equal(children(NULL), 1);
    check_a_map("third");
    assert_true(holder_wants_spare());
    holder_make_spare(); /* which takes the last one away */
    assert_int_equal(children(&next), 1);
    assert_true(next != spare);
}

static void test_a_reserve_that_was_killed_is_not_missed(void **state)
{
    pid_t spare;

    (void)state;
    skip_unless_root();
    holder_make_spare();
    assert_int_equal(children(&spare), 1);
    assert_int_equal(kill(spare, SIGKILL), 0);
    usleep(10000); /* dead or dying: either is to be coped with */
    check_a_map("fourth");
    check_a_map("fifth");
    holder_make_spare();
    assert_int_equal(children(NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_map_is_as_it_was_asked_for),
        cmocka_unit_test(test_the_reserve_is_one_process),
        cmocka_unit_test(test_a_reserve_that_was_killed_is_not_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
