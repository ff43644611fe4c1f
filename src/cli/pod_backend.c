/* silica pod-backend: the pod side of `silica apiserver --pod-backend=local-exec`, which starts it: all Pods are this machine.
 * For tests only: whoever reaches its socket runs what they like, as we are. */
#include "cli/command.h"

#include "cli/pod_log.h"
#include "cli/pod_side.h"
#include "cli/serving.h"
#include "podstream/local_exec.h"
#include "podstream/pod_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

struct pod_backend_options {
    const char *logs;
    struct serving_log log;
    uint64_t listen_fd, parent;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct pod_backend_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--listen-fd", NULL, OPT_U64, AT_FIELD(listen_fd), "0", 0, 1024, "N", "the socket to serve, which listens already" },
    { "--logs", NULL, OPT_STR, AT_FIELD(logs), NULL, 0, 0, "DIR", "where logs of containers are read" },
    { "--parent", NULL, OPT_U64, AT_FIELD(parent), "0", 0, 0, "PID", "end with this process" },
    SERVING_LOG_LEVEL(AT_FIELD(log), NULL, ""),
    COMMAND_HELP(AT_FIELD(is_help), NULL),
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

static int serve(const struct pod_backend_options *o, struct err *e)
{
    OWN_FD int logs_fd = o->logs ? open(o->logs, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct backend backend = { 0 };
    struct pod_server *server = NULL;
    struct serving s;
    int listen_fd, rc = -1;

    if (serving_open(&s, &(struct serving_spec){ .ready_fd = SERVING_NO_FD }, e) == 0 &&
        command_take_fd((int)o->listen_fd, &listen_fd, e) == 0) {
        backend_init(&backend, s.loop, s.children, logs_fd);
        rc = pod_server_open(s.loop, &backend.base, listen_fd, &server, e);
    }
    if (rc == 0) {
        log_info("pods.serve", KV("pid", getpid()));
        ev_loop_run(s.loop);
    }
    pod_server_close(server);
    local_exec_free(backend.local);
    serving_close(&s);
    return rc;
}

int pod_backend_command(int argc, char **argv)
{
    struct pod_backend_options o = { 0 };
    struct err e;
    int rest, code = command_parse(&pod_backend_program, argc, argv, &o, &rest);

    if (code != COMMAND_GOES_ON)
        return code;
    if (pod_side_is_allowed(&e) < 0 || serving_log_open(&o.log, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (o.parent && getppid() != (pid_t)o.parent)
        return 0; /* it died before we asked to be told */
    if (serve(&o, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    return 0;
}
