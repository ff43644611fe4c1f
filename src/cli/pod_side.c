#include "cli/pod_side.h"

#include "base/log.h"
#include "base/time.h"
#include "ev/spawn.h"
#include "ev/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SOCKET_NAME     "pods.sock"
#define LOGS_NAME       "pod-logs"
#define BACKLOG         1024
#define RESTART_MIN_MS  20
#define RESTART_MAX_MS  5000
#define STEADY_MS       2000 /* one that lived as long is started again at once */
#define END_PATIENCE_MS 5000 /* then it is killed */

struct pod_side {
    struct pods pods;
    struct ev_loop *loop;
    struct ev_children *kids;
    const char *log_level;
    int dir_fd, listen_fd;
    struct net_addr addr;
    char logs[4200];
    pid_t pid; /* 0: none now */
    struct ev_child child;
    struct ev_timer restart;
    uint64_t started_ms, wait_ms;
    bool is_ending;
};

int pod_side_is_allowed(struct err *e)
{
    const char *allowed = getenv("SILICA_TEST");

    if (allowed && strcmp(allowed, "1") == 0)
        return 0;
    (void)err_set(e, ERR_USAGE,
                  "--pod-backend=local-exec runs commands on this machine itself: for tests only");
    err_hint(e, "to test streams: SILICA_TEST=1 silica apiserver --pod-backend=local-exec ...");
    return -1;
}

static int find(struct pods *pods, const struct object *pod, struct net_addr *ret, struct err *e)
{
    struct pod_side *p = CONTAINER(pods, struct pod_side, pods);

    (void)pod, (void)e;
    *ret = p->addr;
    return 0;
}

static const struct pods_ops ops = { .find = find };

struct pod_side *pod_side_new(struct ev_loop *loop, struct ev_children *kids, const char *log_level)
{
    struct pod_side *p = NEW(struct pod_side);

    p->pods.ops = &ops;
    p->loop = loop;
    p->kids = kids;
    p->log_level = log_level;
    p->dir_fd = p->listen_fd = -1;
    p->wait_ms = RESTART_MIN_MS;
    return p;
}

struct pods *pod_side_pods(struct pod_side *p)
{
    return &p->pods;
}

/* ---- the process ---- */

static void start(void *ctx);

static void on_ended(void *ctx)
{
    struct pod_side *p = ctx;
    bool was_steady = time_mono_ms() - p->started_ms >= STEADY_MS;

    p->pid = 0;
    if (p->is_ending)
        return;
    p->wait_ms = was_steady ? RESTART_MIN_MS : MIN(p->wait_ms * 2, (uint64_t)RESTART_MAX_MS);
    log_warn("pods.ended", KV("status", p->child.wait_status), KV("retry_ms", p->wait_ms));
    ev_timer_start(p->loop, &p->restart, p->wait_ms, start, p);
}

static void start(void *ctx)
{
    struct pod_side *p = ctx;
    char parent[24], level[16];
    char *argv[] = { "/proc/self/exe", "pod-backend", "--listen-fd", "0",   "--logs", p->logs,
                     "--parent",       parent,        "--log-level", level, NULL };
    struct spawn_spec spec = SPAWN_SPEC_INIT;
    struct spawn_fail fail;
    struct err e;

    (void)snprintf(parent, sizeof parent, "%ld", (long)getpid());
    (void)snprintf(level, sizeof level, "%s", p->log_level);
    spec.argv = argv;
    spec.envp = environ;
    spec.fds[0] = p->listen_fd;
    p->started_ms = time_mono_ms();
    p->pid = spawn(&spec, &fail);
    if (p->pid > 0) {
        ev_child_watch(p->kids, &p->child, p->pid, on_ended, p);
        return;
    }
    p->pid = 0;
    p->wait_ms = MIN(p->wait_ms * 2, (uint64_t)RESTART_MAX_MS);
    (void)spawn_err(&e, &spec, fail);
    log_error("pods.start", KV("err", &e), KV("retry_ms", p->wait_ms));
    ev_timer_start(p->loop, &p->restart, p->wait_ms, start, p);
}

/* By way of the directory's descriptor: a path to a socket has 107 bytes at most. */
static int listen_in(struct pod_side *p, struct err *e)
{
    char text[NET_ADDR_TEXT_BYTES];

    (void)snprintf(text, sizeof text, "unix:/proc/self/fd/%d/" SOCKET_NAME, p->dir_fd);
    if (net_addr_parse(text, &p->addr, e) < 0)
        return -1;
    if (unlinkat(p->dir_fd, SOCKET_NAME, 0) < 0 && errno != ENOENT)
        return err_sys(e, "cannot remove the old '" SOCKET_NAME "'");
    p->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->listen_fd < 0 ||
        fchmod(p->listen_fd, 0600) < 0 || /* the mode that its file is born with */
        bind(p->listen_fd, (const struct sockaddr *)&p->addr.sa, p->addr.len) < 0 ||
        listen(p->listen_fd, BACKLOG) < 0)
        return err_sys(e, "cannot make '" SOCKET_NAME "'");
    return 0;
}

int pod_side_start(struct pod_side *p, const char *data, struct err *e)
{
    p->dir_fd = open(data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->dir_fd < 0)
        return err_sys(e, "cannot open '%s'", data);
    if (mkdirat(p->dir_fd, LOGS_NAME, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "cannot make '%s/" LOGS_NAME "'", data);
    (void)snprintf(p->logs, sizeof p->logs, "%s/" LOGS_NAME, data);
    if (listen_in(p, e) < 0)
        return err_wrap(e, "'%s'", data);
    start(p);
    return 0;
}

void pod_side_free(struct pod_side *p)
{
    uint64_t deadline_ms = time_mono_ms() + END_PATIENCE_MS;

    if (!p)
        return;
    p->is_ending = true;
    if (p->pid)
        (void)kill(p->pid, SIGTERM);
    while (p->pid) {
        if (time_mono_ms() > deadline_ms)
            (void)kill(p->pid, SIGKILL);
        ev_loop_turn(p->loop);
    }
    ev_timer_stop(p->loop, &p->restart);
    if (p->listen_fd >= 0)
        (void)unlinkat(p->dir_fd, SOCKET_NAME, 0);
    own_fd_close(&p->listen_fd);
    own_fd_close(&p->dir_fd);
    free(p);
}
