/* silica parts: the pod side of the Pods that stand for the system's own processes: a port of the router, logs of all. It
 * has no key and no right: who may come was decided by the API server, and what a caller may have is decided by the
 * router, which is told who it is. */
#include "cli/command.h"

#include "cli/pod_log.h"
#include "cli/serving.h"
#include "net/dial.h"
#include "podstream/pod_server.h"
#include "router/caller.h"
#include "up/names.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define DIAL_TIMEOUT_MS 5000
#define ROUTER_PORT     8080 /* of its Pod */

struct parts_options {
    const char *data;
    struct serving_log log;
    bool has_router, is_help;
};

#define AT_FIELD(field) offsetof(struct parts_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--data", NULL, OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "the data directory" },
    { "--router", NULL, OPT_BOOL, AT_FIELD(has_router), NULL, 0, 0, NULL, "there is a router, at DIR/" ROUTER_SOCKET },
    SERVING_LOG_LEVEL(AT_FIELD(log), NULL, ""),
    COMMAND_HELP(AT_FIELD(is_help), NULL),
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
    int dir_fd, logs_fd;
    bool has_router;
    struct net_addr router; /* by way of dir_fd */
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
    struct buf caller; /* what the router hears first */
    pod_dial_fn done;  /* NULL: called off */
    void *ctx;
};

static void finish(struct pod_dial *d, int fd, const struct err *e)
{
    if (d->done)
        d->done(d->ctx, fd, e);
    else
        own_fd_close(&fd);
    buf_done(&d->caller);
    free(d);
}

/* A socket that was connected a moment ago takes all of it: its buffer has many times the room. */
static int say_caller(int fd, struct span caller, struct err *e)
{
    ssize_t n = send(fd, caller.p, caller.n, MSG_NOSIGNAL);

    if (n < 0)
        return err_sys(e, "cannot tell the router who calls");
    if ((size_t)n < caller.n)
        return err_set(e, ERR_INTERNAL, "cannot tell the router who calls: its queue is full");
    return 0;
}

static void dialed(void *ctx, struct dial_result *r, const struct err *e)
{
    struct pod_dial *d = ctx;
    OWN_FD int fd = e ? -1 : take_fd(&r->fd);
    struct err why;

    if (!e && say_caller(fd, buf_span(&d->caller), &why) < 0) {
        own_fd_close(&fd);
        e = &why;
    }
    finish(d, take_fd(&fd), e);
}

static void refuse(void *ctx)
{
    struct err e;

    (void)err_set(&e, ERR_UNAVAILABLE, "the router serves port %d alone", ROUTER_PORT);
    finish(ctx, -1, &e);
}

static struct pod_dial *dial(struct pod_backend *b, const struct pod_request *r, uint16_t port,
                             pod_dial_fn done, void *ctx)
{
    const struct parts *p = of(b);
    const struct dial_spec spec = { .addr = &p->router, .timeout_ms = DIAL_TIMEOUT_MS };
    struct pod_dial *d = NEW(struct pod_dial);
    struct err e;

    d->done = done;
    d->ctx = ctx;
    d->caller.max = CALLER_PREFACE_BYTES + CALLER_MAX_BYTES;
    if (port == ROUTER_PORT && p->has_router && strcmp(r->pod, UP_CONTROLLER) != 0 &&
        caller_say(span_cstr(r->caller), &d->caller, &e) == 0)
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

static int find_things(const struct parts_options *o, struct parts *p, struct err *e)
{
    char text[NET_ADDR_TEXT_BYTES];

    p->has_router = o->has_router;
    p->dir_fd = open(o->data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->dir_fd < 0)
        return err_sys(e, "cannot open '%s'", o->data);
    p->logs_fd = openat(p->dir_fd, "logs", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->logs_fd < 0)
        return err_sys(e, "cannot open '%s/logs'", o->data);
    /* By way of the directory's descriptor: a path to a socket has 107 bytes at most. */
    (void)snprintf(text, sizeof text, "unix:/proc/self/fd/%d/" ROUTER_SOCKET, p->dir_fd);
    return net_addr_parse(text, &p->router, e);
}

static int serve(struct parts *p, struct err *e)
{
    struct pod_server *server = NULL;
    struct serving s;
    int listen_fd, rc = -1;

    p->base.ops = &ops;
    if (serving_open(&s, &(struct serving_spec){ .ready_fd = 1 }, e) == 0 &&
        command_take_fd(0, &listen_fd, e) == 0) {
        p->loop = s.loop;
        rc = pod_server_open(s.loop, &p->base, listen_fd, &server, e);
    }
    (void)serving_line(&s);
    if (rc == 0 && serving_ready(&s, e) == 0)
        ev_loop_run(s.loop);
    else
        rc = -1;
    pod_server_close(server);
    serving_close(&s);
    return rc;
}

int parts_command(int argc, char **argv)
{
    struct parts_options o = { 0 };
    struct parts p = { .dir_fd = -1, .logs_fd = -1 };
    struct err e;
    int code = command_parse(&parts_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (!o.data)
        return command_missing("--data");
    if (serving_log_open(&o.log, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (find_things(&o, &p, &e) < 0 || serve(&p, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    own_fd_close(&p.logs_fd);
    own_fd_close(&p.dir_fd);
    return 0;
}
