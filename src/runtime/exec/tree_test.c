#include "runtime/exec/tree.h"

#include "base/time.h"
#include "ev/spawn.h"
#include "runtime/exec/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define STORM_MS 20000 /* a storm nobody ends still ends by itself */

static bool is_old_kernel; /* do without pidfds and lists of children */

/* A command with its output in a pipe of its own. */
struct command {
    pid_t pid;
    int out_fd;
    char link[32];
};

static struct command start(const char *script)
{
    char *argv[] = { "sh", "-c", (char *)(uintptr_t)script, NULL },
         *storm[] = { "/proc/self/exe", "storm", NULL };
    struct command c = { .pid = -1 };
    struct spawn_spec s = SPAWN_SPEC_INIT;
    struct spawn_fail fail;
    struct stat st;
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(fstat(fds[0], &st), 0);
    (void)snprintf(c.link, sizeof c.link, "pipe:[%lu]", (unsigned long)st.st_ino);
    s.argv = script ? argv : storm;
    s.envp = environ;
    s.fds[1] = fds[1];
    s.flags = SPAWN_SESSION | SPAWN_SUBREAPER;
    c.pid = spawn(&s, &fail);
    c.out_fd = fds[0];
    assert_true(c.pid > 0);
    (void)close(fds[1]);
    return c;
}

/* Scripts print a line when everybody they start is there. */
static void await_line(const struct command *c)
{
    char byte = 0;

    while (byte != '\n')
        assert_int_equal(read(c->out_fd, &byte, 1), 1);
}

static struct tree_report end(const struct command *c, bool is_reaped, const struct command *other)
{
    struct tree t = {
        .main = c->pid, .has_main = !is_reaped, .main_fd = -1, .is_unlisted = is_old_kernel
    };
    struct tree_report r = { 0 };

    if (!is_reaped && !is_old_kernel)
        t.main_fd = proc_open(c->pid);
    t.links[t.link_count++] = c->link;
    if (other) {
        t.others = &other->pid;
        t.other_count = 1;
    }
    tree_kill(&t, &r);
    own_fd_close(&t.main_fd);
    return r;
}

/* We are the subreaper of all: when there is nobody to wait for, nobody lives. */
static bool is_all_gone(void)
{
    for (uint64_t until = time_mono_ms() + 1000; time_mono_ms() < until; (void)usleep(500)) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (errno == ECHILD)
            return true;
    }
    return false;
}

static void test_a_tree_ends_whole(void **state)
{
    /* clang-format off */
    static const struct { const char *name, *script; unsigned at_least; } rows[] = {
        { "one process",                   "echo; exec sleep 60", 1 },
        { "children and grandchildren",    "sleep 60 & (sleep 60 & sleep 60) & sh -c 'sleep 60 & sleep 60' & sleep 0.05; echo; wait", 6 },
        { "children that left the session", "setsid -f sleep 60; (setsid sh -c 'sleep 60 & setsid -f sleep 60; sleep 60' &) ; sleep 0.05; echo; sleep 60", 5 },
        { "children that closed the pipe", "setsid -f sleep 60 >/dev/null 2>&1 </dev/null; sleep 0.05; echo; sleep 60", 2 },
        { "a tree that ignores signals",   "trap '' TERM HUP INT; sleep 60 & echo; wait; sleep 60", 2 },
        { "a stopped one",                 "sleep 60 & kill -STOP $!; echo; sleep 60", 2 },
        { "thirty in a chain",             "f() { if test $1 -gt 0; then f $(($1 - 1)) & wait; else echo; sleep 60; fi; }; f 30", 30 },
    };
    /* clang-format on */

    (void)state;
    EACH(r, rows) {
        struct command c = start(r->script);
        struct tree_report report;
        uint64_t began;

        await_line(&c);
        began = time_mono_ms();
        report = end(&c, false, NULL);
        if (report.killed < r->at_least || report.left || !is_all_gone())
            fail_msg("%s: killed %u of %u, left %u", r->name, report.killed, r->at_least,
                     report.left);
        assert_true(time_mono_ms() - began < 1500);
        (void)close(c.out_fd);
    }
}

static void test_a_tree_ends_whole_on_old_kernels(void **state)
{
    is_old_kernel = true;
    test_a_tree_ends_whole(state);
    is_old_kernel = false;
}

static void test_orphans_are_found_by_session_and_pipe(void **state)
{
    static const struct {
        const char *name, *script;
        unsigned want;
    } rows[] = {
        { "in the session", "sleep 60 >/dev/null 2>&1 & echo", 1 },
        { "out of it, but holding the pipe", "setsid -f sleep 60; echo", 1 },
        { "and what is below",
          "setsid -f sh -c 'sleep 60 >/dev/null & setsid sleep 60 >/dev/null & sleep 60; :'; sleep 0.05; echo",
          4 },
    };

    (void)state;
    EACH(r, rows) {
        struct command c = start(r->script);
        struct tree_report report;

        await_line(&c);
        assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
        (void)usleep(20000);
        report = end(&c, true, NULL);
        if (report.killed != r->want || report.left || !is_all_gone())
            fail_msg("%s: killed %u, left %u", r->name, report.killed, report.left);
        (void)close(c.out_fd);
    }
}

static void test_other_commands_are_spared(void **state)
{
    struct command other, c = start("sleep 60 & echo; exit 0");
    struct tree_report report;
    int saved = dup(1);
    char path[64];

    (void)state;
    /* The other one even holds our pipe. */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", c.out_fd);
    assert_int_equal(dup2(open(path, O_WRONLY | O_CLOEXEC), 2), 2);
    other = start("sleep 60 & setsid -f sleep 60; echo; exec sleep 60");
    (void)dup2(saved, 2);
    await_line(&c);
    await_line(&other);
    assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
    report = end(&c, true, &other);
    assert_int_equal(report.killed, 1);
    report = end(&other, false, NULL);
    assert_int_equal(report.killed, 3); /* all of them were alive */
    assert_true(is_all_gone());
    (void)close(c.out_fd);
    (void)close(other.out_fd);
}

/* Keeps processes moving: each forks and ends, its child goes on. "storm" stays in the group, "gale" leaves it
 * at every step. */
static int storm(bool has_sessions)
{
    uint64_t until = time_mono_ms() + STORM_MS;

    for (int i = 0; i < (has_sessions ? 20 : 60); i++) {
        if (fork() == 0) {
            while (time_mono_ms() < until) {
                if (fork() > 0)
                    _exit(0);
                if (has_sessions)
                    (void)setsid();
                (void)usleep(has_sessions ? 5000 : 1000);
            }
            _exit(0);
        }
    }
    (void)!write(1, "\n", 1);
    while (time_mono_ms() < until)
        (void)waitpid(-1, NULL, 0);
    return 0;
}

static void test_a_fork_storm_is_caught(void **state)
{
    static const char *const storms[] = { NULL, "exec /proc/$PPID/exe gale" };

    (void)state;
    EACH(script, storms) {
        struct command c = start(*script);
        struct tree_report report;
        uint64_t began;

        await_line(&c);
        (void)usleep(20000);
        began = time_mono_ms();
        report = end(&c, false, NULL);
        print_message("killed %u in %lu ms\n", report.killed,
                      (unsigned long)(time_mono_ms() - began));
        assert_int_equal(report.left, 0);
        assert_true(report.killed >= 15);
        assert_true(time_mono_ms() - began < TREE_BUDGET_MS + 500);
        assert_true(is_all_gone());
        (void)close(c.out_fd);
    }
}

static void test_the_rest_goes_at_shutdown(void **state)
{
    struct command c = start("setsid -f sleep 60 >/dev/null 2>&1; sleep 0.05; echo");
    struct tree_report report = { 0 };

    (void)state;
    await_line(&c);
    assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
    report = end(&c, true, NULL);
    assert_int_equal(report.killed, 0); /* nothing ties it to the command any more */
    tree_kill_rest(&report);
    assert_int_equal(report.killed, 1);
    assert_true(is_all_gone());
    (void)close(c.out_fd);
}

static void test_a_number_in_other_hands_is_no_sign(void **state)
{
    struct command old = start("exit 0"), young;
    struct tree_report report;

    (void)state;
    assert_int_equal(waitpid(old.pid, NULL, 0), old.pid);
    young = start("sleep 60 & echo; wait");
    await_line(&young);
    old.pid = young.pid; /* as if the kernel had given the number again */
    report = end(&old, true, NULL);
    assert_int_equal(report.killed, 0);
    report = end(&young, false, NULL);
    assert_int_equal(report.killed, 2);
    assert_true(is_all_gone());
    (void)close(old.out_fd);
    (void)close(young.out_fd);
}

static void test_proc_reads_a_hostile_name(void **state)
{
    struct proc p = { 0 };
    char name[16] = "";

    (void)state;
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_int_equal(prctl(PR_SET_NAME, ") Z 1 (x) y"), 0);
    assert_true(proc_read(getpid(), &p));
    assert_int_equal(p.ppid, getppid());
    assert_int_equal(p.session, getsid(0));
    assert_int_equal(p.pgrp, getpgid(0));
    assert_true(p.state == 'R' && p.has_execed && p.threads == 1 && p.start > 0);
    (void)prctl(PR_SET_NAME, name);
    assert_false(proc_read(0x3fffffff, &p));
    assert_false(proc_signal(getpid(), p.start + 1, SIGKILL)); /* another incarnation */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_a_tree_ends_whole),
        cmocka_unit_test(test_a_tree_ends_whole_on_old_kernels),
        cmocka_unit_test(test_orphans_are_found_by_session_and_pipe),
        cmocka_unit_test(test_other_commands_are_spared),
        cmocka_unit_test(test_a_fork_storm_is_caught),
        cmocka_unit_test(test_the_rest_goes_at_shutdown),
        cmocka_unit_test(test_a_number_in_other_hands_is_no_sign),
        cmocka_unit_test(test_proc_reads_a_hostile_name),
    };

    if (argc == 2)
        return storm(strcmp(argv[1], "gale") == 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return cmocka_run_group_tests(all, NULL, NULL);
}
