/* silica pod-backend: the pod side of `silica apiserver --pod-backend=local-exec`, which starts it: all Pods are this machine.
 * For tests only: whoever reaches its socket runs what they like, as we are. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/log.h"
#include "cli/pod_log.h"
#include "cli/pod_side.h"
#include "net/listen.h"
#include "podstream/local_exec.h"
#include "podstream/podstream.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#define HEAD_MAX_BYTES (2 << 20) /* what the API server takes, and the names it adds */

struct pod_backend_options {
    const char *logs, *log_level;
    uint64_t listen_fd, parent;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct pod_backend_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--listen-fd", NULL, OPT_U64, AT_FIELD(listen_fd), "0", 0, 1024, "N", "the socket to serve, which listens already" },
    { "--logs", NULL, OPT_STR, AT_FIELD(logs), NULL, 0, 0, "DIR", "where logs of containers are read" },
    { "--parent", NULL, OPT_U64, AT_FIELD(parent), "0", 0, 0, "PID", "end with this process" },
    { "--log-level", NULL, OPT_STR, AT_FIELD(log_level), "info", 0, 0, "LEVEL", "debug, info, warn or error" },
    { "--help", NULL, OPT_BOOL, AT_FIELD(is_help), NULL, 0, 0, NULL, "this text", NULL, 'h' },
};
/* clang-format on */

const struct opt_program pod_backend_program = {
    .name = "silica pod-backend",
    .usage = "--listen-fd N [options]",
    .example =
        "silica pod-backend --listen-fd 0      what `silica apiserver --pod-backend` starts by itself",
    .opts = opts,
    .opt_count = LEN(opts),
};

/* ---- local_exec, and logs ---- */

struct backend {
    struct pod_backend base;
    struct ev_loop *loop;
    struct pod_backend *local;
    struct pod_backend_ops ops;
    int logs_fd; /* -1: none are kept */
};

static struct backend *of(struct pod_backend *b)
{
    return CONTAINER(b, struct backend, base);
}

static int admit(struct pod_backend *b, const struct pod_request *r, struct err *e)
{
    return of(b)->local->ops->admit(of(b)->local, r, e);
}

static int start(struct pod_backend *b, const struct pod_request *r,
                 const struct pod_process_events *events, void *ctx, struct pod_process **ret,
                 struct err *e)
{
    return of(b)->local->ops->start(of(b)->local, r, events, ctx, ret, e);
}

static struct pod_dial *dial(struct pod_backend *b, const struct pod_request *r, uint16_t port,
                             pod_dial_fn done, void *ctx)
{
    return of(b)->local->ops->dial(of(b)->local, r, port, done, ctx);
}

static int open_log(struct pod_backend *b, const struct pod_request *r,
                    const struct pod_log_events *events, void *ctx, struct pod_log **ret,
                    struct err *e)
{
    return pod_log_open(of(b)->loop, of(b)->logs_fd, r, events, ctx, ret, e);
}

static void backend_init(struct backend *b, struct ev_loop *loop, struct ev_children *kids,
                         int logs_fd)
{
    static char cat[] = "cat";
    static char *const echo[] = { cat, NULL };

    b->loop = loop;
    b->logs_fd = logs_fd;
    b->local = local_exec_new(loop, kids, NULL, echo);
    b->ops = *b->local->ops;
    b->ops.admit = admit;
    b->ops.start = start;
    b->ops.dial = dial;
    b->ops.log = open_log;
    b->ops.log_pause = pod_log_pause;
    b->ops.log_leave = pod_log_leave;
    b->base.ops = &b->ops;
}

/* ---- serving ---- */

static void on_request(void *ctx, struct http_exchange *x)
{
    if (!podstream_serve(ctx, x))
        http_answer(x, 404, "text/plain", SPAN("no stream of a pod\n"));
}

static void on_signal(void *ctx, int number)
{
    (void)number;
    ev_loop_stop(ctx);
}

/* Commands inherit nothing of ours, and their input is not our socket. */
static int take_listener(int listen_fd, int *ret, struct err *e)
{
    OWN_FD int null_fd = fd_open_null(e), moved = -1;

    if (null_fd < 0)
        return -1;
    moved = fcntl(listen_fd, F_DUPFD_CLOEXEC, 3);
    if (moved < 0 || (listen_fd <= 2 && dup2(null_fd, listen_fd) < 0))
        return err_sys(e, "--listen-fd %d", listen_fd);
    *ret = take_fd(&moved);
    return 0;
}

static int serve(const struct pod_backend_options *o, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, 0 };
    struct http_server_config config = { .on_request = on_request,
                                         .head_max_bytes = HEAD_MAX_BYTES };
    OWN_FD int listen_fd = -1, logs_fd = -1;
    struct backend backend = { 0 };
    struct ev_children *kids = NULL;
    struct net_listener *listener;
    struct http_server *http;
    struct podstream *streams;
    struct ev_loop *loop;

    if (take_listener((int)o->listen_fd, &listen_fd, e) < 0 || ev_loop_new(&loop, e) < 0 ||
        ev_children_open(loop, signals, on_signal, loop, &kids, e) < 0)
        return -1;
    if (o->logs)
        logs_fd = open(o->logs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    backend_init(&backend, loop, kids, logs_fd);
    streams = podstream_new(loop, &backend.base);
    config.ctx = streams;
    http = http_server_new(loop, &config);
    if (net_listen_fd(loop, listen_fd, http_server_accept, http, &listener, e) < 0)
        return -1;
    (void)take_fd(&listen_fd);
    log_info("pods.serve", KV("pid", getpid()));
    ev_loop_run(loop);
    net_listener_close(listener);
    http_server_free(http);
    podstream_free(streams);
    local_exec_free(backend.local);
    ev_children_close(kids);
    ev_loop_free(loop);
    return 0;
}

int pod_backend_command(int argc, char **argv)
{
    struct pod_backend_options o = { 0 };
    enum log_level level = LOG_INFO;
    struct err e;
    int rest;

    if (opt_parse(&pod_backend_program, argc, argv, &o, &rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.is_help)
        return command_show(opt_help, &pod_backend_program);
    if (pod_side_is_allowed(&e) < 0)
        return command_fail(&e, EXIT_USAGE);
    (void)log_level_parse(o.log_level, &level);
    log_open(2, level, LOG_TEXT);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (o.parent && getppid() != (pid_t)o.parent)
        return 0; /* it died before we asked to be told */
    if (serve(&o, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    return 0;
}
