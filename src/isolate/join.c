#include "isolate/join.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* What the process that was sent has to say. */
struct word {
    pid_t pid; /* of the box, as our own PID namespace numbers it; 0: it failed */
    struct err e;
};

/* Who: the caller, sent ahead. What we hold: after setns every capability over the shared namespaces. Why now: a PID
 * namespace belongs to the user namespace it was made in, and only its owner may mount its proc. */
_Noreturn static void run(const struct inside *in, const struct box_place *place, int group_fd,
                          int out_fd)
{
    struct clone_args args = { .flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_PARENT };
    struct word w = { 0 };
    struct err ignored;
    long pid;

    if (group_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)group_fd;
    }
    if (setns(place->join_pidfd, CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0) {
        (void)err_sys(&w.e, "cannot enter the namespaces of the sandbox to join");
    } else {
        pid = syscall(SYS_clone3, &args, sizeof args);
        if (pid == 0)
            inside_run((void *)(uintptr_t)in);
        if (pid < 0)
            (void)err_sys(&w.e, "cannot make the sandbox's namespaces");
        else
            w.pid = (pid_t)pid;
    }
    (void)fd_write_all(out_fd, span_of(&w, sizeof w), &ignored);
    _exit(0);
}

static long send_ahead(const struct inside *in, const struct box_place *place, int group_fd,
                       int out_fd)
{
    struct clone_args args = { .flags = place->is_sibling ? CLONE_PARENT : 0,
                               .exit_signal = place->is_sibling ? 0 : SIGCHLD };
    long pid = syscall(SYS_clone3, &args, sizeof args);

    if (pid == 0)
        run(in, place, group_fd, out_fd);
    return pid;
}

int join_clone(const struct inside *in, const struct box_place *place, int group_fd, pid_t *ret_pid,
               int *ret_pidfd, struct err *e)
{
    OWN_FD int in_fd = -1;
    OWN_FD int out_fd = -1;
    struct word w;
    int fds[2], rc;
    long sent;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe");
    in_fd = fds[0];
    out_fd = fds[1];
    sent = send_ahead(in, place, group_fd, out_fd);
    own_fd_close(&out_fd);
    if (sent < 0)
        return err_sys(e, "cannot make a process");
    rc = fd_read_exact(in_fd, &w, sizeof w, e);
    if (!place->is_sibling)
        (void)TEMP_FAILURE_RETRY(waitpid((pid_t)sent, NULL, 0));
    if (rc < 0)
        return err_wrap(e, "the process sent into the shared namespaces died");
    if (!w.pid) {
        *e = w.e;
        return -1;
    }
    *ret_pidfd = (int)syscall(SYS_pidfd_open, w.pid, 0);
    if (*ret_pidfd < 0) {
        (void)err_sys(e, "cannot open the sandbox's first process");
        (void)kill(w.pid, SIGKILL);
        return -1;
    }
    *ret_pid = w.pid;
    return 0;
}
