/* silica parts: the pod side of the Pods that stand for the system's own processes: a port of the router, logs of all. It
 * has no key and no right: who may come was decided by the API server. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/log.h"
#include "cli/pod_log.h"
#include "ev/child.h"
#include "net/dial.h"
#include "net/listen.h"
#include "podstream/podstream.h"
#include "up/names.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HEAD_MAX_BYTES  (2 << 20) /* what the API server takes, and the names it adds */
#define DIAL_TIMEOUT_MS 5000
#define ROUTER_PORT     8080 /* of its Pod */

struct parts_options {
    const char *data, *router, *log_level;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct parts_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--data", NULL, OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "the data directory" },
    { "--router", NULL, OPT_STR, AT_FIELD(router), NULL, 0, 0, "HOST:PORT", "where the router listens" },
    { "--log-level", NULL, OPT_STR, AT_FIELD(log_level), "info", 0, 0, "LEVEL", "debug, info, warn or error" },
    { "--help", NULL, OPT_BOOL, AT_FIELD(is_help), NULL, 0, 0, NULL, "this text", NULL, 'h' },
};
/* clang-format on */

const struct opt_program parts_program = {
    .name = "silica parts",
    .usage = "--data DIR <LISTENER",
    .example = "silica parts --data DIR      what `silica up` starts by itself",
    .opts = opts,
    .opt_count = LEN(opts),
};

struct parts {
    struct pod_backend base;
    struct ev_loop *loop;
    int logs_fd;
    char *host; /* of the router; NULL: there is none */
    uint16_t port;
};

static struct parts *of(struct pod_backend *b)
{
    return CONTAINER(b, struct parts, base);
}

/* ---- what these Pods can do ---- */

/* What the router did for others is not for everybody who has a namespace. */
static bool may_show(const struct pod_request *r)
{
    return strcmp(r->ns, UP_NAMESPACE) == 0 ||
           (strcmp(r->ns, "default") == 0 && strcmp(r->container, "router") == 0);
}

static int admit(struct pod_backend *b, const struct pod_request *r, struct err *e)
{
    (void)b;
    switch (r->verb) {
    case POD_FORWARD:
        return 0;
    case POD_LOG:
        if (may_show(r))
            return 0;
        return err_set(e, ERR_DENIED, "the logs of the system are in namespace " UP_NAMESPACE);
    case POD_EXEC:
    case POD_ATTACH:
        break;
    }
    return err_set(e, ERR_INVALID, "pod %s stands for a part of silica: nothing can be run in it",
                   r->pod);
}

static int start(struct pod_backend *b, const struct pod_request *r,
                 const struct pod_process_events *events, void *ctx, struct pod_process **ret,
                 struct err *e)
{
    (void)events, (void)ctx, (void)ret;
    return admit(b, r, e);
}

struct pod_dial {
    struct dial *dial; /* NULL: it was refused at once */
    struct ev_task task;
    pod_dial_fn done; /* NULL: called off */
    void *ctx;
};

static void dialed(void *ctx, struct dial_result *r, const struct err *e)
{
    OWN_MEM struct pod_dial *d = ctx;
    int fd = e ? -1 : take_fd(&r->fd);

    if (d->done)
        d->done(d->ctx, fd, e);
    else
        own_fd_close(&fd);
}

static void refuse(void *ctx)
{
    OWN_MEM struct pod_dial *d = ctx;
    struct err e;

    (void)err_set(&e, ERR_UNAVAILABLE, "the router serves port %d alone", ROUTER_PORT);
    if (d->done)
        d->done(d->ctx, -1, &e);
}

static struct pod_dial *dial(struct pod_backend *b, const struct pod_request *r, uint16_t port,
                             pod_dial_fn done, void *ctx)
{
    const struct parts *p = of(b);
    const struct dial_spec spec = { .host = p->host,
                                    .port = p->port,
                                    .timeout_ms = DIAL_TIMEOUT_MS };
    struct pod_dial *d = NEW(struct pod_dial);

    d->done = done;
    d->ctx = ctx;
    if (port == ROUTER_PORT && p->host && strcmp(r->pod, UP_CONTROLLER) != 0)
        d->dial = dial_start(p->loop, &spec, dialed, d);
    else
        ev_post(p->loop, &d->task, refuse, d);
    return d;
}

static void call_off(struct pod_dial *d)
{
    d->done = NULL;
    if (d->dial)
        dial_cancel(d->dial);
}

static int open_log(struct pod_backend *b, const struct pod_request *r,
                    const struct pod_log_events *events, void *ctx, struct pod_log **ret,
                    struct err *e)
{
    const char *part = strcmp(r->container, "router") == 0 ? "router" : "control";
    OWN_FD int dir_fd = -1, fd = -1;

    dir_fd = openat(of(b)->logs_fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    fd = openat(dir_fd, r->log.is_previous ? "log.1" : "log",
                O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(e, ERR_INVALID, "there is no such log of the %s", part);
    if (pod_log_start(of(b)->loop, fd, r, events, ctx, ret, e) < 0)
        return -1;
    (void)take_fd(&fd);
    return 0;
}

static const struct pod_backend_ops ops = {
    .admit = admit,
    .start = start,
    .dial = dial,
    .dial_cancel = call_off,
    .log = open_log,
    .log_pause = pod_log_pause,
    .log_leave = pod_log_leave,
};

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

static int find_things(const struct parts_options *o, struct parts *p, struct err *e)
{
    OWN_MEM char *logs = NULL;
    struct span host;

    if (asprintf(&logs, "%s/logs", o->data) < 0)
        abort();
    p->logs_fd = open(logs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->logs_fd < 0)
        return err_sys(e, "cannot open '%s'", logs);
    if (!o->router)
        return 0;
    if (net_addr_split(o->router, &host, &p->port, e) < 0)
        return err_wrap(e, "--router");
    p->host = span_dup(host);
    return 0;
}

static int serve(struct parts *p, int listen_fd, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, 0 };
    struct http_server_config config = { .on_request = on_request,
                                         .head_max_bytes = HEAD_MAX_BYTES };
    struct ev_children *kids = NULL;
    struct net_listener *listener;
    struct http_server *http;
    struct podstream *streams;

    if (ev_loop_new(&p->loop, e) < 0 ||
        ev_children_open(p->loop, signals, on_signal, p->loop, &kids, e) < 0)
        return -1;
    p->base.ops = &ops;
    streams = podstream_new(p->loop, &p->base);
    config.ctx = streams;
    http = http_server_new(p->loop, &config);
    if (net_listen_fd(p->loop, listen_fd, http_server_accept, http, &listener, e) < 0 ||
        fd_write_all(1, SPAN("{}\n"), e) < 0)
        return -1;
    ev_loop_run(p->loop);
    net_listener_close(listener);
    http_server_free(http);
    podstream_free(streams);
    ev_children_close(kids);
    ev_loop_free(p->loop);
    return 0;
}

int parts_command(int argc, char **argv)
{
    struct parts_options o = { 0 };
    struct parts p = { .logs_fd = -1 };
    enum log_level level = LOG_INFO;
    struct err e;
    int rest, listen_fd;

    if (opt_parse(&parts_program, argc, argv, &o, &rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.is_help)
        return command_show(opt_help, &parts_program);
    if (rest < argc || !o.data) {
        (void)err_set(&e, ERR_USAGE,
                      rest < argc ? "unexpected argument '%s'" : "--data is missing%s",
                      rest < argc ? argv[rest] : "");
        return command_fail(&e, EXIT_USAGE);
    }
    (void)log_level_parse(o.log_level, &level);
    log_open(2, level, LOG_TEXT);
    (void)signal(SIGPIPE, SIG_IGN);
    if (command_take_stdin(&listen_fd, &e) < 0 || find_things(&o, &p, &e) < 0 ||
        serve(&p, listen_fd, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    own_fd_close(&p.logs_fd);
    free(p.host);
    return 0;
}
