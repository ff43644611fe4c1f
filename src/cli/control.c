/* silica control: the part of `silica up` that has the store and the keys: API server and controllers in one process. */
#include "cli/command.h"

#include "apiserver/local.h"
#include "apiserver/pki.h"
#include "apiserver/pods.h"
#include "base/fd.h"
#include "cli/serving.h"
#include "controller/controller.h"
#include "up/accounts.h"
#include "up/config.h"
#include "up/gateway.h"
#include "up/names.h"
#include "up/presence.h"
#include "up/schedule.h"
#include "up/warm.h"
#include "up/welcome.h"

#include <fcntl.h>
#include <stdio.h>

struct control_options {
    const char *data, *welcome, *node;
    struct serving_log log;
    struct opt_list sans;
    uint64_t namespace_objects, namespace_bytes, max_pods;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct control_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--data", NULL, OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "the data directory" },
    SERVING_TLS_SAN(AT_FIELD(sans)),
    { "--welcome", NULL, OPT_STR, AT_FIELD(welcome), NULL, 0, 0, "FILE", "what a new directory is given, instead of the usual: JSON with templates and pools" },
    { "--node-name", NULL, OPT_STR, AT_FIELD(node), NULL, 0, 0, "NAME", "the node that Pods are given to; default: somebody else does that" },
    SERVING_NAMESPACE_MAX(AT_FIELD(namespace_objects), AT_FIELD(namespace_bytes)),
    SERVING_MAX_PODS(AT_FIELD(max_pods)),
    SERVING_LOG_LEVEL(AT_FIELD(log), NULL, ""),
    COMMAND_HELP(AT_FIELD(is_help), NULL),
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
        "for each pool that becomes warm; another says whether the router is wanted at the address of Gateways.",
};

struct control {
    const struct control_options *o;
    struct serving s;
    struct pods pods;
    int dir_fd;
    struct apiserver *api;
    struct kube_client *ours, *controllers; /* the same store under two names */
    struct accounts *accounts;
    struct presence *presence;
    struct schedule *schedule;
    struct warm *warm;
    struct gateway *gateway;
    struct controller *controller;
    size_t waiting; /* for what must be there before anybody is told */
    struct err e;   /* why, where s.exit_code is not 0 */
    bool is_ready, wants_gate;
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

static bool wants_caller(struct pods *pods, const struct object *pod)
{
    (void)pods;
    return presence_part(pod);
}

static const struct pods_ops pods_ops = { .find = find_pod, .wants_caller = wants_caller };

/* ---- telling ---- */

static void fail(struct control *c, const struct err *e)
{
    c->e = *e;
    c->s.exit_code = EXIT_FAILED;
    ev_loop_stop(c->s.loop);
}

/* The supervisor has the listeners. It answers by UP_SIGNAL_GATE, whatever comes of it. */
static void tell_gate(struct control *c)
{
    struct json_out *out = serving_line(&c->s);
    struct err e;

    json_out_key(out, "gateway"), json_out_bool(out, c->wants_gate);
    if (serving_say(&c->s, &e) < 0)
        log_warn("control.gateway", KV("err", &e));
}

static void want_gate(void *ctx, bool is_wanted)
{
    struct control *c = ctx;

    c->wants_gate = is_wanted;
    if (c->is_ready) /* our first line means that we serve */
        tell_gate(c);
}

static void tell_ready(struct control *c)
{
    struct json_out *out = serving_line(&c->s);
    struct err e;

    json_out_key(out, "listen"), json_out_array_begin(out);
    json_out_cstr(out, c->api->address);
    json_out_array_end(out);
    json_out_key(out, "kubeconfig"), json_out_cstr(out, c->api->kubeconfig);
    log_info("control.serve", KV("addr", (const char *)c->api->address));
    c->is_ready = true;
    if (serving_say(&c->s, &e) < 0)
        fail(c, &e);
    else if (c->wants_gate)
        tell_gate(c);
}

static void tell_warm(void *ctx, const struct object *pool, int64_t ready)
{
    struct control *c = ctx;
    struct json_out *out = serving_line(&c->s);
    struct err e;

    json_out_key(out, "warm"), json_out_cstr(out, object_name(pool));
    json_out_key(out, "namespace"), json_out_cstr(out, object_namespace(pool));
    json_out_key(out, "ready"), json_out_i64(out, ready);
    (void)serving_say(&c->s, &e);
}

/* ---- life ---- */

static void on_prepared(void *ctx, const struct err *e)
{
    struct control *c = ctx;

    if (c->s.is_stopping)
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
    ev_loop_stop(c->s.loop);
}

static void stop(void *ctx, bool is_again)
{
    struct control *c = ctx;

    if (is_again || !c->controller)
        ev_loop_stop(c->s.loop);
    else
        controller_close(c->controller, on_rest, c);
}

static void hear_gate(void *ctx)
{
    struct control *c = ctx;

    if (c->gateway && !c->s.is_stopping)
        gateway_hear(c->gateway, c->dir_fd);
}

static int open_api(struct control *c, int listen_fd, struct err *e)
{
    const char *sans[OPT_LIST_MAX + 1] = { NULL };
    struct apiserver_config config = { .data = c->o->data,
                                       .listen_fd = listen_fd,
                                       .sans = sans,
                                       .max_connections = 15000,
                                       .namespace_max = { c->o->namespace_objects,
                                                          c->o->namespace_bytes },
                                       .pods = &c->pods,
                                       .is_reserved = presence_has };

    for (size_t i = 0; i < c->o->sans.n; i++)
        sans[i] = c->o->sans.v[i];
    c->pods.ops = &pods_ops;
    c->dir_fd = open(c->o->data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (c->dir_fd < 0)
        return err_sys(e, "cannot open '%s'", c->o->data);
    return apiserver_open(c->s.loop, &config, &c->api, e);
}

static int open_controllers(struct control *c, struct err *e)
{
    struct controller_config config = CONTROLLER_CONFIG_INIT;

    config.pods_max = c->o->node ? c->o->max_pods : 0;
    config.started = on_working;
    config.ctx = c;
    c->controllers = local_client_new(c->api, "agent-sandbox-controller");
    local_client_be_deputy(c->controllers);
    return controller_open(c->controllers, &config, &c->controller, e);
}

static int begin_welcome(struct control *c, struct err *e)
{
    OWN(buf_done) struct buf text = BUF_INIT(CONFIG_FILE_MAX_BYTES);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct welcome_wishes wishes = { 0 };

    if (c->o->welcome) {
        if (fd_read_file(c->o->welcome, &text, e) < 0 ||
            json_parse(buf_span(&text), NULL, &doc, e) < 0)
            return err_wrap(e, "--welcome");
        wishes.templates = json_get(json_doc_root(doc), "templates");
        wishes.pools = json_get(json_doc_root(doc), "pools");
    }
    (void)welcome_start(c->ours, &wishes, on_prepared, c);
    return 0;
}

static int begin(struct control *c, struct err *e)
{
    c->ours = local_client_new(c->api, "silica-up");
    c->waiting = 3; /* welcome, accounts, controllers */
    if (begin_welcome(c, e) < 0)
        return -1;
    c->accounts = accounts_open(&(struct accounts_config){ .client = c->ours,
                                                           .dir_fd = c->dir_fd,
                                                           .address = c->api->address,
                                                           .ca_pem = pki_ca_pem(c->api->pki),
                                                           .done = on_prepared,
                                                           .ctx = c });
    if (presence_open(c->ours, &c->presence, e) < 0 ||
        (c->o->node && schedule_open(c->ours, c->o->node, c->o->max_pods, &c->schedule, e) < 0) ||
        warm_open(c->ours, tell_warm, c, &c->warm, e) < 0 ||
        gateway_open(c->ours, want_gate, c, &c->gateway, e) < 0)
        return -1;
    return open_controllers(c, e);
}

static void end(struct control *c)
{
    c->s.is_stopping = true;
    gateway_close(c->gateway);
    warm_close(c->warm);
    schedule_close(c->schedule);
    presence_close(c->presence);
    accounts_close(c->accounts);
    kube_client_free(c->controllers);
    kube_client_free(c->ours);
    apiserver_close(c->api);
    serving_close(&c->s);
    own_fd_close(&c->dir_fd);
}

static int run(struct control *c, struct err *e)
{
    const struct serving_spec spec = { .stop_event = "control.stop",
                                       .stop = stop,
                                       .ctx = c,
                                       .ready_fd = 1,
                                       .news_signal = UP_SIGNAL_GATE,
                                       .news = hear_gate,
                                       .is_server = true };
    OWN_FD int listen_fd = -1;

    if (serving_open(&c->s, &spec, e) < 0 || command_take_fd(0, &listen_fd, e) < 0 ||
        open_api(c, listen_fd, e) < 0)
        return -1;
    (void)take_fd(&listen_fd);
    if (begin(c, e) < 0)
        return -1;
    ev_loop_run(c->s.loop);
    if (c->s.exit_code) {
        *e = c->e;
        return -1;
    }
    end(c);
    return 0;
}

int control_command(int argc, char **argv)
{
    struct control_options o = { 0 };
    struct control c = { .o = &o, .dir_fd = -1 };
    struct err e;
    int code = command_parse(&control_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (!o.data)
        return command_missing("--data");
    if (serving_log_open(&o.log, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    return run(&c, &e) < 0 ? command_fail(&e, EXIT_FAILED) : 0;
}
