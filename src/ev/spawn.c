#include "ev/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Our frames: one path buffer of PATH_MAX and change, and as much again. */
#define STACK_BYTES (16 * 1024)

/* The child runs on our memory but on this stack, with the address of our thread's storage: a sanitizer's
 * bookkeeping of frames does not fit it, so the functions on it go without. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"), no_stack_protector))

struct launch {
    const struct spawn_spec *spec;
    pid_t parent; /* us, for SPAWN_TIED */
    struct spawn_fail
        fail; /* written by the child, read by us when it is gone: no copy in between */
};

struct spawn_flight {
    struct launch launch;
    struct spawn_spec spec;
    int is_aboard; /* the kernel clears it when the child lets go of our memory */
    uint8_t stack[STACK_BYTES] __attribute__((aligned(16)));
};

/* The last one that came back, for the next: its pages are there. Any thread takes it and puts it back at once. */
static struct spawn_flight *spare;

/* A system call without the C library: its wrappers write errno, which is the errno of our thread, and that may be
 * running. Returns what the kernel does: -errno on failure. */
IN_CHILD static long call(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
    register long fourth __asm__("r10") = d;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#else
#error "say here how this processor makes a system call"
#endif
}

/* 0, or -1 with the failed step noted: result is what call() returned. */
IN_CHILD static int check(struct launch *l, enum spawn_step step, long result)
{
    if (result >= 0)
        return 0;
    l->fail = (struct spawn_fail){ step, (int)-result };
    return -1;
}

IN_CHILD static int set_stdio(struct launch *l)
{
    int fds[3];

    for (int i = 0; i < 3; i++) {
        fds[i] = l->spec->fds[i];
        /* A source that is itself one of the targets would be overwritten: move it out of the way. */
        if (fds[i] >= 0 && fds[i] < 3 && fds[i] != i) {
            fds[i] = (int)call(SYS_fcntl, fds[i], F_DUPFD_CLOEXEC, 3, 0);
            if (check(l, SPAWN_STEP_STDIO, fds[i]) < 0)
                return -1;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (fds[i] < 0)
            continue;
        if (check(l, SPAWN_STEP_STDIO,
                  fds[i] == i ? call(SYS_fcntl, i, F_SETFD, 0, 0)
                              : call(SYS_dup3, fds[i], i, 0, 0)) < 0)
            return -1;
    }
    /* All others are close-on-exec from birth. This is the belt, for one a library opened without. */
    (void)call(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */, 0);
    return 0;
}

/* exec resets what is caught; what is ignored stays so, and two of ours must not. Nothing here is caught: signals come
 * through a signalfd, so no handler can run in the child on the memory it shares with us. Asking for each of the 64
 * actions to be sure would cost as much as the rest of this function together. On a terminal a hang-up must end what runs
 * there, also when nohup started us; elsewhere it stays ignored, as whoever said nohup wanted it. */
IN_CHILD static int reset_signals(struct launch *l)
{
    const uint64_t zeros[4] = { 0 }; /* the default action, and the empty set */

    (void)call(SYS_rt_sigaction, SIGPIPE, (long)zeros, 0, sizeof zeros[0]);
    (void)call(SYS_rt_sigaction, SIGXFSZ, (long)zeros, 0, sizeof zeros[0]);
    if (l->spec->flags & SPAWN_TTY)
        (void)call(SYS_rt_sigaction, SIGHUP, (long)zeros, 0, sizeof zeros[0]);
    return check(l, SPAWN_STEP_SIGNALS,
                 call(SYS_rt_sigprocmask, SIG_SETMASK, (long)zeros, 0, sizeof zeros[0]));
}

IN_CHILD static bool is_absent(long sys)
{
    return sys == ENOENT || sys == ENOTDIR || sys == ESTALE || sys == ENODEV || sys == ETIMEDOUT;
}

/* dir + '/' + name; an empty dir is the working directory. False when it does not fit. */
IN_CHILD static bool join(char path[PATH_MAX], const char *dir, size_t dir_n, const char *name,
                          size_t name_n)
{
    size_t at = 0;

    if (dir_n + name_n + 2 > PATH_MAX)
        return false;
    for (size_t i = 0; i < dir_n; i++)
        path[at++] = dir[i];
    if (dir_n)
        path[at++] = '/';
    for (size_t i = 0; i < name_n; i++)
        path[at++] = name[i];
    path[at] = '\0';
    return true;
}

IN_CHILD static long exec_path(const struct spawn_spec *s, const char *path)
{
    return call(SYS_execve, (long)path, (long)s->argv, (long)s->envp, 0);
}

/* Returns only when nothing could be run, with -errno. */
IN_CHILD static long run_program(const struct spawn_spec *s)
{
    const char *name = s->argv[0], *dir = s->search_path ? s->search_path : SPAWN_DEFAULT_PATH;
    char path[PATH_MAX];
    size_t name_n = 0;
    bool is_denied = false;

    for (; name[name_n]; name_n++) {
        if (name[name_n] == '/')
            return exec_path(s, name);
    }
    for (;;) {
        size_t n = 0;

        while (dir[n] && dir[n] != ':')
            n++;
        if (join(path, dir, n, name, name_n)) {
            long result = exec_path(s, path);

            if (result == -EACCES)
                is_denied = true; /* another directory may hold one that we may run */
            else if (!is_absent(-result))
                return result;
        }
        if (!dir[n])
            break;
        dir += n + 1;
    }
    return is_denied ? -EACCES : -ENOENT;
}

/* The kernel tells of a death that comes after we asked. For one that came before, there is another parent by now. */
IN_CHILD static int tie(struct launch *l)
{
    if (check(l, SPAWN_STEP_SESSION, call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0)) < 0)
        return -1;
    return check(l, SPAWN_STEP_SESSION, call(SYS_getppid, 0, 0, 0, 0) == l->parent ? 0 : -ESRCH);
}

/* Who we are: the child, on the parent's memory; its thread sleeps, or goes on beside us. Nothing here may lock,
 * allocate, or write anywhere but this stack and *l: not even errno. */
IN_CHILD static int child_main(void *arg)
{
    struct launch *l = arg;
    const struct spawn_spec *s = l->spec;
    int rc = 0;

    if (s->flags & SPAWN_SESSION)
        rc = check(l, SPAWN_STEP_SESSION, call(SYS_setsid, 0, 0, 0, 0));
    else if (s->flags & SPAWN_GROUP)
        rc = check(l, SPAWN_STEP_SESSION, call(SYS_setpgid, 0, 0, 0, 0));
    if (rc == 0 && (s->flags & SPAWN_SUBREAPER))
        rc = check(l, SPAWN_STEP_SESSION, call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0));
    if (rc == 0 && (s->flags & SPAWN_TIED))
        rc = tie(l);
    /* The directory before the descriptors: cwd_fd may be one of those about to be replaced. */
    if (rc == 0 && s->cwd_fd >= 0)
        rc = check(l, SPAWN_STEP_CHDIR, call(SYS_fchdir, s->cwd_fd, 0, 0, 0));
    else if (rc == 0 && s->cwd)
        rc = check(l, SPAWN_STEP_CHDIR, call(SYS_chdir, (long)s->cwd, 0, 0, 0));
    if (rc == 0)
        rc = set_stdio(l);
    if (rc == 0 && (s->flags & SPAWN_TTY))
        rc = check(l, SPAWN_STEP_TTY, call(SYS_ioctl, 0, TIOCSCTTY, 0, 0));
    if (rc == 0)
        rc = reset_signals(l);
    if (rc == 0)
        (void)check(l, SPAWN_STEP_EXEC, run_program(s));
    /* Not _exit(): it never returns, and a sanitizer would tidy a stack it does not know. */
    (void)call(SYS_exit_group, 127, 0, 0, 0);
    return 127;
}

/* Every signal blocked: a handler of ours must not run in the child. The raw call: the C library would leave its own
 * two signals out, and a set*id() of another thread must not run its handler in the child either. */
static uint64_t block_signals(void)
{
    uint64_t all = UINT64_MAX, before = 0;

    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    return before;
}

static void restore_signals(uint64_t before)
{
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

static struct spawn_flight *flight_new(const struct spawn_spec *s)
{
    struct spawn_flight *f = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);

    assert(s->argv && s->argv[0] && s->envp);
    if (!f)
        f = own_resize(NULL, 1, sizeof *f); /* not zeroed: it is mostly stack */
    f->spec = *s;
    f->launch =
        (struct launch){ &f->spec, s->flags & SPAWN_TIED ? getpid() : 0, { SPAWN_STEP_NONE, 0 } };
    f->is_aboard = 1;
    return f;
}

/* On failure the flight is gone. */
static pid_t take_off(struct spawn_flight *f, int flags, struct spawn_fail *ret_fail)
{
    uint64_t before = block_signals();
    pid_t pid =
        clone(child_main, f->stack + sizeof f->stack, flags, &f->launch, NULL, NULL, &f->is_aboard);
    int sys = errno;

    restore_signals(before);
    if (pid < 0) {
        spawn_flight_free(f);
        *ret_fail = (struct spawn_fail){ SPAWN_STEP_CLONE, sys };
    }
    return pid;
}

pid_t spawn(const struct spawn_spec *s, struct spawn_fail *ret_fail)
{
    struct spawn_flight *f = flight_new(s);
    /* No exit signal in the flags: exec makes it SIGCHLD, and one that never gets there stays silent and
     * is invisible to a wait for any child, so the status cannot be taken from us. */
    pid_t pid = take_off(f, CLONE_VM | CLONE_VFORK, ret_fail);
    struct spawn_fail fail;

    if (pid < 0)
        return -1;
    fail = f->launch.fail;
    spawn_flight_free(f);
    if (fail.step == SPAWN_STEP_NONE)
        return pid;
    while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    *ret_fail = fail;
    return -1;
}

pid_t spawn_begin(const struct spawn_spec *s, struct spawn_flight **ret,
                  struct spawn_fail *ret_fail)
{
    struct spawn_flight *f = flight_new(s);
    pid_t pid = take_off(f, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, ret_fail);

    if (pid > 0)
        *ret = f;
    return pid;
}

bool spawn_has_left(const struct spawn_flight *f)
{
    return !__atomic_load_n(&f->is_aboard, __ATOMIC_ACQUIRE);
}

struct spawn_fail spawn_flight_fail(const struct spawn_flight *f)
{
    return f->launch.fail;
}

void spawn_flight_free(struct spawn_flight *f)
{
    if (f)
        free(__atomic_exchange_n(&spare, f, __ATOMIC_ACQ_REL));
}

const char *spawn_step_name(enum spawn_step step)
{
    static const char *const names[] = {
        [SPAWN_STEP_NONE] = "none",       [SPAWN_STEP_CLONE] = "clone",
        [SPAWN_STEP_SESSION] = "session", [SPAWN_STEP_STDIO] = "stdio",
        [SPAWN_STEP_TTY] = "tty",         [SPAWN_STEP_SIGNALS] = "signals",
        [SPAWN_STEP_CHDIR] = "chdir",     [SPAWN_STEP_EXEC] = "exec",
    };

    return (unsigned)step < LEN(names) ? names[step] : "unknown";
}

int spawn_err(struct err *e, const struct spawn_spec *s, struct spawn_fail fail)
{
    const char *program = s->argv[0];

    switch (fail.step) {
    case SPAWN_STEP_CHDIR:
        return err_errno(e, fail.sys, "cannot enter '%s'", s->cwd ? s->cwd : "the directory");
    case SPAWN_STEP_EXEC:
        return err_errno(e, fail.sys, "cannot run '%s'", program);
    case SPAWN_STEP_NONE:
    case SPAWN_STEP_CLONE:
    case SPAWN_STEP_SESSION:
    case SPAWN_STEP_STDIO:
    case SPAWN_STEP_TTY:
    case SPAWN_STEP_SIGNALS:
        break;
    }
    return err_errno(e, fail.sys, "cannot start '%s': %s", program, spawn_step_name(fail.step));
}
