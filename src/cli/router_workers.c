#include "cli/router_workers.h"

#include "base/time.h"
#include "cli/command.h"
#include "cli/pod_socket.h"
#include "cli/serving.h"
#include "ev/io.h"
#include "ev/timer.h"
#include "http/show.h"
#include "kubeclient/counts.h"
#include "net/listen.h"
#include "router/tally.h"
#include "up/limits.h"
#include "up/place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STOP_SLACK_MS 5000 /* a worker has its own patience with requests; then it is killed */
#define KEPT_FDS      4

/* One place of the crew, whoever has it now. */
struct worker {
    struct crew *crew;
    struct router_seat seat; /* its sockets stay open while nobody serves them */
    pid_t pid;               /* 0: none now */
    struct ev_child child;
    int ear_fd; /* says a line when it serves */
    struct ev_io ear;
    struct ev_timer pause; /* before the next one */
    uint64_t started_ms, wait_ms;
    bool is_serving, has_served;
};

struct crew {
    const struct router_options *o;
    struct serving s;
    struct tally_board *board;
    struct counts *counts; /* one for each worker, in memory that they share */
    struct worker workers[ROUTER_WORKERS_MAX];
    char plain[128], tls[128]; /* addresses; "": closed */
    struct ev_timer patience;
    uint64_t restarts;
    bool is_ready; /* all have served */
};

static void launch(void *ctx);

#define EACH_WORKER(w, c)                                                                          \
    for (struct worker *w = (c)->workers; w < (c)->workers + (c)->o->workers; w++)

/* ---- what is shown ---- */

static unsigned count_serving(struct crew *c)
{
    unsigned n = 0;

    EACH_WORKER(w, c)
    n += w->is_serving;
    return n;
}

static const char *why_not_ready(void *ctx)
{
    struct crew *c = ctx;

    return c->is_ready && !c->s.is_stopping && count_serving(c) ? NULL : "draining";
}

static int write_workers(struct crew *c, struct buf *out, struct err *e)
{
    static const char served[] = "sandbox_router_worker_requests_total";
    char label[32];

    if (metric_head(out, "sandbox_router_workers", "gauge", "Workers that serve.", e) < 0 ||
        metric_u64(out, "sandbox_router_workers", "", count_serving(c), e) < 0 ||
        metric_head(out, "sandbox_router_worker_restarts_total", "counter",
                    "Workers that died and were started again.", e) < 0 ||
        metric_u64(out, "sandbox_router_worker_restarts_total", "", c->restarts, e) < 0 ||
        metric_head(out, served, "counter", "Requests by worker.", e) < 0)
        return -1;
    EACH_WORKER(w, c)
    {
        (void)snprintf(label, sizeof label, "worker=\"%u\"", w->seat.number);
        if (metric_u64(out, served, label, tally_board_requests(c->board, w->seat.number), e) < 0)
            return -1;
    }
    return 0;
}

static int write_metrics(void *ctx, struct buf *out, struct err *e)
{
    struct counts sum = { .n = 0 };
    struct crew *c = ctx;

    EACH_WORKER(w, c)
    counts_sum(&sum, w->seat.counts);
    if (serving_write_build("sandbox_router_build_info", out, e) < 0 ||
        (router_has_client(c->o) && counts_write(&sum, out, e) < 0) || write_workers(c, out, e) < 0)
        return -1;
    return tally_board_write(c->board, out, e);
}

static int tell_ready(struct crew *c, struct err *e)
{
    struct json_out *out = serving_line(&c->s);

    json_out_key(out, "listen"), json_out_array_begin(out);
    if (*c->plain)
        json_out_cstr(out, c->plain);
    if (*c->tls)
        json_out_cstr(out, c->tls);
    json_out_array_end(out);
    serving_add_show(&c->s);
    log_info("router.workers", KV("workers", c->o->workers),
             KV("metrics", show_metrics_address(c->s.show)),
             KV("health", show_health_address(c->s.show)));
    return serving_ready(&c->s, e);
}

/* ---- the end ---- */

static void stop_listening(struct crew *c)
{
    EACH_WORKER(w, c)
    {
        own_fd_close(&w->seat.plain_fd);
        own_fd_close(&w->seat.tls_fd);
        own_fd_close(&w->seat.tunnel_fd);
    }
}

static void signal_all(struct crew *c, int number)
{
    EACH_WORKER(w, c)
    if (w->pid)
        (void)kill(w->pid, number);
}

static void end_if_alone(struct crew *c)
{
    EACH_WORKER(w, c)
    if (w->pid)
        return;
    ev_loop_stop(c->s.loop);
}

static void on_impatient(void *ctx)
{
    struct crew *c = ctx;

    log_warn("router.kill", KV("workers", count_serving(c)));
    signal_all(c, SIGKILL);
}

static void stop(void *ctx, bool is_again)
{
    struct crew *c = ctx;

    if (is_again) {
        signal_all(c, SIGKILL);
        return;
    }
    c->s.is_stopping = true;
    stop_listening(c);
    EACH_WORKER(w, c)
    ev_timer_stop(c->s.loop, &w->pause);
    signal_all(c, SIGTERM);
    ev_timer_start(c->s.loop, &c->patience, c->o->shutdown_ms + STOP_SLACK_MS, on_impatient, c);
    end_if_alone(c);
}

/* ---- a worker ---- */

static void hush(struct worker *w)
{
    ev_io_close(&w->ear);
    own_fd_close(&w->ear_fd);
}

/* The first goes ahead: what it cannot do, the others need not say as well. */
static void on_served(struct crew *c)
{
    bool are_all = true;
    struct err e;

    EACH_WORKER(w, c)
    {
        if (!w->started_ms)
            launch(w);
        are_all = are_all && w->has_served;
    }
    if (c->is_ready || !are_all)
        return;
    c->is_ready = true;
    if (tell_ready(c, &e) == 0)
        return;
    log_error("router.fail", KV("err", &e));
    c->s.exit_code = EXIT_FAILED;
    stop(c, false);
}

static void on_word(void *ctx, unsigned ready)
{
    struct worker *w = ctx;
    char line[512];
    ssize_t n = read(w->ear_fd, line, sizeof line);

    (void)ready;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    hush(w); /* it says no more, or has died, which is told otherwise */
    if (n <= 0 || w->crew->s.is_stopping)
        return;
    w->is_serving = w->has_served = true;
    log_info("router.worker", KV("worker", w->seat.number), KV("pid", w->pid));
    on_served(w->crew);
}

static void try_again(struct worker *w)
{
    bool was_steady = time_mono_ms() - w->started_ms >= PART_STEADY_MS;

    w->wait_ms = was_steady ? PART_WAIT_MIN_MS : MIN(w->wait_ms * 2, (uint64_t)PART_WAIT_MAX_MS);
    w->crew->restarts++;
    ev_timer_start(w->crew->s.loop, &w->pause, w->wait_ms, launch, w);
}

static void on_ended(void *ctx)
{
    struct worker *w = ctx;
    struct crew *c = w->crew;
    int status = w->child.wait_status;

    w->pid = 0;
    w->is_serving = false;
    hush(w);
    tally_board_leave(c->board, w->seat.number);
    if (c->s.is_stopping) {
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
            c->s.exit_code = EXIT_FAILED;
        end_if_alone(c);
        return;
    }
    /* One that never served and ended by itself would do so again, and has said why. */
    if (!c->is_ready && !w->has_served && WIFEXITED(status)) {
        c->s.exit_code = EXIT_FAILED;
        stop(c, false);
        return;
    }
    try_again(w);
    log_warn("router.worker.died", KV("worker", w->seat.number), KV("status", status),
             KV("retry_ms", w->wait_ms));
}

static void close_others(const int *kept, size_t n)
{
    for (int fd = 3; fd >= 0;) {
        int next = -1; /* the least of those that stay */

        for (size_t i = 0; i < n; i++)
            if (kept[i] >= fd && (next < 0 || kept[i] < next))
                next = kept[i];
        if (next != fd)
            (void)syscall(SYS_close_range, fd, next < 0 ? ~0u : (unsigned)next - 1, 0);
        fd = next < 0 ? -1 : next + 1;
    }
}

/* We are the child: the loop and the connections of the one above us are not ours, and go. Its signals stay blocked until
 * we have a loop, so that none is lost. A Ctrl-C is its alone to hand on, hence the group. */
static void be_worker(struct worker *w, int ready_fd, pid_t above)
{
    const int kept[KEPT_FDS] = { w->seat.plain_fd, w->seat.tls_fd, w->seat.tunnel_fd, ready_fd };
    struct router_options o = *w->crew->o;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != above)
        _exit(1);
    (void)setpgid(0, 0);
    close_others(kept, KEPT_FDS);
    if (w->crew->s.spec.ready_fd <= 2) /* who waits for it hears when the one above us has gone */
        command_let_go((int)w->crew->s.spec.ready_fd);
    o.ready_fd = (uint64_t)ready_fd;
    o.metrics = o.health = "0"; /* the one above us shows both */
    _exit(router_serve(&o, &w->seat));
}

static int launch_process(struct worker *w, struct err *e)
{
    OWN_FD int ready_fd = -1;
    pid_t above = getpid();
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe");
    w->ear_fd = fds[0];
    ready_fd = fds[1];
    if (ev_io_open(&w->ear, w->crew->s.loop, w->ear_fd, on_word, w, e) < 0)
        return -1;
    ev_io_want(&w->ear, EV_READ);
    w->pid = fork();
    if (w->pid == 0)
        be_worker(w, ready_fd, above);
    if (w->pid > 0)
        return 0;
    w->pid = 0;
    return err_sys(e, "cannot fork");
}

static void launch(void *ctx)
{
    struct worker *w = ctx;
    struct err e;

    w->started_ms = time_mono_ms();
    if (launch_process(w, &e) == 0) {
        ev_child_watch(w->crew->s.children, &w->child, w->pid, on_ended, w);
        return;
    }
    hush(w);
    try_again(w);
    log_error("router.worker.start", KV("worker", w->seat.number), KV("err", &e),
              KV("retry_ms", w->wait_ms));
}

/* ---- listening ---- */

/* A queue that all share: each holds it under a number of its own. Takes first. */
static int share(struct crew *c, int first, int *(*slot)(struct worker *), struct err *e)
{
    *slot(&c->workers[0]) = first;
    for (unsigned i = 1; i < c->o->workers; i++) {
        int fd = fcntl(first, F_DUPFD_CLOEXEC, 3);

        if (fd < 0)
            return err_sys(e, "cannot share a socket");
        *slot(&c->workers[i]) = fd;
    }
    return 0;
}

static int *plain_of(struct worker *w)
{
    return &w->seat.plain_fd;
}

static int *tls_of(struct worker *w)
{
    return &w->seat.tls_fd;
}

static int *tunnel_of(struct worker *w)
{
    return &w->seat.tunnel_fd;
}

/* The kernel lets every process of ours join in once the first socket allows it: a port that somebody has is an error
 * as ever, unless it was said to be shared. */
static int deal(struct crew *c, const char *text, int *(*slot)(struct worker *), struct err *e)
{
    struct net_addr at;
    int fd;

    if (net_addr_parse(text, &at, e) < 0)
        return -1;
    if (at.sa.ss_family == AF_UNIX)
        return net_listen_socket(&at, &fd, e) < 0 ? -1 : share(c, fd, slot, e);
    if (!c->o->is_port_shared && net_addr_port(&at)) {
        if (net_listen_socket(&at, &fd, e) < 0)
            return -1;
        own_fd_close(&fd);
    }
    EACH_WORKER(w, c)
    {
        if (net_listen_socket_shared(&at, slot(w), e) < 0)
            return -1;
        if (getsockname(*slot(w), (struct sockaddr *)&at.sa, &at.len) <
            0) /* the port, if it was 0 */
            return err_sys(e, "cannot listen");
    }
    return 0;
}

static int open_door(struct crew *c, const char *text, int *(*slot)(struct worker *), char at[128],
                     struct err *e)
{
    int fd;

    if (slot == plain_of && c->o->listen_fd != SERVING_NO_FD) {
        if (command_take_fd((int)c->o->listen_fd, &fd, e) < 0 || share(c, fd, slot, e) < 0)
            return err_wrap(e, "--listen-fd");
    } else if (!text || !*text) {
        return 0;
    } else if (deal(c, text, slot, e) < 0) {
        return -1;
    }
    return place_address(*slot(&c->workers[0]), at, 128, e);
}

static int open_tunnel(struct crew *c, struct err *e)
{
    struct pod_socket tunnel = { .dir_fd = -1 };
    int fd, rc;

    if (!c->o->tunnel)
        return 0;
    rc = pod_socket_open(&tunnel, c->o->tunnel, e) < 0 || pod_socket_listen(&tunnel, &fd, e) < 0 ||
                 share(c, fd, tunnel_of, e) < 0
             ? err_wrap(e, "--tunnel-socket")
             : 0;
    pod_socket_close(&tunnel);
    return rc;
}

/* ---- life ---- */

static int run(struct crew *c, struct err *e)
{
    const struct serving_spec spec = { .stop_event = "router.stop",
                                       .stop = stop,
                                       .ctx = c,
                                       .ready_fd = c->o->ready_fd,
                                       .is_server = true };
    const struct show_config show = { .metrics = c->o->metrics,
                                      .health = c->o->health,
                                      .write = write_metrics,
                                      .why_not_ready = why_not_ready,
                                      .ctx = c };

    if (serving_open(&c->s, &spec, e) < 0 ||
        open_door(c, c->o->listen, plain_of, c->plain, e) < 0 ||
        open_door(c, c->o->tls_listen, tls_of, c->tls, e) < 0 || open_tunnel(c, e) < 0 ||
        serving_show(&c->s, &show, e) < 0)
        return -1;
    launch(&c->workers[0]);
    ev_loop_run(c->s.loop);
    ev_timer_stop(c->s.loop, &c->patience);
    return 0;
}

static void init(struct crew *c)
{
    size_t size = c->o->workers * sizeof *c->counts;
    unsigned number = 0;

    c->board = tally_board_new(c->o->workers);
    c->counts = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->counts == MAP_FAILED)
        abort(); /* as for all memory */
    EACH_WORKER(w, c)
    {
        w->crew = c;
        w->ear_fd = -1;
        w->wait_ms = PART_WAIT_MIN_MS;
        w->seat = (struct router_seat){ .number = number,
                                        .plain_fd = -1,
                                        .tls_fd = -1,
                                        .tunnel_fd = -1,
                                        .board = c->board,
                                        .counts = &c->counts[number] };
        number++;
    }
}

int router_workers(const struct router_options *o)
{
    struct crew *c = NEW(struct crew);
    struct err e;
    int code;

    c->o = o;
    init(c);
    code = run(c, &e) < 0 ? command_fail(&e, EXIT_FAILED) : c->s.exit_code;
    stop_listening(c);
    serving_close(&c->s);
    tally_board_free(c->board);
    (void)munmap(c->counts, o->workers * sizeof *c->counts);
    free(c);
    log_info("router.end", KV("code", code));
    return code;
}
