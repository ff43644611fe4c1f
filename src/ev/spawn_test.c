#include "ev/spawn.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#define OUTPUT_MAX_BYTES 65536

static char tmp_dir[] = "/tmp/silica-spawn-XXXXXX";
static char plain_env[] = "A=1", *const envp[] = { plain_env, NULL };

/* Runs it with its output in a pipe; the text it wrote and its wait status. */
static pid_t run_out(struct spawn_spec *s, struct buf *out, int *ret_status,
                     struct spawn_fail *fail)
{
    struct err e;
    int fds[2];
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    s->fds[1] = fds[1];
    if (!s->envp)
        s->envp = envp;
    pid = spawn(s, fail);
    (void)close(fds[1]);
    if (pid > 0) {
        assert_int_equal(fd_read_all(fds[0], out, &e), 0);
        assert_int_equal(waitpid(pid, ret_status, 0), pid);
    }
    (void)close(fds[0]);
    return pid;
}

static void expect_output(struct spawn_spec *s, const char *want)
{
    OWN(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX_BYTES);
    struct spawn_fail fail = { 0 };
    int status = -1;

    assert_true(run_out(s, &out, &status, &fail) > 0);
    assert_int_equal(status, 0);
    assert_string_equal(buf_cstr(&out), want);
}

static void make_file(const char *name, const char *text, mode_t mode)
{
    char path[128];
    struct err e;
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", tmp_dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, span_cstr(text), &e), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

/* The same start without waiting: the child is ours to reap, and says the same. */
static void expect_flight_fails(const struct spawn_spec *s, struct spawn_fail want)
{
    struct spawn_flight *f = NULL;
    struct spawn_fail fail = { 0 };
    int status = 0;
    pid_t pid;

    pid = spawn_begin(s, &f, &fail);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(spawn_has_left(f));
    assert_int_equal(spawn_flight_fail(f).step, want.step);
    assert_int_equal(spawn_flight_fail(f).sys, want.sys);
    spawn_flight_free(f);
}

static void test_failures_name_their_step(void **state)
{
    /* clang-format off */
    static const struct {
        const char *name, *program, *path, *cwd;
        enum spawn_step step;
        int sys;
        const char *message;
    } rows[] = {
        { "missing in the path", "nope-at-all", NULL, NULL, SPAWN_STEP_EXEC, ENOENT, "cannot run 'nope-at-all': No such file or directory" },
        { "missing by name", "/nope/prog", NULL, NULL, SPAWN_STEP_EXEC, ENOENT, "cannot run '/nope/prog': No such file or directory" },
        { "a directory", "/tmp", NULL, NULL, SPAWN_STEP_EXEC, EACCES, "cannot run '/tmp': Permission denied" },
        { "empty name", "", NULL, NULL, SPAWN_STEP_EXEC, EACCES, "cannot run '': Permission denied" },
        { "no interpreter line", "./plain", NULL, tmp_dir, SPAWN_STEP_EXEC, ENOEXEC, "cannot run './plain': Exec format error" },
        { "no interpreter line, by the path", "plain", "/nope:" , tmp_dir, SPAWN_STEP_EXEC, ENOEXEC, "cannot run 'plain': Exec format error" },
        { "not executable, nowhere else", "locked", "/nope::/dev/null", tmp_dir, SPAWN_STEP_EXEC, EACCES, "cannot run 'locked': Permission denied" },
        { "a program under a file", "/dev/null/x", NULL, NULL, SPAWN_STEP_EXEC, ENOTDIR, "cannot run '/dev/null/x': Not a directory" },
        { "missing directory", "true", NULL, "/nope/dir", SPAWN_STEP_CHDIR, ENOENT, "cannot enter '/nope/dir': No such file or directory" },
        { "directory is a file", "true", NULL, "/dev/null", SPAWN_STEP_CHDIR, ENOTDIR, "cannot enter '/dev/null': Not a directory" },
    };
    /* clang-format on */

    (void)state;
    make_file("plain", "echo hi\n", 0755);
    make_file("locked", "#!/bin/sh\n", 0644);
    EACH(r, rows) {
        char *argv[] = { (char *)(uintptr_t)r->program, NULL };
        struct spawn_spec s = SPAWN_SPEC_INIT;
        struct spawn_fail fail = { 0 };
        struct err e = { 0 };

        s.argv = argv;
        s.envp = envp;
        s.search_path = r->path;
        s.cwd = r->cwd;
        print_message("%s\n", r->name);
        assert_int_equal(spawn(&s, &fail), -1);
        assert_string_equal(spawn_step_name(fail.step), spawn_step_name(r->step));
        assert_int_equal(fail.sys, r->sys);
        assert_int_equal(spawn_err(&e, &s, fail), -1);
        assert_string_equal(e.msg, r->message);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left to reap */
        assert_int_equal(errno, ECHILD);
        expect_flight_fails(&s, fail);
    }
}

static void test_the_path_is_searched_in_order(void **state)
{
    static char *argv[] = { "tool", NULL };
    struct spawn_spec s = SPAWN_SPEC_INIT;
    char path[256], dir[160];

    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/b", tmp_dir);
    assert_int_equal(mkdir(dir, 0755), 0);
    make_file("tool", "#!/bin/sh\necho denied\n", 0644);
    make_file("b/tool", "#!/bin/sh\necho second\n", 0755);
    (void)snprintf(path, sizeof path, "/nope:/dev/null:%s:%s/b:/usr/bin", tmp_dir, tmp_dir);
    s.argv = argv;
    s.search_path = path;
    expect_output(&s, "second\n");
    s.search_path = "/nope:"; /* a trailing empty part is the working directory */
    s.cwd = dir;
    expect_output(&s, "second\n");
}

static void test_only_three_descriptors_survive(void **state)
{
    static char *argv[] = { "ls", "/proc/self/fd", NULL };
    struct spawn_spec s = SPAWN_SPEC_INIT;
    int leaky = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as a library might */

    (void)state;
    assert_true(leaky >= 0);
    s.argv = argv;
    expect_output(&s, "0\n1\n2\n3\n"); /* 3 is ls's own */
    (void)close(leaky);
}

static void test_descriptors_may_cross(void **state)
{
    static char *argv[] = { "sh", "-c", "echo to1; echo to2 >&2", NULL };
    struct spawn_spec s = SPAWN_SPEC_INIT;
    struct spawn_fail fail;
    char got1[8] = "", got2[8] = "";
    int a[2], b[2], saved[3], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(a, O_CLOEXEC), 0);
    assert_int_equal(pipe2(b, O_CLOEXEC), 0);
    for (int i = 1; i < 3; i++)
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
    (void)dup2(b[1], 1); /* our 1 is to become its 2 and the reverse */
    (void)dup2(a[1], 2);
    s.argv = argv;
    s.envp = envp;
    s.fds[1] = 2;
    s.fds[2] = 1;
    pid = spawn(&s, &fail);
    for (int i = 1; i < 3; i++)
        (void)dup2(saved[i], i);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(read(a[0], got1, sizeof got1 - 1), 4);
    assert_int_equal(read(b[0], got2, sizeof got2 - 1), 4);
    assert_string_equal(got1, "to1\n");
    assert_string_equal(got2, "to2\n");
}

static void test_session_group_and_directory(void **state)
{
    /* pid, process group and session of the shell, from its stat line */
    static char *argv[] = {
        "sh", "-c",
        "read -r pid name st ppid pgrp sid rest </proc/$$/stat; "
        "test $pgrp = $pid && echo own-group; test $sid = $pid && echo own-session; pwd",
        NULL
    };
    struct spawn_spec s = SPAWN_SPEC_INIT;

    (void)state;
    s.argv = argv;
    s.cwd = "/usr";
    s.flags = SPAWN_SESSION;
    expect_output(&s, "own-group\nown-session\n/usr\n");
    s.flags = SPAWN_GROUP;
    s.cwd_fd = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    expect_output(&s, "own-group\n/etc\n"); /* the descriptor wins */
    (void)close(s.cwd_fd);
}

static void on_signal(int sig)
{
    (void)sig;
}

static void test_signals_are_as_after_login(void **state)
{
    static char *argv[] = { "sed", "-n", "/^Sig[BIC]/p", "/proc/self/status", NULL };
    struct sigaction caught = { .sa_handler = on_signal }, ignored = { .sa_handler = SIG_IGN },
                     old[65];
    const int ignore[] = { SIGPIPE, SIGXFSZ, SIGHUP }, catch[] = { SIGTERM, SIGUSR1, SIGRTMAX };
    struct spawn_spec s = SPAWN_SPEC_INIT;
    sigset_t block, before;

    (void)state;
    EACH(sig, ignore)
        assert_int_equal(sigaction(*sig, &ignored, &old[*sig]), 0);
    EACH(sig, catch)
        assert_int_equal(sigaction(*sig, &caught, &old[*sig]), 0);
    sigemptyset(&block);
    sigaddset(&block, SIGCHLD);
    sigaddset(&block, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &block, &before);
    s.argv = argv;
    /* SIGHUP alone stays ignored: that is how nohup works */
    expect_output(
        &s, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000000\n");
    (void)sigprocmask(SIG_SETMASK, NULL, &block);
    assert_int_equal(sigismember(&block, SIGINT), 1); /* ours is as it was */
    assert_int_equal(sigismember(&block, SIGTERM), 0);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    EACH(sig, ignore)
        (void)sigaction(*sig, &old[*sig], NULL);
    EACH(sig, catch)
        (void)sigaction(*sig, &old[*sig], NULL);
}

static void test_orphans_stay_below_a_subreaper(void **state)
{
    /* the grandchild loses its parent, then says who its new one is */
    static char *argv[] = {
        "sh", "-c",
        "sh -c 'setsid sh -c \"sleep 0.1; read -r p n s ppid r </proc/\\$\\$/stat; echo \\$ppid\" &'; "
        "echo $$; sleep 0.3",
        NULL
    };
    OWN(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX_BYTES);
    struct spawn_spec s = SPAWN_SPEC_INIT;
    struct spawn_fail fail = { 0 };
    struct span rest, first, second;
    int status;

    (void)state;
    s.argv = argv;
    s.flags = SPAWN_SESSION | SPAWN_SUBREAPER;
    assert_true(run_out(&s, &out, &status, &fail) > 0);
    rest = buf_span(&out);
    assert_true(span_cut(&rest, '\n', &first));
    assert_true(span_cut(&rest, '\n', &second));
    assert_true(span_eq(first, second));
}

/* Whoever holds the pipe's other end has died when it ends: the child between them and us, and what that one started. */
static void test_tied_ones_die_with_who_started_them(void **state)
{
    static char *argv[] = { "sleep", "1000", NULL };
    OWN(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX_BYTES);
    struct spawn_spec s = SPAWN_SPEC_INIT;
    struct spawn_fail fail;
    struct err e;
    int fds[2];
    pid_t pid;

    (void)state;
    s.argv = argv;
    s.envp = envp;
    s.flags = SPAWN_GROUP | SPAWN_TIED;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    s.fds[1] = fds[1];
    pid = fork();
    if (pid == 0)
        _exit(spawn(&s, &fail) > 0 ? 0 : 1);
    (void)close(fds[1]);
    assert_int_equal(fd_read_all(fds[0], &out, &e), 0);
    (void)close(fds[0]);
    assert_int_equal(waitpid(pid, &fds[0], 0), pid);
    assert_int_equal(fds[0], 0);
}

static void test_a_terminal_becomes_the_controlling_one(void **state)
{
    static char *argv[] = {
        "sh", "-c", "test -t 0 && exec 3</dev/tty && echo tty; sed -n /^SigIgn/p /proc/self/status",
        NULL
    };
    const struct sigaction ignored = { .sa_handler = SIG_IGN };
    struct spawn_spec s = SPAWN_SPEC_INIT;
    struct sigaction old;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    (void)state;
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    s.fds[0] = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(s.fds[0] >= 0);
    s.argv = argv;
    s.flags = SPAWN_SESSION | SPAWN_TTY;
    assert_int_equal(sigaction(SIGHUP, &ignored, &old), 0);
    expect_output(&s, "tty\nSigIgn:\t0000000000000000\n"); /* a hang-up ends it, nohup or not */
    (void)sigaction(SIGHUP, &old, NULL);
    (void)close(s.fds[0]);
    (void)close(master);
}

/* A start that nobody waits for stands still in exec, as on a file system that hangs: a lease on the program does it.
 * Meanwhile this thread goes on, and its errno is its own. */
static void test_nobody_waits_for_a_flight(void **state)
{
    static char *argv[] = { "./leased", NULL };
    struct spawn_spec s = SPAWN_SPEC_INIT;
    struct spawn_fail fail = { 0 };
    struct spawn_flight *f = NULL;
    char path[128];
    int lease, status = -1;
    pid_t pid;

    (void)state;
    make_file("leased", "#!/bin/sh\nexit 7\n", 0755);
    (void)snprintf(path, sizeof path, "%s/leased", tmp_dir);
    lease = open(path, O_RDONLY | O_CLOEXEC);
    (void)signal(SIGIO, SIG_IGN);
    if (lease < 0 || fcntl(lease, F_SETLEASE, F_WRLCK) < 0) {
        print_message("no leases on this file system\n");
        skip();
    }
    s.argv = argv;
    s.envp = envp;
    s.cwd = tmp_dir;
    errno = EXFULL;
    pid = spawn_begin(&s, &f, &fail);
    assert_true(pid > 0);
    (void)usleep(20000);
    assert_false(spawn_has_left(f));
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    assert_int_equal(errno, EXFULL);
    assert_int_equal(fcntl(lease, F_SETLEASE, F_UNLCK), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_true(spawn_has_left(f));
    assert_int_equal(spawn_flight_fail(f).step, SPAWN_STEP_NONE);
    spawn_flight_free(f);
    (void)close(lease);
    (void)signal(SIGIO, SIG_DFL);
}

static void test_a_flight_gets_what_a_spawn_gets(void **state)
{
    static char *argv[] = { "sh", "-c",
                            "pwd; ls /proc/self/fd; sed -n '/^Sig[BI]/p' /proc/self/status", NULL };
    OWN(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX_BYTES);
    struct spawn_spec s = SPAWN_SPEC_INIT;
    struct spawn_fail fail = { 0 };
    struct spawn_flight *f = NULL;
    int fds[2], status = -1;
    struct err e;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    s.argv = argv;
    s.envp = envp;
    s.cwd = "/usr";
    s.fds[1] = fds[1];
    s.flags = SPAWN_SESSION | SPAWN_SUBREAPER;
    pid = spawn_begin(&s, &f, &fail);
    assert_true(pid > 0);
    (void)close(fds[1]); /* it has its own */
    assert_int_equal(fd_read_all(fds[0], &out, &e), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(buf_cstr(&out), "/usr\n0\n1\n2\n3\nSigBlk:\t0000000000000000\nSigIgn:\t"
                                        "0000000000000000\n");
    spawn_flight_free(f);
    (void)close(fds[0]);
}

static void *spawn_many(void *ctx)
{
    static char *argv[] = { "true", NULL };
    long bad = 0;

    (void)ctx;
    for (int i = 0; i < 100; i++) {
        struct spawn_spec s = SPAWN_SPEC_INIT;
        struct spawn_fail fail;
        int status = -1;
        pid_t pid;

        s.argv = argv;
        s.envp = envp;
        s.flags = SPAWN_SESSION;
        pid = spawn(&s, &fail);
        bad += pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
        s.search_path = "/nope";
        bad += spawn(&s, &fail) != -1 || fail.sys != ENOENT;
    }
    return (void *)bad;
}

static void test_threads_spawn_side_by_side(void **state)
{
    pthread_t threads[3];

    (void)state;
    EACH(t, threads)
        assert_int_equal(pthread_create(t, NULL, spawn_many, NULL), 0);
    EACH(t, threads) {
        void *bad = NULL;

        assert_int_equal(pthread_join(*t, &bad), 0);
        assert_null(bad);
    }
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(tmp_dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const names[] = { "plain", "locked", "leased", "tool", "b/tool" };
    char path[128];

    (void)state;
    EACH(name, names) {
        (void)snprintf(path, sizeof path, "%s/%s", tmp_dir, *name);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/b", tmp_dir);
    (void)rmdir(path);
    return rmdir(tmp_dir);
}

/* As after login, whatever nohup, a shell's & or make have left ignored. The C library hides two of the signals. */
static void reset_actions(void)
{
    static const uint64_t none[4]; /* the kernel's struct: all zero is the default action */

    for (int sig = 1; sig < NSIG; sig++)
        (void)syscall(SYS_rt_sigaction, sig, none, NULL, sizeof none[0]);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_failures_name_their_step),
        cmocka_unit_test(test_the_path_is_searched_in_order),
        cmocka_unit_test(test_only_three_descriptors_survive),
        cmocka_unit_test(test_descriptors_may_cross),
        cmocka_unit_test(test_session_group_and_directory),
        cmocka_unit_test(test_signals_are_as_after_login),
        cmocka_unit_test(test_orphans_stay_below_a_subreaper),
        cmocka_unit_test(test_tied_ones_die_with_who_started_them),
        cmocka_unit_test(test_a_terminal_becomes_the_controlling_one),
        cmocka_unit_test(test_nobody_waits_for_a_flight),
        cmocka_unit_test(test_a_flight_gets_what_a_spawn_gets),
        cmocka_unit_test(test_threads_spawn_side_by_side),
    };

    reset_actions();
    return cmocka_run_group_tests(all, make_dir, remove_dir);
}
