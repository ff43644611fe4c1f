/* silica node: makes the Pods of an API server real, on this machine. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/pod_socket.h"
#include "ev/child.h"
#include "isolate/dir.h"
#include "kubeclient/kubeclient.h"
#include "net/resolve.h"
#include "node/node.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct node_options {
    const char *kubeconfig, *data, *name, *socket, *log_level, *log_format;
    uint64_t ready_fd, listen_fd;
    bool is_help, is_no_scheduler;
};

#define AT_FIELD(field) offsetof(struct node_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--kubeconfig", "KUBECONFIG", OPT_STR, AT_FIELD(kubeconfig), NULL, 0, 0, "FILE", "which API server, and who we are there", "Serving" },
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "where sandboxes, volumes and logs of Pods are kept; default: ~/.local/state/silica, root: /var/lib/silica" },
    { "--node-name", NULL, OPT_STR, AT_FIELD(name), NULL, 0, 0, "NAME", "what this machine is called in the API; default: its host name" },
    { "--pod-socket", NULL, OPT_STR, AT_FIELD(socket), NULL, 0, 0, "PATH", "where the API server asks for exec, attach, port-forward and logs; default: DIR/pods.sock" },
    { "--pod-socket-fd", NULL, OPT_U64, AT_FIELD(listen_fd), "18446744073709551615", 0, 0, "N", "the same, a socket that listens already" },
    { "--no-scheduler", NULL, OPT_BOOL, AT_FIELD(is_no_scheduler), NULL, 0, 0, NULL, "take only Pods that somebody else gave to this node" },
    { "--ready-fd", NULL, OPT_U64, AT_FIELD(ready_fd), "18446744073709551615", 0, 0, "N", "write one line of JSON to this descriptor when Pods are looked after" },
    { "--log-level", NULL, OPT_STR, AT_FIELD(log_level), "info", 0, 0, "LEVEL", "debug, info, warn or error", "Logs" },
    { "--log-format", NULL, OPT_STR, AT_FIELD(log_format), "text", 0, 0, "FORMAT", "text or json" },
    { "--help", NULL, OPT_BOOL, AT_FIELD(is_help), NULL, 0, 0, NULL, "this text", "Help", 'h' },
};
/* clang-format on */

const struct opt_program node_program = {
    .name = "silica node",
    .usage = "--kubeconfig FILE [options]",
    .example = "silica apiserver --data ~/api --pod-socket ~/node/pods.sock\n"
               "silica node --kubeconfig ~/api/kubeconfig --data ~/node",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Each container becomes a sandbox. TERM and INT end the node and leave its sandboxes running: the next node\n"
        "of the same directory takes them over. DIR/images.yaml says which images there are.",
};

struct role {
    const struct node_options *o;
    struct ev_loop *loop;
    struct ev_children *children;
    struct resolver *resolver;
    struct kube_client *client;
    struct pod_socket socket;
    struct node *node;
    char *data;
    char socket_path[PATH_MAX];
    char name[HOST_NAME_MAX + 1];
    bool is_stopping;
    int exit_code;
};

/* A standard stream that we were given for something else stays taken: what is opened next must not become it. */
static void let_go(int fd)
{
    struct err e;
    OWN_FD int null_fd = fd <= 2 ? fd_open_null(&e) : -1;

    if (null_fd < 0 || dup2(null_fd, fd) < 0)
        (void)close(fd);
}

/* ---- ready, and the end ---- */

static void on_started(void *ctx)
{
    struct role *r = ctx;
    OWN(buf_done) struct buf line = BUF_INIT(2 * PATH_MAX);
    uint64_t fd = r->o->ready_fd;
    struct json_out out;
    struct err e;

    log_info("node.serve", KV("node", (const char *)r->name), KV("data", r->data),
             KV("socket", (const char *)r->socket_path));
    if (fd == UINT64_MAX)
        return;
    json_out_init(&out, &line, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "node"), json_out_cstr(&out, r->name);
    json_out_key(&out, "pods"), json_out_cstr(&out, r->socket_path);
    json_out_object_end(&out);
    if (json_out_end(&out, &e) < 0 || buf_addc(&line, '\n', &e) < 0 ||
        fd_write_all((int)fd, buf_span(&line), &e) < 0)
        log_error("node.ready", KV("err", &e));
    let_go((int)fd);
}

static void on_closed(void *ctx)
{
    struct role *r = ctx;

    ev_loop_stop(r->loop);
}

static void on_signal(void *ctx, int number)
{
    struct role *r = ctx;

    log_info("node.stop", KV("signal", number));
    if (r->is_stopping || !r->node) { /* asked twice: at once */
        r->exit_code = r->is_stopping ? 1 : 0;
        ev_loop_stop(r->loop);
        return;
    }
    r->is_stopping = true;
    node_close(r->node, on_closed, r);
}

/* ---- the beginning ---- */

static int set_up_log(const struct node_options *o, struct err *e)
{
    enum log_level level;

    if (!log_level_parse(o->log_level, &level))
        return err_set(e, ERR_USAGE, "--log-level: '%s' is not debug, info, warn or error",
                       o->log_level);
    if (strcmp(o->log_format, "text") != 0 && strcmp(o->log_format, "json") != 0)
        return err_set(e, ERR_USAGE, "--log-format: '%s' is neither text nor json", o->log_format);
    log_open(2, level, strcmp(o->log_format, "json") == 0 ? LOG_JSON : LOG_TEXT);
    return 0;
}

static int connect_client(struct role *r, struct err *e)
{
    struct kubeconfig_choice choice = { .file = NULL };
    struct kubeconfig k;

    kubeconfig_choice_env(&choice);
    choice.file = r->o->kubeconfig;
    if (kubeconfig_load(&choice, &k, e) < 0)
        return -1;
    return kubeclient_new(r->loop,
                          &(struct kubeclient_config){ .kubeconfig = &k,
                                                       .children = r->children,
                                                       .resolver = resolver_dial(r->resolver) },
                          &r->client, e);
}

/* Made here, since the socket is in it, before the engine looks whose it is. */
static int open_data(struct role *r, struct err *e)
{
    OWN(dir_done) struct dir dir = DIR_INIT;

    return dir_default(r->o->data, &r->data, e) < 0 ? -1 : dir_open(&dir, r->data, true, e);
}

static int open_socket(struct role *r, int *ret_fd, struct err *e)
{
    if (r->o->listen_fd != UINT64_MAX) {
        *ret_fd = fcntl((int)r->o->listen_fd, F_DUPFD_CLOEXEC, 3);
        if (*ret_fd < 0)
            return err_sys(e, "--pod-socket-fd %llu", (unsigned long long)r->o->listen_fd);
        let_go((int)r->o->listen_fd);
        return 0;
    }
    if (snprintf(r->socket_path, sizeof r->socket_path, r->o->socket ? "%s" : "%s/pods.sock",
                 r->o->socket ? r->o->socket : r->data) >= (int)sizeof r->socket_path)
        return err_set(e, ERR_USAGE, "--pod-socket: the path is too long");
    return pod_socket_open(&r->socket, r->socket_path, e) < 0
               ? -1
               : pod_socket_listen(&r->socket, ret_fd, e);
}

static int run(struct role *r, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, 0 };
    struct node_config config = {
        .name = r->name, .is_scheduler = !r->o->is_no_scheduler, .started = on_started, .ctx = r
    };

    (void)signal(SIGPIPE, SIG_IGN);
    (void)mallopt(M_ARENA_MAX, 2);
    if (r->o->ready_fd != UINT64_MAX)
        (void)fcntl((int)r->o->ready_fd, F_SETFD, FD_CLOEXEC);
    if (open_data(r, e) < 0 || ev_loop_new(&r->loop, e) < 0 ||
        ev_children_open(r->loop, signals, on_signal, r, &r->children, e) < 0 ||
        resolver_new(r->loop, &(struct resolver_config){ 0 }, &r->resolver, e) < 0 ||
        connect_client(r, e) < 0 || open_socket(r, &config.listen_fd, e) < 0)
        return -1;
    config.client = r->client;
    config.data = r->data;
    if (node_open(r->loop, &config, &r->node, e) < 0)
        return -1;
    ev_loop_run(r->loop);
    return 0;
}

static void close_all(struct role *r)
{
    node_free(r->node);
    kube_client_free(r->client);
    resolver_free(r->resolver);
    ev_children_close(r->children);
    ev_loop_free(r->loop);
    pod_socket_close(&r->socket);
    free(r->data);
}

static void choose_name(struct role *r)
{
    if (r->o->name)
        (void)snprintf(r->name, sizeof r->name, "%s", r->o->name);
    else if (gethostname(r->name, sizeof r->name - 1) < 0 || !*r->name)
        (void)snprintf(r->name, sizeof r->name, "silica");
}

int node_command(int argc, char **argv)
{
    struct node_options o = { 0 };
    struct role r = { .o = &o, .socket = { .dir_fd = -1 } };
    struct err e;
    int rest;

    if (opt_parse(&node_program, argc, argv, &o, &rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.is_help)
        return command_show(opt_help, &node_program);
    if (rest < argc)
        (void)err_set(&e, ERR_USAGE, "unexpected argument '%s'", argv[rest]);
    if (rest < argc || set_up_log(&o, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    choose_name(&r);
    if (run(&r, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    log_info("node.end", KV("code", r.exit_code));
    if (r.exit_code == 0) /* a second signal may have left work under way, which nobody waits for */
        close_all(&r);
    return r.exit_code;
}
