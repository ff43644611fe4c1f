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

/* Our frames: one path buffer of PATH_MAX and change, and as much again. It lives in the thread's storage,
 * which the C library takes out of the thread's stack: more would eat the workers' 128 KiB. */
#define STACK_BYTES (16 * 1024)

/* The child runs on our memory but on this stack, with the address of our thread's storage: a sanitizer's
 * bookkeeping of frames does not fit it, so the functions on it go without. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"), no_stack_protector))

struct launch {
    const struct spawn_spec *spec;
    struct spawn_fail
        fail; /* written by the child, read by us when it is gone: no copy in between */
};

/* A thread's own, so that two threads may spawn at once; it goes away with the thread. */
static _Thread_local uint8_t child_stack[STACK_BYTES] __attribute__((aligned(64)));

IN_CHILD static int fail_at(struct launch *l, enum spawn_step step)
{
    l->fail.sys = errno;
    l->fail.step = step;
    return -1;
}

IN_CHILD static int set_stdio(struct launch *l)
{
    int fds[3];

    for (int i = 0; i < 3; i++) {
        fds[i] = l->spec->fds[i];
        /* A source that is itself one of the targets would be overwritten: move it out of the way. */
        if (fds[i] >= 0 && fds[i] < 3 && fds[i] != i) {
            fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
            if (fds[i] < 0)
                return fail_at(l, SPAWN_STEP_STDIO);
        }
    }
    for (int i = 0; i < 3; i++) {
        if (fds[i] < 0)
            continue;
        if (fds[i] == i ? fcntl(i, F_SETFD, 0) < 0 : dup2(fds[i], i) < 0)
            return fail_at(l, SPAWN_STEP_STDIO);
    }
    /* All others are close-on-exec from birth. This is the belt, for one a library opened without. */
    (void)syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
    return 0;
}

/* exec resets what is caught; what is ignored stays so, and two of ours must not. Nothing here is caught: signals come
 * through a signalfd, so no handler can run in the child on the memory it shares with us. Asking for each of the 64
 * actions to be sure would cost as much as the rest of this function together. */
IN_CHILD static int reset_signals(struct launch *l)
{
    const struct sigaction act = { .sa_handler = SIG_DFL };
    sigset_t none;

    (void)sigaction(SIGPIPE, &act, NULL);
    (void)sigaction(SIGXFSZ, &act, NULL);
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        return fail_at(l, SPAWN_STEP_SIGNALS);
    return 0;
}

IN_CHILD static bool is_absent(int sys)
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

/* Returns only when nothing could be run, with errno set. */
IN_CHILD static void run_program(const struct spawn_spec *s)
{
    const char *name = s->argv[0], *dir = s->search_path ? s->search_path : SPAWN_DEFAULT_PATH;
    char path[PATH_MAX];
    size_t name_n = 0;
    bool is_denied = false;

    for (; name[name_n]; name_n++) {
        if (name[name_n] == '/') {
            execve(name, s->argv, s->envp);
            return;
        }
    }
    errno = ENOENT;
    for (;;) {
        size_t n = 0;

        while (dir[n] && dir[n] != ':')
            n++;
        if (join(path, dir, n, name, name_n)) {
            execve(path, s->argv, s->envp);
            if (errno == EACCES)
                is_denied = true; /* another directory may hold one that we may run */
            else if (!is_absent(errno))
                return;
        }
        if (!dir[n])
            break;
        dir += n + 1;
    }
    errno = is_denied ? EACCES : ENOENT;
}

/* Who we are: the child, on the parent's memory while its thread sleeps. Nothing here may lock, allocate,
 * or write anywhere but this stack and *l. */
IN_CHILD static int child_main(void *arg)
{
    struct launch *l = arg;
    const struct spawn_spec *s = l->spec;
    int rc = 0;

    if (s->flags & SPAWN_SESSION)
        rc = setsid() < 0 ? fail_at(l, SPAWN_STEP_SESSION) : 0;
    else if (s->flags & SPAWN_GROUP)
        rc = setpgid(0, 0) < 0 ? fail_at(l, SPAWN_STEP_SESSION) : 0;
    if (rc == 0 && (s->flags & SPAWN_SUBREAPER))
        rc = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? fail_at(l, SPAWN_STEP_SESSION) : 0;
    /* The directory before the descriptors: cwd_fd may be one of those about to be replaced. */
    if (rc == 0 && s->cwd_fd >= 0)
        rc = fchdir(s->cwd_fd) < 0 ? fail_at(l, SPAWN_STEP_CHDIR) : 0;
    else if (rc == 0 && s->cwd)
        rc = chdir(s->cwd) < 0 ? fail_at(l, SPAWN_STEP_CHDIR) : 0;
    if (rc == 0)
        rc = set_stdio(l);
    if (rc == 0 && (s->flags & SPAWN_TTY))
        rc = ioctl(0, TIOCSCTTY, 0) < 0 ? fail_at(l, SPAWN_STEP_TTY) : 0;
    if (rc == 0)
        rc = reset_signals(l);
    if (rc == 0) {
        run_program(s);
        (void)fail_at(l, SPAWN_STEP_EXEC);
    }
    /* Not _exit(): it never returns, and a sanitizer would tidy a stack it does not know. */
    (void)syscall(SYS_exit_group, 127);
    return 127;
}

pid_t spawn(const struct spawn_spec *s, struct spawn_fail *ret_fail)
{
    struct launch l = { s, { SPAWN_STEP_NONE, 0 } };
    uint64_t all = UINT64_MAX, before = 0;
    int sys;
    pid_t pid;

    assert(s->argv && s->argv[0] && s->envp);
    /* The raw call: the C library would leave its own two signals out, and a set*id() of another thread
     * must not run its handler in the child either. */
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    /* No exit signal in the flags: exec makes it SIGCHLD, and one that never gets there stays silent and
     * is invisible to a wait for any child, so the status cannot be taken from us. */
    pid = clone(child_main, child_stack + sizeof child_stack, CLONE_VM | CLONE_VFORK, &l);
    sys = errno;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    if (pid < 0) {
        *ret_fail = (struct spawn_fail){ SPAWN_STEP_CLONE, sys };
        return -1;
    }
    if (l.fail.step == SPAWN_STEP_NONE)
        return pid;
    while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    *ret_fail = l.fail;
    return -1;
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
