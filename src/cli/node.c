/* silica node: makes the Pods of an API server real, on this machine. */
#include "cli/command.h"

#include "cli/limit_options.h"
#include "cli/pod_socket.h"
#include "cli/sandbox_check.h"
#include "cli/serving.h"
#include "isolate/dir.h"
#include "kube/client.h"
#include "node/node.h"

#include <limits.h>
#include <stdio.h>

struct node_options {
    const char *kubeconfig, *data, *name, *socket;
    struct serving_log log;
    uint64_t ready_fd, listen_fd, pod_port_min, max_pods, disk_floor_bytes;
    struct box_limits limits, all;
    bool is_help, is_no_scheduler, is_every_address;
    bool
        is_unchecked; /* `silica up` has made a sandbox before, and a node that comes back takes over what runs */
};

#define AT_FIELD(field) offsetof(struct node_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--kubeconfig", "KUBECONFIG", OPT_STR, AT_FIELD(kubeconfig), NULL, 0, 0, "FILE", "which API server, and who we are there", "Serving" },
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "where sandboxes, volumes and logs of Pods are kept; default: ~/.local/state/silica, root: /var/lib/silica" },
    { "--node-name", NULL, OPT_STR, AT_FIELD(name), NULL, 0, 0, "NAME", "what this machine is called in the API; default: its host name" },
    { "--pod-socket", NULL, OPT_STR, AT_FIELD(socket), NULL, 0, 0, "PATH", "where the API server asks for exec, attach, port-forward and logs; default: DIR/pods.sock" },
    { "--pod-socket-fd", NULL, OPT_FD, AT_FIELD(listen_fd), NULL, 0, 0, "N", "the same, a socket that listens already" },
    SERVING_POD_ADDRESSES(AT_FIELD(is_every_address)),
    SERVING_POD_PORT_MIN(AT_FIELD(pod_port_min)),
    SERVING_MAX_PODS(AT_FIELD(max_pods)),
    SERVING_DISK_FLOOR(AT_FIELD(disk_floor_bytes)),
    { "--no-scheduler", NULL, OPT_BOOL, AT_FIELD(is_no_scheduler), NULL, 0, 0, NULL, "take only Pods that somebody else gave to this node" },
    { "--no-check", NULL, OPT_BOOL, AT_FIELD(is_unchecked), NULL, 0, 0, NULL, NULL },
    SERVING_READY_FD(AT_FIELD(ready_fd), "Pods are looked after"),
    LIMIT_OPTIONS(AT_FIELD(limits), AT_FIELD(all)),
    SERVING_LOG_LEVEL(AT_FIELD(log), "Logs", ""),
    SERVING_LOG_FORMAT(AT_FIELD(log)),
    COMMAND_HELP(AT_FIELD(is_help), "Help"),
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
    struct serving s;
    struct pod_socket socket;
    struct node *node;
    char *data;
    char socket_path[PATH_MAX];
    char name[NODE_NAME_BYTES];
};

/* ---- ready, and the end ---- */

static void on_started(void *ctx)
{
    struct role *r = ctx;
    struct json_out *out = serving_line(&r->s);
    struct err e;

    log_info("node.serve", KV("node", (const char *)r->name), KV("data", r->data),
             KV("socket", (const char *)r->socket_path));
    json_out_key(out, "node"), json_out_cstr(out, r->name);
    json_out_key(out, "pods"), json_out_cstr(out, r->socket_path);
    if (serving_ready(&r->s, &e) < 0)
        log_error("node.ready", KV("err", &e));
}

static void on_closed(void *ctx)
{
    struct role *r = ctx;

    ev_loop_stop(r->s.loop);
}

static void stop(void *ctx, bool is_again)
{
    struct role *r = ctx;

    if (is_again || !r->node) { /* asked twice: at once */
        r->s.exit_code = is_again ? 1 : 0;
        ev_loop_stop(r->s.loop);
        return;
    }
    node_close(r->node, on_closed, r);
}

/* ---- the beginning ---- */

/* Made here, since the socket is in it, before the engine looks whose it is. */
static int open_data(struct role *r, struct err *e)
{
    OWN(dir_done) struct dir dir = DIR_INIT;

    return dir_default(r->o->data, &r->data, e) < 0 ? -1 : dir_open(&dir, r->data, true, e);
}

static int open_socket(struct role *r, int *ret_fd, struct err *e)
{
    if (r->o->listen_fd != SERVING_NO_FD)
        return command_take_fd((int)r->o->listen_fd, ret_fd, e) < 0 ? err_wrap(e, "--pod-socket-fd")
                                                                    : 0;
    if (snprintf(r->socket_path, sizeof r->socket_path, r->o->socket ? "%s" : "%s/pods.sock",
                 r->o->socket ? r->o->socket : r->data) >= (int)sizeof r->socket_path)
        return err_set(e, ERR_USAGE, "--pod-socket: the path is too long");
    return pod_socket_open(&r->socket, r->socket_path, e) < 0
               ? -1
               : pod_socket_listen(&r->socket, ret_fd, e);
}

static int run(struct role *r, struct err *e)
{
    const struct serving_spec spec = {
        .stop_event = "node.stop", .stop = stop, .ctx = r, .ready_fd = r->o->ready_fd
    };
    struct node_config config = {
        .name = r->name, .is_scheduler = !r->o->is_no_scheduler, .started = on_started, .ctx = r
    };

    config.is_every_address = r->o->is_every_address;
    config.pods_max = r->o->max_pods;
    config.disk_floor_bytes = r->o->disk_floor_bytes;
    config.pod_port_min = (uint16_t)r->o->pod_port_min;
    if (open_data(r, e) < 0 || (!r->o->is_unchecked && sandbox_check(r->data, &r->o->all, e) < 0) ||
        serving_open(&r->s, &spec, e) < 0 ||
        serving_connect(&r->s, r->o->kubeconfig, NULL, e) < 0 ||
        open_socket(r, &config.listen_fd, e) < 0)
        return -1;
    config.limits = r->o->limits;
    config.all = r->o->all;
    config.client = r->s.client;
    config.data = r->data;
    if (node_open(r->s.loop, &config, &r->node, e) < 0)
        return -1;
    ev_loop_run(r->s.loop);
    return 0;
}

static void close_all(struct role *r)
{
    node_free(r->node);
    serving_close(&r->s);
    pod_socket_close(&r->socket);
    free(r->data);
}

static void choose_name(struct role *r)
{
    if (r->o->name)
        (void)snprintf(r->name, sizeof r->name, "%s", r->o->name);
    else
        node_own_name(r->name);
}

int node_command(int argc, char **argv)
{
    struct node_options o = { 0 };
    struct role r = { .o = &o, .socket = { .dir_fd = -1 } };
    struct err e;
    int code = command_parse(&node_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (serving_log_open(&o.log, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    choose_name(&r);
    if (run(&r, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    log_info("node.end", KV("code", r.s.exit_code));
    if (r.s.exit_code ==
        0) /* a second signal may have left work under way, which nobody waits for */
        close_all(&r);
    return r.s.exit_code;
}
