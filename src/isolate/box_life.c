#include "isolate/box_impl.h"

#include "base/time.h"
#include "isolate/adopt.h"
#include "isolate/id_range.h"
#include "isolate/limits.h"
#include "isolate/reach.h"
#include "isolate/tree.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

pid_t box_pid(const struct box *b)
{
    return b->pid;
}

int box_pidfd(const struct box *b)
{
    return b->pidfd;
}

int box_take_control(struct box *b)
{
    return take_fd(&b->control_fd);
}

/* The kernel reaps the whole PID namespace before it reports the end of its PID 1: one wait is enough for all. */
static int reap(struct box *b, struct err *e)
{
    struct pollfd ended = { .fd = b->pidfd, .events = POLLIN };
    uint64_t end_ms = time_mono_ms() + BOX_KILL_TIMEOUT_MS;
    int n;

    do {
        uint64_t now_ms = time_mono_ms();

        n = poll(&ended, 1, now_ms < end_ms ? (int)(end_ms - now_ms) : 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        return err_set(e, ERR_TIMEOUT, "sandbox '%s' does not die within %d ms", b->name,
                       BOX_KILL_TIMEOUT_MS);
    b->is_reaped = b->is_foreign;
    if (b->is_foreign)
        return 0;
    if (TEMP_FAILURE_RETRY(waitpid(b->pid, &b->status, __WALL)) < 0)
        return err_sys(e, "cannot reap sandbox '%s'", b->name);
    b->is_reaped = true;
    return 0;
}

int box_socket(struct box *b, int family, int type, int *ret_fd, struct err *e)
{
    if (family != AF_INET && family != AF_INET6)
        return err_set(e, ERR_INVALID, "address family %d is not one of the internet's", family);
    if (b->is_reaped)
        return err_set(e, ERR_CLOSED, "sandbox '%s' has ended", b->name);
    return reach_socket(b->pidfd, family, type, ret_fd, e) < 0
               ? err_wrap(e, "sandbox '%s'", b->name)
               : 0;
}

const char *box_unenforced(const struct box *b)
{
    return buf_cstr(&b->unenforced);
}

int box_pause(struct box *b, struct err *e)
{
    int rc = cgroup_freeze(&b->cgroup, true, e);

    if (rc < 0 && e->code == ERR_UNSUPPORTED)
        rc = tree_stop(b->pid, e);
    b->is_paused = true; /* or partly so */
    return rc < 0 ? err_wrap(e, "cannot pause sandbox '%s'", b->name) : 0;
}

int box_resume(struct box *b, struct err *e)
{
    int rc = cgroup_freeze(&b->cgroup, false, e);

    if (rc < 0 && e->code == ERR_UNSUPPORTED)
        rc = tree_continue(b->pid, e);
    if (rc < 0)
        return err_wrap(e, "cannot resume sandbox '%s'", b->name);
    b->is_paused = false;
    return 0;
}

int box_stats(struct box *b, struct box_stats *ret, struct err *e)
{
    struct box_stats stats = { 0 };

    if (b->is_reaped)
        return err_set(e, ERR_CLOSED, "sandbox '%s' has ended", b->name);
    cgroup_stats(&b->cgroup, &stats);
    if (!stats.has_memory || !stats.has_pids || !stats.has_cpu)
        tree_stats(b->pid, &stats);
    *ret = stats;
    return 0;
}

int box_end(struct box *b, struct err *e)
{
    struct err ignored;

    if (b->is_reaped)
        return 0;
    /* The group dies at once, frozen or not; PID 1 alone would take its namespace with it too. */
    if (!cgroup_kill(&b->cgroup) &&
        syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
        return err_sys(e, "cannot kill sandbox '%s'", b->name);
    if (b->is_paused) /* v1 does not let the frozen die */
        (void)cgroup_freeze(&b->cgroup, false, &ignored);
    return 0;
}

int box_kill(struct box *b, int *ret_status, struct err *e)
{
    if (box_end(b, e) < 0 || (!b->is_reaped && reap(b, e) < 0))
        return -1;
    if (ret_status)
        *ret_status = b->status;
    return 0;
}

void box_free(struct box *b)
{
    struct err e;

    if (!b)
        return;
    /* Nobody is left to tell. One that does not die has its ids until we end. */
    if (b->pidfd < 0 || box_kill(b, NULL, &e) == 0)
        id_range_release(id_ranges_of_machine(), b->ids_base);
    cgroup_done(&b->cgroup);
    box_release(b);
}

int box_adopt(const struct box_record *r, struct box **ret, struct err *e)
{
    OWN_FD int pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    uint64_t start_ticks = 0;
    struct box *b;

    /* The descriptor first: from here on the number cannot become another process's unnoticed. */
    if (pidfd < 0 || !tree_start_ticks(r->pid, &start_ticks) || start_ticks != r->start_ticks)
        return err_set(e, ERR_CLOSED, "sandbox '%s' has ended", r->name);
    b = NEW(struct box);
    b->name = own_strdup(r->name);
    b->pid = r->pid;
    b->pidfd = take_fd(&pidfd);
    b->control_fd = b->mounts_fd = -1;
    b->is_foreign = true;
    b->cgroup = r->cgroup;
    b->is_paused = box_is_paused(b);
    *ret = b;
    return 0;
}

int box_describe(const struct box *b, struct box_record *ret, struct err *e)
{
    *ret = (struct box_record){ .pid = b->pid, .start_ticks = b->start_ticks, .cgroup = b->cgroup };
    if (snprintf(ret->name, sizeof ret->name, "%s", b->name) >= (int)sizeof ret->name)
        return err_set(e, ERR_LIMIT, "the name '%s' is too long", b->name);
    if (!b->start_ticks && !tree_start_ticks(b->pid, &ret->start_ticks))
        return err_set(e, ERR_CLOSED, "sandbox '%s' has ended", b->name);
    return 0;
}

bool box_is_paused(const struct box *b)
{
    bool is_frozen;

    return cgroup_is_frozen(&b->cgroup, &is_frozen) ? is_frozen : tree_is_stopped(b->pid);
}

int box_signal(struct box *b, int number, struct err *e)
{
    if (syscall(SYS_pidfd_send_signal, b->pidfd, number, NULL, 0) < 0)
        return err_sys(e, "cannot signal sandbox '%s'", b->name);
    return 0;
}

void box_release(struct box *b)
{
    if (!b)
        return;
    own_fd_close(&b->pidfd);
    own_fd_close(&b->control_fd);
    yard_drop(b->yard, take_fd(&b->mounts_fd));
    buf_done(&b->unenforced);
    free(b->name);
    free(b);
}

size_t box_sweep(void)
{
    return cgroup_sweep();
}
