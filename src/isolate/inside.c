#include "isolate/inside.h"

#include "base/fd.h"
#include "isolate/confine.h"
#include "isolate/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define FIRST_FREE_FD    10 /* our own descriptors stand here and above while 0-3 are put in order */
#define ROOT_STACK_BYTES (256 * 1024) /* of the second thread: a sanitizer's frames fit too */

_Noreturn static void fail(int gate_fd, const struct err *why)
{
    static const char word = INSIDE_FAILED;
    struct err e;

    (void)fd_write_all(gate_fd, span_of(&word, 1), &e);
    (void)fd_write_all(gate_fd, span_of(why, sizeof *why), &e);
    _exit(1);
}

/* Kill us when our parent's thread ends. The parent may have gone before we asked: then its end of the gate is closed, or
 * its descriptor tells. */
static int die_with_parent(const struct inside *in, struct err *e)
{
    struct pollfd gone = { .fd = in->parent_pidfd, .events = POLLIN };
    char byte;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_sys(e, "cannot be told of the parent's death");
    if (recv(in->gate_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 || poll(&gone, 1, 0) > 0)
        _exit(1);
    return 0;
}

static int wait_for(int gate_fd, char want, struct err *e)
{
    char word;

    if (fd_read_exact(gate_fd, &word, 1, e) < 0)
        _exit(1); /* the parent gave up, and says why itself */
    return word == want ? 0 : err_set(e, ERR_INTERNAL, "the gate opened with %d", word);
}

/* The id that owns the root we build: 0 of a range; without a range we are the only one there is. The C library's calls
 * would change the other thread too. */
static int become_builder(const struct ids *ids, struct err *e)
{
    if (ids->kind == IDS_ONE)
        return 0;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, 0, 0, 0) < 0)
        return err_sys(e, "cannot become the sandbox's first id");
    return 0;
}

int inside_bring_up_loopback(struct err *e)
{
    OWN_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
        return err_sys(e, "cannot bring up the loopback interface");
    return 0;
}

/* What waits in sockets is kernel memory that a limit of v1 does not count, and nobody's where there is none. */
void inside_shrink_sockets(int sys_fd)
{
    static const char *const settings[][2] = { { "net/ipv4/tcp_rmem", SOCKET_READ_SIZES },
                                               { "net/ipv4/tcp_wmem", SOCKET_WRITE_SIZES } };
    struct err ignored; /* in a container they may be read-only */

    EACH(s, settings) {
        /* by path: a file of /proc. */
        OWN_FD int fd = sys_fd < 0 ? -1 : openat(sys_fd, (*s)[0], O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
            (void)fd_write_all(fd, span_cstr((*s)[1]), &ignored);
    }
}

/* Out of the way of the low numbers; none stays none. */
static bool put_aside(int *fd)
{
    if (*fd >= 0)
        *fd = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    return *fd >= 0;
}

/* 0 is /dev/null, 1 and 2 the log, 3 the control socket, 4 where PID 1 tells of its command; what else we hold is above and
 * closes with the exec. */
static int order_descriptors(struct inside *in, struct err *e)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool has_status = in->status_fd >= 0;

    if (in->log_fd < 0)
        in->log_fd = null_fd;
    if (in->err_fd < 0)
        in->err_fd = null_fd;
    if (!put_aside(&in->gate_fd) || !put_aside(&in->runtime_fd) || !put_aside(&in->control_fd) ||
        !put_aside(&null_fd) || !put_aside(&in->log_fd) || !put_aside(&in->err_fd) ||
        (has_status && !put_aside(&in->status_fd)) ||
        (in->parent_pidfd >= 0 && !put_aside(&in->parent_pidfd)))
        return err_sys(e, "cannot put descriptors aside");
    if (dup2(null_fd, 0) < 0 || dup2(in->log_fd, 1) < 0 || dup2(in->err_fd, 2) < 0 ||
        dup2(in->control_fd, INSIDE_CONTROL_FD) < 0 ||
        (has_status && dup2(in->status_fd, INSIDE_STATUS_FD) < 0))
        return err_sys(e, "cannot put descriptors in order");
    if (syscall(SYS_close_range, (has_status ? INSIDE_STATUS_FD : INSIDE_CONTROL_FD) + 1, ~0u,
                CLOSE_RANGE_CLOEXEC) < 0)
        return err_sys(e, "cannot close descriptors");
    return 0;
}

/* A handler or a mask of the program that called us is no business of PID 1. */
static void reset_signals(void)
{
    sigset_t none;

    for (int s = 1; s < NSIG; s++)
        (void)signal(s, SIG_DFL); /* KILL, STOP and the C library's own refuse */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What the second thread of setup works on. */
struct root_job {
    const struct inside *in;
    struct mounts mounts;
    int program_fd;
    bool is_program_of_host;
    pthread_t thread; /* unless it runs on a strand */
    bool has_thread;
    /* The first thread has time: it takes hold of the trees, makes small files, enters the root, and lets go of the old one. */
    bool is_helped;
    /* Each is posted once: when it is so, or when it will never be. */
    sem_t opened, standing, framed, held, entered, built;
    int sys_fd; /* the host's /proc/sys: no path leads there once the new root is the root */
    bool is_opened, is_standing, is_framed, is_held, is_entered, is_built, is_done;
    struct err e;
};

/* Who: the caller, so trees are taken hold of with the caller's rights to the host's files and no others. */
static int hold_trees(struct root_job *job, struct err *e)
{
    if (mounts_hold(&job->mounts, job->in->held_fds, e) < 0 ||
        program_hold(job->in->program, &job->program_fd, &job->is_program_of_host, e) < 0)
        return -1;
    job->is_held = true;
    return 0;
}

static void await(sem_t *sem)
{
    while (sem_wait(sem) < 0 && errno == EINTR)
        continue;
}

/* Who: the caller, in a new user namespace; what is changed here is this thread's alone, but for mounts. */
static int build_frame(struct root_job *job)
{
    if (!job->is_helped && hold_trees(job, &job->e) < 0)
        return -1;
    /* Why now: until the parent has written the maps nothing can be made, but all that was held could be. */
    if (wait_for(job->in->gate_fd, INSIDE_GO, &job->e) < 0)
        return -1;
    job->is_opened = true;
    (void)sem_post(&job->opened);
    /* The id that owns the new root. Files are made from here on, and the caller may not be an id in here. */
    if (become_builder(&job->in->plan->ids, &job->e) < 0)
        return -1;
    if (mounts_build_dirs(&job->mounts, &job->e) < 0)
        return -1;
    job->is_standing = true;
    (void)sem_post(&job->standing);
    if (!job->is_helped && mounts_build_files(&job->mounts, &job->e) < 0)
        return -1;
    return mounts_build_frame(&job->mounts, &job->e);
}

/* Descriptors of the caller's are still open here, to close with the exec: a path through /proc/self/fd could be a directory
 * of the host. So no link of that kind is followed (CVE-2024-21626 was this). Both threads have one working directory; this
 * one has no filter, which may refuse the call. */
static int enter_directory(const char *path, struct err *e)
{
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_NO_MAGICLINKS };
    OWN_FD int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

    if (fd < 0 || fchdir(fd) < 0)
        return err_sys(e, "cannot enter '%s' inside", path);
    return 0;
}

static int build_rest(struct root_job *job)
{
    if (job->is_helped)
        await(&job->held);
    else
        job->is_entered = mounts_enter(&job->mounts, &job->e) == 0;
    if (!job->is_held || mounts_build_held(&job->mounts, &job->e) < 0)
        return -1;
    if (job->is_helped)
        await(&job->entered);
    if (!job->is_entered || mounts_build_last(&job->mounts, &job->e) < 0)
        return -1;
    return enter_directory(job->in->plan->cwd, &job->e);
}

static void *run_root_job(void *ctx)
{
    struct root_job *job = ctx;

    job->is_framed = build_frame(job) == 0;
    (void)sem_post(&job->framed);
    if (!job->is_opened)
        (void)sem_post(&job->opened);
    if (!job->is_standing)
        (void)sem_post(&job->standing);
    job->is_built = job->is_framed && build_rest(job) == 0;
    (void)sem_post(&job->built);
    /* The first thread goes on: no descriptor is made or closed here any more. */
    job->is_done = job->is_built && (job->is_helped || mounts_drop_old(&job->mounts, &job->e) == 0);
    return NULL;
}

/* With no right or descriptor of the first one's left to lose: nothing is tidied. */
static void run_on_strand(void *ctx)
{
    (void)run_root_job(ctx);
    strand_exit();
}

static bool start_thread(struct root_job *job)
{
    static uint8_t stack[ROOT_STACK_BYTES] __attribute__((aligned(4096)));
    pthread_attr_t attr;

    if (job->in->second)
        return strand_thread(job->in->second, run_on_strand, job) > 0;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstack(&attr, stack, sizeof stack);
    return pthread_create(&job->thread, &attr, run_root_job, job) == 0;
}

static void join_thread(struct root_job *job)
{
    if (job->in->second)
        strand_join(job->in->second);
    else
        (void)pthread_join(job->thread, NULL);
}

/* The root on the one hand, the network and all that needs no root on the other have nothing to do with each other and take
 * about as long: with a second processor they are done at the same time. One that has a network has time for some of the
 * other's work. Where no thread can be had (a limit of one process) the root is first. */
static int start_root_job(struct root_job *job, const struct inside *in, struct err *e)
{
    struct frame frame = in->frame; /* our copies of the descriptors */

    job->in = in;
    job->is_helped = in->has_network;
    if (mounts_init(&job->mounts, in->plan, &frame, e) < 0)
        return -1;
    (void)sem_init(&job->opened, 0, 0);
    (void)sem_init(&job->standing, 0, 0);
    (void)sem_init(&job->framed, 0, 0);
    (void)sem_init(&job->held, 0, 0);
    (void)sem_init(&job->entered, 0, 0);
    (void)sem_init(&job->built, 0, 0);
    job->has_thread = start_thread(job);
    if (!job->has_thread) {
        job->is_helped = false;
        (void)run_root_job(job);
    }
    if (!job->is_helped)
        return 0;
    if (hold_trees(job, e) < 0)
        return -1; /* and with us the thread goes */
    return sem_post(&job->held);
}

static int await_root(struct root_job *job, sem_t *what, const bool *is_so, struct err *e)
{
    await(what);
    if (!*is_so)
        *e = job->e;
    return *is_so ? 0 : -1;
}

/* Who: the caller, with every capability over the new namespaces and none over the host's. Its session, signals, name and
 * network are left behind; the cgroup namespace begins where we stand: the parent moved us before it opened the gate. */
static int leave_caller(struct root_job *job, struct err *e)
{
    const struct inside *in = job->in;
    const char *name = in->plan->hostname;

    reset_signals();
    if (setsid() < 0 && errno != EPERM)
        return err_sys(e, "cannot leave the caller's session");
    if (await_root(job, &job->opened, &job->is_opened, e) < 0)
        return -1;
    if (unshare(in->own_namespaces) < 0)
        return err_sys(e, "cannot make namespaces");
    if (!in->has_names && sethostname(name, strlen(name)) < 0)
        return err_sys(e, "cannot set the host name");
    if (in->has_network)
        return 0;
    inside_shrink_sockets(job->sys_fd);
    return inside_bring_up_loopback(e);
}

/* The second thread has trees to place meanwhile, for which it does not matter which root is the root. */
static int enter_root(struct root_job *job, struct err *e)
{
    if (await_root(job, &job->standing, &job->is_standing, e) < 0 ||
        mounts_build_files(&job->mounts, e) < 0)
        return -1;
    if (await_root(job, &job->framed, &job->is_framed, e) < 0 || mounts_enter(&job->mounts, e) < 0)
        return -1;
    job->is_entered = true;
    (void)sem_post(&job->entered);
    return mounts_drop_old(&job->mounts, e);
}

/* What can be given up before the new root is complete. Why in this order: the bounding set wants CAP_SETPCAP, the filter
 * no_new_privs, and forbids mounts. From here on this thread makes only calls that code in a sandbox may make too. */
static int give_up_early(struct root_job *job, struct err *e)
{
    const struct plan *plan = job->in->plan;

    if (leave_caller(job, e) < 0 || become_builder(&plan->ids, e) < 0 ||
        confine_limits(plan, e) < 0 || confine_future(e) < 0)
        return -1;
    if (job->is_helped && enter_root(job, e) < 0)
        return -1;
    return confine_calls(plan, e);
}

/* Who: the id that owns the root, in the new root; the host's files are gone but for what was bound. Why in this order: the
 * ids want CAP_SETUID; after capset nothing is left to lose. */
static int give_up_rest(struct inside *in, bool is_program_of_host, struct err *e)
{
    const struct plan *plan = in->plan;

    if (order_descriptors(in, e) < 0 ||
        confine_paths(plan, is_program_of_host ? in->runtime_fd : -1, e) < 0)
        return -1;
    if (confine_ids(&plan->ids, e) < 0 || confine_capabilities(e) < 0)
        return -1;
    umask(022);
    return die_with_parent(in, e); /* a change of ids forgets it */
}

static int setup(struct inside *in, struct err *e)
{
    struct root_job job = { .sys_fd = -1 };

    /* Who: the caller, in a new user namespace that maps nothing yet. What we hold: every capability over our new
     * namespaces, none over the host's. */
    for (size_t i = 0; i < LEN(in->parents_fds); i++)
        own_fd_close(&in->parents_fds[i]);
    if (die_with_parent(in, e) < 0)
        return -1;
    umask(0);
    if (!in->has_network) /* by path: the kernel's own. */
        job.sys_fd = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (start_root_job(&job, in, e) < 0 || give_up_early(&job, e) < 0 ||
        await_root(&job, &job.built, &job.is_built, e) < 0)
        return -1;
    in->runtime_fd = job.program_fd;
    if (give_up_rest(in, job.is_program_of_host, e) < 0)
        return -1;
    if (job.has_thread)
        join_thread(&job);
    if (!job.is_done)
        *e = job.e;
    return job.is_done ? 0 : -1;
}

_Noreturn void inside_run(void *given)
{
    static const char word = INSIDE_READY;
    struct inside in = *(const struct inside *)given;
    struct err e = { 0 };

    if (setup(&in, &e) < 0 || wait_for(in.gate_fd, INSIDE_PROGRAM, &e) < 0)
        fail(in.gate_fd, &e);
    if (fd_write_all(in.gate_fd, span_of(&word, 1), &e) < 0)
        _exit(1);
    (void)syscall(SYS_execveat, in.runtime_fd, "", in.argv, in.envp, AT_EMPTY_PATH);
    (void)err_sys(&e, "cannot run silica-runtime");
    fail(in.gate_fd, &e);
}
