/* silica control: the part of `silica up` that has the store and the keys: API server and controllers in one process. */
#include "cli/command.h"

#include "apiserver/local.h"
#include "apiserver/pki.h"
#include "apiserver/pods.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "controller/controller.h"
#include "ev/child.h"
#include "up/accounts.h"
#include "up/names.h"
#include "up/presence.h"
#include "up/warm.h"
#include "up/welcome.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct control_options {
    const char *data, *log_level;
    struct opt_list sans;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct control_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--data", NULL, OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "the data directory" },
    { "--tls-san", NULL, OPT_LIST, AT_FIELD(sans), NULL, 0, 0, "NAME", "another name or address in the server's certificate; may be repeated" },
    { "--log-level", NULL, OPT_STR, AT_FIELD(log_level), "info", 0, 0, "LEVEL", "debug, info, warn or error" },
    { "--help", NULL, OPT_BOOL, AT_FIELD(is_help), NULL, 0, 0, NULL, "this text", NULL, 'h' },
};
/* clang-format on */

const struct opt_program control_program = {
    .name = "silica control",
    .usage = "--data DIR <LISTENER",
    .example = "silica control --data DIR      what `silica up` starts by itself",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Standard input is the socket to serve. Standard output gets a line of JSON when it serves, and one\n"
        "for each pool that becomes warm.",
};

struct control {
    const struct control_options *o;
    struct ev_loop *loop;
    struct ev_children *children;
    struct pods pods;
    int dir_fd;
    struct apiserver *api;
    struct kube_client *ours, *controllers; /* the same store under two names */
    struct accounts *accounts;
    struct presence *presence;
    struct warm *warm;
    struct controller *controller;
    size_t waiting; /* for what must be there before anybody is told */
    struct err e;
    int exit_code;
    bool is_stopping;
};

/* ---- who has a Pod ---- */

static int find_pod(struct pods *pods, const struct object *pod, struct net_addr *ret,
                    struct err *e)
{
    struct control *c = CONTAINER(pods, struct control, pods);
    const char *name = presence_part(pod) ? PARTS_SOCKET : NODE_SOCKET;
    char text[NET_ADDR_TEXT_BYTES];

    if (faccessat(c->dir_fd, name, F_OK, 0) < 0)
        return err_set(e, ERR_NOT_FOUND, "nothing runs Pods here yet");
    /* By way of the directory's descriptor: a path to a socket has 107 bytes at most. */
    (void)snprintf(text, sizeof text, "unix:/proc/self/fd/%d/%s", c->dir_fd, name);
    return net_addr_parse(text, ret, e);
}

static bool leads_everywhere(struct pods *pods, const struct object *pod)
{
    (void)pods;
    return presence_part(pod);
}

static const struct pods_ops pods_ops = { .find = find_pod, .leads_everywhere = leads_everywhere };

/* ---- telling ---- */

static int say(struct json_out *out, struct buf *line, struct err *e)
{
    return json_out_end(out, e) < 0 || buf_addc(line, '\n', e) < 0
               ? -1
               : fd_write_all(1, buf_span(line), e);
}

static void fail(struct control *c, const struct err *e)
{
    c->e = *e;
    c->exit_code = EXIT_FAILED;
    ev_loop_stop(c->loop);
}

static void tell_ready(struct control *c)
{
    OWN(buf_done) struct buf line = BUF_INIT(16384);
    struct json_out out;
    struct err e;

    json_out_init(&out, &line, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "listen"), json_out_array_begin(&out);
    json_out_cstr(&out, c->api->address);
    json_out_array_end(&out);
    json_out_key(&out, "kubeconfig"), json_out_cstr(&out, c->api->kubeconfig);
    json_out_object_end(&out);
    log_info("control.serve", KV("addr", (const char *)c->api->address));
    if (say(&out, &line, &e) < 0)
        fail(c, &e);
}

static void tell_warm(void *ctx, const struct object *pool, int64_t ready)
{
    OWN(buf_done) struct buf line = BUF_INIT(4096);
    struct json_out out;
    struct err e;

    (void)ctx;
    json_out_init(&out, &line, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "warm"), json_out_cstr(&out, object_name(pool));
    json_out_key(&out, "namespace"), json_out_cstr(&out, object_namespace(pool));
    json_out_key(&out, "ready"), json_out_i64(&out, ready);
    json_out_object_end(&out);
    (void)say(&out, &line, &e);
}

/* ---- life ---- */

static void on_prepared(void *ctx, const struct err *e)
{
    struct control *c = ctx;

    if (c->is_stopping)
        return;
    if (e)
        fail(c, e);
    else if (--c->waiting == 0)
        tell_ready(c);
}

static void on_working(void *ctx)
{
    on_prepared(ctx, NULL);
}

static void on_rest(void *ctx)
{
    struct control *c = ctx;

    c->controller = NULL;
    ev_loop_stop(c->loop);
}

static void on_signal(void *ctx, int number)
{
    struct control *c = ctx;

    log_info("control.stop", KV("signal", number));
    if (c->is_stopping || !c->controller) {
        ev_loop_stop(c->loop);
        return;
    }
    c->is_stopping = true;
    controller_close(c->controller, on_rest, c);
}

static int open_api(struct control *c, int listen_fd, struct err *e)
{
    const char *sans[OPT_LIST_MAX + 1] = { NULL };
    struct apiserver_config config = { .data = c->o->data,
                                       .listen_fd = listen_fd,
                                       .sans = sans,
                                       .max_connections = 15000,
                                       .pods = &c->pods };

    for (size_t i = 0; i < c->o->sans.n; i++)
        sans[i] = c->o->sans.v[i];
    c->pods.ops = &pods_ops;
    c->dir_fd = open(c->o->data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (c->dir_fd < 0)
        return err_sys(e, "cannot open '%s'", c->o->data);
    return apiserver_open(c->loop, &config, &c->api, e);
}

static int open_controllers(struct control *c, struct err *e)
{
    struct controller_config config = CONTROLLER_CONFIG_INIT;

    config.started = on_working;
    config.ctx = c;
    c->controllers = local_client_new(c->api, "agent-sandbox-controller");
    return controller_open(c->controllers, &config, &c->controller, e);
}

static int begin(struct control *c, struct err *e)
{
    c->ours = local_client_new(c->api, "silica-up");
    c->waiting = 3; /* welcome, accounts, controllers */
    (void)welcome_start(c->ours, on_prepared, c);
    c->accounts = accounts_open(&(struct accounts_config){ .client = c->ours,
                                                           .dir_fd = c->dir_fd,
                                                           .address = c->api->address,
                                                           .ca_pem = pki_ca_pem(c->api->pki),
                                                           .done = on_prepared,
                                                           .ctx = c });
    if (presence_open(c->ours, &c->presence, e) < 0 ||
        warm_open(c->ours, tell_warm, c, &c->warm, e) < 0)
        return -1;
    return open_controllers(c, e);
}

static void end(struct control *c)
{
    c->is_stopping = true;
    warm_close(c->warm);
    presence_close(c->presence);
    accounts_close(c->accounts);
    if (c->controllers)
        kube_client_free(c->controllers);
    if (c->ours)
        kube_client_free(c->ours);
    apiserver_close(c->api);
    if (c->children)
        ev_children_close(c->children);
    own_fd_close(&c->dir_fd);
}

static int run(struct control *c, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, 0 };
    OWN_FD int listen_fd = -1;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)mallopt(M_ARENA_MAX, 2);
    if (command_take_stdin(&listen_fd, e) < 0 || ev_loop_new(&c->loop, e) < 0 ||
        ev_children_open(c->loop, signals, on_signal, c, &c->children, e) < 0 ||
        open_api(c, listen_fd, e) < 0)
        return -1;
    (void)take_fd(&listen_fd);
    if (begin(c, e) < 0)
        return -1;
    ev_loop_run(c->loop);
    if (c->exit_code) {
        *e = c->e;
        return -1;
    }
    end(c);
    ev_loop_free(c->loop);
    return 0;
}

int control_command(int argc, char **argv)
{
    struct control_options o = { 0 };
    struct control c = { .o = &o, .dir_fd = -1 };
    enum log_level level = LOG_INFO;
    struct err e;
    int rest;

    if (opt_parse(&control_program, argc, argv, &o, &rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.is_help)
        return command_show(opt_help, &control_program);
    if (rest < argc || !o.data) {
        (void)err_set(&e, ERR_USAGE,
                      rest < argc ? "unexpected argument '%s'" : "--data is missing%s",
                      rest < argc ? argv[rest] : "");
        return command_fail(&e, EXIT_USAGE);
    }
    (void)log_level_parse(o.log_level, &level);
    log_open(2, level, LOG_TEXT);
    return run(&c, &e) < 0 ? command_fail(&e, EXIT_FAILED) : 0;
}
