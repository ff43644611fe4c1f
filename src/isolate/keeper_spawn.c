#include "isolate/keeper_impl.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "isolate/limits.h"
#include "base/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define FIRST_OWN_FD                                                                               \
    3 /* of the spawner: its socket, the program, the keeper's pidfd, the user namespace */
#define OWN_FDS 4

/* ---- in the child ---- */

/* These descriptors and no other: the lock and the callers' connections are the keeper's alone, and must end with it. */
static int keep_few(int fds[OWN_FDS])
{
    for (int i = 0; i < OWN_FDS; i++) {
        if (fds[i] >= 0)
            fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_OWN_FD + OWN_FDS);
    }
    for (int i = 0; i < OWN_FDS; i++) {
        if (fds[i] < 0) {
            (void)close(FIRST_OWN_FD + i);
        } else {
            if (dup3(fds[i], FIRST_OWN_FD + i, O_CLOEXEC) < 0)
                return -1;
            fds[i] = FIRST_OWN_FD + i;
        }
    }
    return (int)syscall(SYS_close_range, FIRST_OWN_FD + OWN_FDS, ~0u, 0);
}

_Noreturn static void be_spawner(const struct keeper *k, int sock, pid_t keeper_pid)
{
    int fds[OWN_FDS] = { sock, k->spec->runtime_fd, k->self_pidfd, k->engine_fd };
    sigset_t none;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != keeper_pid ||
        setrlimit(RLIMIT_NOFILE, &k->files) < 0 || keep_few(fds) < 0)
        _exit(1);
    spawner_run(&(struct spawner_spec){ .fd = fds[0],
                                        .runtime_fd = fds[1],
                                        .keeper_pidfd = fds[2],
                                        .engine_fd = fds[3],
                                        .parent = &k->parent.groups });
}

/* ---- in the keeper ---- */

static void ask_next(struct keeper *k);

/* What a dead spawner made and could not tell us of is our child all the same, and nobody's sandbox. */
static void kill_strays(struct keeper *k)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct span rest, word;
    char path[64];
    uint64_t pid;
    struct err e;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    if (fd_read_file(path, &text, &e) < 0) {
        log_error("spawner.strays", KV("err", &e));
        return;
    }
    for (rest = buf_span(&text); span_cut(&rest, ' ', &word);)
        if (str_u64(word, INT32_MAX, &pid) && !ev_child_is_known(k->kids, (pid_t)pid))
            (void)kill((pid_t)pid, SIGKILL);
    (void)box_sweep();
}

static struct kept *take_first(struct keeper *k)
{
    struct kept *b = k->queue;

    k->queue = b->next_asked;
    if (!k->queue)
        k->queue_end = &k->queue;
    return b;
}

static void start_again(void *ctx)
{
    struct keeper *k = ctx;
    struct err e;

    if (k->is_stopping && !k->queue)
        return;
    if (spawner_start(k, &e) < 0) {
        log_error("spawner.start", KV("err", &e), KV("retry_ms", SPAWNER_RETRY_MS));
        ev_timer_start(k->loop, &k->spawner_retry, SPAWNER_RETRY_MS, start_again, k);
        return;
    }
    ask_next(k);
}

static void spawner_ended(void *ctx)
{
    struct keeper *k = ctx;
    struct spawner_answer answer = { .is_made = false };

    log_warn("spawner.end", KV("pid", (int)k->spawner_pid), KV("status", k->spawner.wait_status));
    k->spawner_pid = 0;
    ev_io_close(&k->spawner_io);
    own_fd_close(&k->spawner_fd);
    kill_strays(k);
    if (k->queue && k->queue->state == KEPT_MAKING) {
        ev_child_spawn_end(k->kids, k->spawn_epoch);
        if (!kept_retry(k->queue, &answer.e))
            kept_made(take_first(k), &answer);
    }
    ev_timer_start(k->loop, &k->spawner_retry, k->queue ? 1 : SPAWNER_RETRY_MS, start_again, k);
}

static void on_answer(void *ctx, unsigned ready)
{
    struct keeper *k = ctx;
    struct spawner_answer answer;
    struct iovec part = { &answer, sizeof answer };
    struct err e;
    size_t n;

    (void)ready;
    if (packet_receive(k->spawner_fd, &part, 1, &n, NULL, NULL, &e) < 0) {
        if (e.code != ERR_BUSY)
            ev_io_want(&k->spawner_io, 0); /* its end is told by the kernel */
        return;
    }
    if (n != sizeof answer || !k->queue || k->queue->state != KEPT_MAKING)
        return;
    kept_made(take_first(k), &answer); /* while its status is kept, should it have ended already */
    ev_child_spawn_end(k->kids, k->spawn_epoch);
    ask_next(k);
}

int spawner_start(struct keeper *k, struct err *e)
{
    int fds[2];
    pid_t keeper_pid = getpid(), pid;
    unsigned epoch;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return err_sys(e, "cannot make a pair of sockets");
    epoch = ev_child_spawn_begin(k->kids);
    pid = fork();
    if (pid == 0)
        be_spawner(k, fds[1], keeper_pid);
    if (pid > 0)
        ev_child_watch(k->kids, &k->spawner, pid, spawner_ended, k);
    else
        (void)err_sys(e, "cannot start the spawner");
    ev_child_spawn_end(k->kids, epoch);
    (void)close(fds[1]);
    k->spawner_fd = fds[0];
    if (pid < 0 || ev_io_open(&k->spawner_io, k->loop, k->spawner_fd, on_answer, k, e) < 0) {
        own_fd_close(&k->spawner_fd);
        return -1;
    }
    k->spawner_pid = pid;
    ev_io_want(&k->spawner_io, EV_READ);
    return 0;
}

/* The account has too many descriptors on their way through sockets, or the machine no memory: it may pass. */
static void ask_again(void *ctx)
{
    struct keeper *k = ctx;
    struct spawner_answer answer = { .is_made = false };

    if (k->queue && k->queue->state == KEPT_QUEUED && ++k->queue->tries >= SPAWNER_TRIES) {
        answer.e = k->unsent;
        (void)err_wrap(&answer.e, "cannot ask for sandbox '%s'", k->queue->run.box.name);
        kept_made(take_first(k), &answer);
    }
    ask_next(k);
}

static void ask_next(struct keeper *k)
{
    struct kept *b = k->queue;
    struct spawner_ask ask = { 0 };
    struct iovec parts[2] = { { &ask, sizeof ask } };
    int fds[SPAWNER_FDS];
    size_t n = 0;
    struct err e;

    if (!b || b->state != KEPT_QUEUED || !k->spawner_pid)
        return;
    for (int i = 0; i < SPAWNER_FDS; i++) {
        ask.has[i] = b->fds[i] >= 0;
        if (ask.has[i])
            fds[n++] = b->fds[i];
    }
    ask.ids_base = b->ids_base;
    parts[1] = (struct iovec){ b->spec_text.p, b->spec_text.n };
    b->state = KEPT_MAKING;
    k->spawn_epoch = ev_child_spawn_begin(k->kids);
    if (packet_send(k->spawner_fd, parts, LEN(parts), fds, n, &e) == 0)
        return;
    log_warn("spawner.ask", KV("err", &e));
    if (e.sys == EPIPE || e.sys == ECONNRESET)
        return; /* it has died: then it fails with that */
    ev_child_spawn_end(k->kids, k->spawn_epoch);
    b->state = KEPT_QUEUED;
    k->unsent = e;
    ev_timer_start(k->loop, &k->spawner_retry, SPAWNER_RETRY_MS, ask_again, k);
}

void spawner_enqueue(struct keeper *k, struct kept *b)
{
    b->next_asked = NULL;
    *k->queue_end = b;
    k->queue_end = &b->next_asked;
    ask_next(k);
}

void spawner_stop(struct keeper *k)
{
    ev_timer_stop(k->loop, &k->spawner_retry);
    ev_io_close(&k->spawner_io);
    own_fd_close(&k->spawner_fd); /* it reads the end, and ends */
    if (k->spawner_pid)
        ev_child_forget(k->kids, &k->spawner);
}
