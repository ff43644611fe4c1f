#include "isolate/keeper_impl.h"

#include "base/fd.h"
#include "base/log.h"
#include "isolate/default_limits.h"
#include "isolate/limits.h"
#include "isolate/lock.h"
#include "isolate/sweep.h"
#include "isolate/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define SWEEP_STEP_MS 100
#define LOCK_STEP_MS  10 /* between two tries while the last keeper is leaving */

/* ---- its end ---- */

static void leave(void *ctx)
{
    struct keeper *k = ctx;

    if (!k->box_count && !k->client_count)
        ev_loop_stop(k->loop);
}

void keeper_rest(struct keeper *k)
{
    if (ev_io_is_open(&k->listen_io) && k->client_count < KEEPER_CLIENTS_MAX)
        ev_io_want(&k->listen_io, EV_READ);
    if (!k->box_count && !k->client_count)
        ev_timer_start(k->loop, &k->linger,
                       k->is_stopping || k->has_failed ? 0 : k->spec->linger_ms, leave, k);
}

static void on_signal(void *ctx, int number)
{
    struct keeper *k = ctx;

    log_info("keeper.stop", KV("signal", number), KV("sandboxes", k->box_count));
    k->is_stopping = true;
    client_close_all(k);
    kept_kill_all(k);
    keeper_rest(k);
}

/* ---- its beginning ---- */

/* stderr is the log. It is looked at when a keeper starts: one says little in its life. */
static int open_log(struct keeper *k, struct err *e)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    OWN_FD int fd = openat(k->dir.fd, DIR_KEEPER_LOG, flags, 0600);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > KEEPER_LOG_MAX_BYTES) {
        (void)renameat(k->dir.fd, DIR_KEEPER_LOG, k->dir.fd, DIR_OLD_KEEPER_LOG);
        own_fd_close(&fd);
        fd = openat(k->dir.fd, DIR_KEEPER_LOG, flags, 0600);
    }
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        return err_sys(e, "cannot open '" DIR_KEEPER_LOG "'");
    return 0;
}

/* The last keeper may be on its way out. */
static int take_lock(struct keeper *k, struct err *e)
{
    uint64_t end_ms = ev_now_ms(k->loop) + KEEPER_START_MS / 2;

    while (lock_take(&k->dir, &k->lock_fd, e) < 0) {
        OWN_FD int fd = -1;
        struct err other;

        if (e->code != ERR_EXISTS ||
            dir_connect(k->dir.fd, DIR_ENGINE, SOCK_SEQPACKET, &fd, &other) == 0)
            return -1;
        (void)poll(NULL, 0, LOCK_STEP_MS);
        ev_loop_turn(k->loop);
        if (ev_now_ms(k->loop) > end_ms)
            return -1;
    }
    return 0;
}

/* The limit of a user namespace at its birth is one of all processes of ours in it and below. */
static int open_engine_limited(uint64_t pids, int *ret_fd, struct err *why, struct err *e)
{
    struct rlimit now, less;
    int rc;

    if (getrlimit(RLIMIT_NPROC, &now) < 0)
        return err_sys(e, "cannot read the limit of processes");
    less = now;
    less.rlim_cur = MIN(now.rlim_cur, pids ? pids : RLIM_INFINITY);
    if (setrlimit(RLIMIT_NPROC, &less) < 0)
        return err_sys(e, "cannot limit processes");
    rc = ids_open_engine(ret_fd, why, e);
    if (setrlimit(RLIMIT_NPROC, &now) < 0)
        log_warn("keeper.limit", KV("processes", less.rlim_cur));
    return rc;
}

/* Root needs none: the host's own is above them all. Where an account cannot have one, sandboxes do without pools. */
static int open_engine(const struct box_limits *all)
{
    struct err e, why = { 0 };
    int fd = -1;

    if (geteuid() == 0)
        return -1;
    if (open_engine_limited(all->pids, &fd, &why, &e) < 0)
        log_warn("keeper.engine", KV("err", &e));
    else if (why.code)
        log_info("keeper.ids", KV("why_one", &why));
    return fd;
}

/* What all sandboxes may take together. Where no group holds them to it they run all the same, and limits.json says so. */
static void open_limits(struct keeper *k)
{
    struct box_limits all = default_limits_all(default_limits_machine());
    struct err e;

    if (cgroup_parent_read(k->dir.fd, &k->killed, &e) == 0)
        k->sweep_until_ms = ev_now_ms(k->loop) + BOX_KILL_TIMEOUT_MS;
    all = default_limits_fill(&k->spec->all, &all);
    k->engine_fd = open_engine(&all);
    cgroup_parent_make(&k->parent, &all, k->engine_fd >= 0);
    if (*k->parent.unenforced)
        log_warn("keeper.limits", KV("unenforced", (const char *)k->parent.unenforced));
    if (cgroup_parent_write(&k->parent, k->dir.fd, &e) < 0)
        log_warn("keeper.limits", KV("err", &e));
}

/* What the killed one had takes a while to die. */
static void sweep_groups(void *ctx)
{
    struct keeper *k = ctx;

    (void)box_sweep();
    if (ev_now_ms(k->loop) < k->sweep_until_ms && !cgroup_remove(&k->killed.groups))
        ev_timer_start(k->loop, &k->sweeping, SWEEP_STEP_MS, sweep_groups, k);
}

static int open_parts(struct keeper *k, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, 0 };
    struct sweep_count swept;

    if (ev_loop_new(&k->loop, e) < 0 ||
        ev_children_open(k->loop, signals, on_signal, k, &k->kids, e) < 0)
        return -1;
    if (dir_open(&k->dir, k->spec->dir, true, e) < 0 || take_lock(k, e) < 0)
        return -1;
    if (open_log(k, e) < 0 || fd_raise_limit(&k->files, e) < 0)
        return -1;
    k->self_pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (k->self_pidfd < 0)
        return err_sys(e, "cannot open ourselves");
    open_limits(k);
    /* Before anything that it would copy. */
    if (spawner_start(k, e) < 0)
        return -1;
    sweep(&k->dir, &swept);
    if (swept.killed || swept.lost || swept.removed)
        log_warn("keeper.swept", KV("killed", swept.killed), KV("lost", swept.lost),
                 KV("removed", swept.removed));
    sweep_groups(k);
    memory_watch_begin(k);
    return client_listen(k, e);
}

static void close_parts(struct keeper *k)
{
    if (k->loop) {
        client_close_all(k);
        ev_timer_stop(k->loop, &k->linger);
        ev_timer_stop(k->loop, &k->sweeping);
        ev_timer_stop(k->loop, &k->watching);
        spawner_stop(k);
    }
    if (k->dir.fd >= 0 && k->lock_fd >= 0) {
        (void)unlinkat(k->dir.fd, DIR_ENGINE, 0);
        cgroup_parent_remove(&k->parent, k->dir.fd);
    }
    ev_children_close(k->kids);
    if (k->loop)
        ev_loop_free(k->loop);
    own_fd_close(&k->self_pidfd);
    own_fd_close(&k->engine_fd);
    own_fd_close(&k->cellar_fd);
    own_fd_close(&k->lock_fd);
    dir_done(&k->dir);
}

int keeper_run(const struct keeper_spec *spec, struct err *e)
{
    struct keeper *k = NEW(struct keeper);
    int ready_fd = spec->ready_fd, rc;

    (void)prctl(PR_SET_NAME, "silica-keeper");
    (void)umask(077);
    k->spec = spec;
    k->dir = (struct dir)DIR_INIT;
    k->lock_fd = k->listen_fd = k->self_pidfd = k->spawner_fd = k->engine_fd = -1;
    k->cellar_fd = -1;
    k->queue_end = &k->queue;
    rc = open_parts(k, e);
    if (rc == 0) {
        log_info("keeper.start", KV("pid", getpid()), KV("dir", spec->dir));
        own_fd_close(&ready_fd);
        keeper_rest(k);
        ev_loop_run(k->loop);
        log_info("keeper.end", KV("pid", getpid()));
    }
    close_parts(k);
    free(k);
    return rc;
}
