#include "ev/child.h"

#include "ev/io.h"
#include "ev/limits.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define BUCKETS 256 /* by pid; thousands of children at once still mean short lists */
/* Statuses kept for spawns under way: all pids of a usual system, as when a fork storm ends */
#define EARLY_MAX 32768

/* A zombie whose pid nobody knew while a spawn was under way. */
struct early {
    pid_t pid;
    int wait_status;
    unsigned epoch; /* when it was reaped: it may belong to a spawn begun then or before */
};

struct ev_children {
    struct ev_loop *loop;
    int signal_fd;
    struct ev_io io;
    ev_signal_fn fn;
    void *ctx;
    sigset_t muted; /* ignored when we were started: not reported */
    struct ev_child *buckets[BUCKETS];
    unsigned epoch;       /* spawns under way began in this one or the one before */
    unsigned spawning[2]; /* how many, by the epoch's last bit */
    struct early *early;
    size_t early_n, early_cap;
    struct ev_child *ended; /* found by watch: to be told in a later turn */
    struct ev_task tell;
    struct ev_task again; /* there may be more to reap, of which no signal will tell */
    uint64_t orphans;
};

static struct ev_child **slot_of(struct ev_children *kids, pid_t pid)
{
    struct ev_child **at = &kids->buckets[(unsigned)pid % BUCKETS];

    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    return at;
}

static void keep_early(struct ev_children *kids, pid_t pid, int wait_status)
{
    if (kids->early_n == EARLY_MAX) {
        memmove(kids->early, kids->early + 1, (EARLY_MAX - 1) * sizeof *kids->early);
        kids->early_n--;
    }
    if (kids->early_n == kids->early_cap) {
        kids->early_cap = kids->early_cap ? kids->early_cap * 2 : 16;
        kids->early = own_resize(kids->early, kids->early_cap, sizeof *kids->early);
    }
    kids->early[kids->early_n++] = (struct early){ pid, wait_status, kids->epoch };
}

static void reap(void *ctx)
{
    struct ev_children *kids = ctx;
    int wait_status;
    pid_t pid;

    for (int i = 0; i < EV_REAPS_PER_TURN; i++) {
        struct ev_child **at, *c;

        pid = waitpid(-1, &wait_status, WNOHANG);
        if (pid <= 0)
            return;
        at = slot_of(kids, pid);
        c = *at;
        if (c) {
            *at = c->next;
            c->wait_status = wait_status;
            c->fn(c->ctx);
        } else if (kids->spawning[0] || kids->spawning[1]) {
            keep_early(kids, pid, wait_status);
        } else {
            kids->orphans++;
        }
    }
    if (!kids->again.is_queued)
        ev_post(kids->loop, &kids->again, reap, kids);
}

static void on_signals(void *ctx, unsigned ready)
{
    struct ev_children *kids = ctx;
    struct signalfd_siginfo info[16];
    bool has_child = false;
    ssize_t n;

    (void)ready;
    while ((n = read(kids->signal_fd, info, sizeof info)) > 0) {
        for (size_t i = 0; i < (size_t)n / sizeof info[0]; i++) {
            if (info[i].ssi_signo == SIGCHLD)
                has_child = true;
            else if (!sigismember(&kids->muted, (int)info[i].ssi_signo))
                kids->fn(kids->ctx, (int)info[i].ssi_signo);
        }
        if ((size_t)n < sizeof info)
            break;
    }
    if (has_child)
        reap(kids);
}

/* The default action while blocked: the signal waits for the signalfd, and what we spawn inherits the default.
 * An ignored SIGCHLD would have the kernel reap our children and keep their statuses from us. */
static void set_default(struct ev_children *kids, int sig)
{
    const struct sigaction act = { .sa_handler = SIG_DFL };
    struct sigaction old;

    if (sigaction(sig, &act, &old) == 0 && old.sa_handler == SIG_IGN)
        (void)sigaddset(&kids->muted, sig);
}

int ev_children_open(struct ev_loop *loop, const int *signals, ev_signal_fn fn, void *ctx,
                     struct ev_children **ret, struct err *e)
{
    struct ev_children *kids = NEW(struct ev_children);
    sigset_t mask;

    (void)sigemptyset(&mask);
    (void)sigemptyset(&kids->muted);
    (void)sigaddset(&mask, SIGCHLD);
    for (const int *sig = signals; sig && *sig; sig++)
        (void)sigaddset(&mask, *sig);
    kids->loop = loop;
    kids->fn = fn;
    kids->ctx = ctx;
    kids->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (kids->signal_fd < 0 || sigprocmask(SIG_BLOCK, &mask, NULL) < 0) {
        (void)err_sys(e, "cannot receive signals");
        ev_children_close(kids);
        return -1;
    }
    set_default(kids, SIGCHLD);
    for (const int *sig = signals; sig && *sig; sig++)
        set_default(kids, *sig);
    if (ev_io_open(&kids->io, loop, kids->signal_fd, on_signals, kids, e) < 0) {
        ev_children_close(kids);
        return -1;
    }
    ev_io_want(&kids->io, EV_READ);
    *ret = kids;
    return 0;
}

void ev_children_close(struct ev_children *kids)
{
    if (!kids)
        return;
    ev_post_cancel(&kids->tell);
    ev_post_cancel(&kids->again);
    ev_io_close(&kids->io);
    own_fd_close(&kids->signal_fd);
    free(kids->early);
    if (kids->tell.is_queued || kids->again.is_queued)
        ev_free_later(kids->loop, kids, free); /* the cancelled task is still in the loop's list */
    else
        free(kids);
}

unsigned ev_child_spawn_begin(struct ev_children *kids)
{
    kids->spawning[kids->epoch & 1]++;
    return kids->epoch;
}

/* Drops what was reaped before the oldest epoch that still has spawns under way: an orphan. */
static void drop_early(struct ev_children *kids)
{
    bool is_idle = !kids->spawning[0] && !kids->spawning[1];
    size_t n = 0;

    for (size_t i = 0; i < kids->early_n && !is_idle; i++) {
        if (kids->early[i].epoch == kids->epoch || kids->early[i].epoch == kids->epoch - 1)
            kids->early[n++] = kids->early[i];
    }
    kids->orphans += kids->early_n - n;
    kids->early_n = n;
}

void ev_child_spawn_end(struct ev_children *kids, unsigned epoch)
{
    unsigned before = (kids->epoch - 1) & 1;

    assert(kids->spawning[epoch & 1] > 0);
    kids->spawning[epoch & 1]--;
    if (kids->spawning[before] ==
        0) { /* the older ones have ended: the next epoch takes their place */
        kids->epoch++;
        drop_early(kids);
    }
}

static void tell_ended(void *ctx)
{
    struct ev_children *kids = ctx;

    while (kids->ended) {
        struct ev_child *c = kids->ended;

        kids->ended = c->next;
        c->fn(c->ctx);
    }
}

void ev_child_watch(struct ev_children *kids, struct ev_child *c, pid_t pid, ev_fn fn, void *ctx)
{
    struct ev_child **bucket = &kids->buckets[(unsigned)pid % BUCKETS];

    *c = (struct ev_child){ .next = *bucket, .pid = pid, .fn = fn, .ctx = ctx };
    for (size_t i = 0; i < kids->early_n; i++) {
        if (kids->early[i].pid != pid)
            continue;
        c->wait_status = kids->early[i].wait_status;
        kids->early[i] = kids->early[--kids->early_n];
        c->next = kids->ended;
        kids->ended = c;
        if (!kids->tell.is_queued)
            ev_post(kids->loop, &kids->tell, tell_ended, kids);
        return;
    }
    *bucket = c;
}

void ev_child_forget(struct ev_children *kids, struct ev_child *c)
{
    struct ev_child **at = slot_of(kids, c->pid);

    if (*at == c) {
        *at = c->next;
        return;
    }
    for (at = &kids->ended; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            return;
        }
    }
}

bool ev_child_is_known(const struct ev_children *kids, pid_t pid)
{
    for (const struct ev_child *c = kids->buckets[(unsigned)pid % BUCKETS]; c; c = c->next)
        if (c->pid == pid)
            return true;
    return false;
}

uint64_t ev_children_orphans(const struct ev_children *kids)
{
    return kids->orphans;
}
