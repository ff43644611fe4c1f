#include "isolate/ranged.h"

#include "base/fd.h"
#include "isolate/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* What the copy has to say; the result follows. */
struct word {
    bool is_done;
    struct err e;
};

static int kept_fd = -1; /* the namespace, once ranged_check has made it */

static int open_range(struct err *e)
{
    struct ids ids;

    return ids_choose(0, 0, 0, true, &ids, e) < 0 ? -1 : holder_open_map(&ids, e);
}

static int enter_range(struct err *e)
{
    int fd = kept_fd >= 0 ? kept_fd : open_range(e);

    if (fd < 0)
        return -1;
    return setns(fd, CLONE_NEWUSER) < 0 ? err_sys(e, "cannot enter the map of ids") : 0;
}

/* Who: the caller, in a process of one thread. Why the signal is asked for twice: newuidmap may wait for NSS, and entering a
 * namespace forgets it. */
_Noreturn static void run(const struct ranged_job *job, int out_fd, pid_t parent)
{
    struct word w = { 0 };
    struct err ignored;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
        _exit(1);
    if (enter_range(&w.e) == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
            _exit(1);
        w.is_done = job->fn(job->ctx, &w.e) == 0;
    }
    (void)fd_write_all(out_fd, span_of(&w, sizeof w), &ignored);
    if (w.is_done && job->result)
        (void)fd_write_all(out_fd, span_of(job->result, job->result_n), &ignored);
    _exit(0);
}

/* All of what it says is read before any is believed: a result is whole, or the caller's is as it was. */
static int hear(const struct ranged_job *job, int in_fd, struct err *e)
{
    uint8_t result[RANGED_RESULT_MAX_BYTES];
    struct word w;

    if (fd_read_exact(in_fd, &w, sizeof w, e) < 0)
        return err_wrap(e, "the process that was to work on files of other ids died");
    if (!w.is_done) {
        *e = w.e;
        return -1;
    }
    if (!job->result)
        return 0;
    if (fd_read_exact(in_fd, result, job->result_n, e) < 0)
        return err_wrap(e, "the process that was to work on files of other ids died");
    memcpy(job->result, result, job->result_n);
    return 0;
}

int ranged_run(const struct ranged_job *job, struct err *e)
{
    OWN_FD int in_fd = -1;
    OWN_FD int out_fd = -1;
    pid_t parent = getpid(), child;
    int fds[2], rc;

    assert(job->result_n <= RANGED_RESULT_MAX_BYTES);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe");
    in_fd = fds[0];
    out_fd = fds[1];
    child = fork();
    if (child == 0)
        run(job, out_fd, parent);
    if (child < 0)
        return err_sys(e, "cannot make a process");
    own_fd_close(&out_fd);
    rc = hear(job, in_fd, e);
    (void)TEMP_FAILURE_RETRY(waitpid(child, NULL, 0)); /* or whoever reaps all children did */
    return rc;
}

int ranged_check(struct err *e)
{
    if (kept_fd < 0)
        kept_fd = open_range(e);
    return kept_fd < 0 ? -1 : 0;
}
