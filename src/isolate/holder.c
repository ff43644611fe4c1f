#include "isolate/holder.h"

#include "isolate/strand.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct holder {
    pid_t pid;             /* 0: none */
    struct strand *strand; /* it runs on; NULL: in a copy of our memory */
};

static struct holder spare, ended; /* of a process that makes a reserve */
static bool has_reserve;
static atomic_bool wants_spare;

/* ctx: the pid of who ends it, as a number: of what is ours it reads nothing. */
static void hold(void *ctx)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != (pid_t)(intptr_t)ctx)
        _exit(1); /* nobody would end us */
    for (;;)
        (void)pause();
}

static int start(struct holder *h, struct err *e)
{
    struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
    void *parent = (void *)(intptr_t)getpid();
    pid_t pid;

    h->strand = strand_take();
    pid = h->strand ? strand_process(h->strand, &args, hold, parent)
                    : (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        hold(parent);
    h->pid = MAX(pid, 0);
    if (pid > 0)
        return 0;
    (void)err_sys(e, "cannot make a user namespace");
    strand_give(h->strand);
    return -1;
}

/* Until it is gone: what it runs on is ours again only then. */
static void bury(struct holder *h)
{
    if (!h->pid)
        return;
    (void)TEMP_FAILURE_RETRY(waitpid(h->pid, NULL, 0));
    strand_give(h->strand);
    h->pid = 0;
}

static int open_map(const struct ids *ids, const struct holder *h, struct err *e)
{
    char path[64];
    int fd;

    if (ids_write(ids, h->pid, e) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", h->pid);
    /* by path: the kernel's link in /proc. */
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "cannot open the map of ids") : fd;
}

/* A process that makes a reserve has its time for the dead then. */
static void end(struct holder *h)
{
    (void)kill(h->pid, SIGKILL);
    if (has_reserve) {
        bury(&ended);
        ended = *h;
    } else {
        bury(h);
    }
}

int holder_open_map(const struct ids *ids, struct err *e)
{
    struct holder h = { 0 };
    int fd = -1;

    atomic_store(&wants_spare, true);
    if (has_reserve && spare.pid) {
        h = spare;
        spare.pid = 0;
        fd = open_map(ids, &h, e);
        end(&h);
    }
    if (fd >= 0) /* else there was none, or somebody has killed it */
        return fd;
    if (start(&h, e) < 0)
        return -1;
    fd = open_map(ids, &h, e);
    end(&h);
    return fd;
}

bool holder_wants_spare(void)
{
    return atomic_load(&wants_spare);
}

void holder_make_spare(void)
{
    struct err e;

    has_reserve = true;
    atomic_store(&wants_spare, false);
    bury(&ended);
    if (!spare.pid && start(&spare, &e) < 0)
        return; /* who asks next will be told */
}
