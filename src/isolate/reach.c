#include "isolate/reach.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define STACK_BYTES (64 * 1024) /* three system calls */

struct errand {
    int pidfd, family, type;
    int fd;
    int sys;         /* errno, or 0 */
    bool is_outside; /* it could not even go in */
};

/* In the child: our memory is the parent's, which stands still; so only system calls. */
static int run(void *ctx)
{
    struct errand *job = ctx;

    if (setns(job->pidfd, CLONE_NEWUSER | CLONE_NEWNET) < 0) {
        job->sys = errno;
        job->is_outside = true;
        return 0;
    }
    job->fd = socket(job->family, job->type | SOCK_CLOEXEC, 0);
    if (job->fd < 0)
        job->sys = errno;
    return 0;
}

int reach_socket(int pidfd, int family, int type, int *ret_fd, struct err *e)
{
    struct errand job = { .pidfd = pidfd, .family = family, .type = type, .fd = -1 };
    OWN_MEM char *stack = own_new(STACK_BYTES);
    sigset_t all, before;
    pid_t child;
    int sys;

    /* A handler of ours must not run over there, in another user namespace on shared memory. */
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    child = clone(run, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_FILES, &job);
    sys = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return err_errno(e, sys, "cannot send a process into the sandbox's network");
    (void)TEMP_FAILURE_RETRY(waitpid(child, NULL, __WCLONE));
    if (job.is_outside)
        return err_errno(e, job.sys, "cannot enter the sandbox's network");
    if (job.sys)
        return err_errno(e, job.sys, "cannot make a socket in the sandbox's network");
    *ret_fd = job.fd;
    return 0;
}
