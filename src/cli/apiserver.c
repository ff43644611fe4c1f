/* silica apiserver: the Kubernetes API alone, for tests and for people who bring their own controllers. */
#include "cli/command.h"

#include "apiserver/apiserver.h"
#include "cli/pod_side.h"
#include "cli/pod_socket.h"
#include "cli/serving.h"

#include <string.h>

struct apiserver_options {
    const char *data, *listen, *token_file, *pod_backend, *pod_socket;
    struct serving_log log;
    struct opt_list sans;
    uint64_t ready_fd, max_connections, event_ttl_ms, max_events, namespace_objects,
        namespace_bytes;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct apiserver_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "where objects, keys and the kubeconfig are kept; made when it is not there", "Serving" },
    { "--listen", NULL, OPT_STR, AT_FIELD(listen), NULL, 0, 0, "HOST:PORT", "address to serve on; default: loopback, the port of last time, else 6443, else a free one" },
    SERVING_TLS_SAN(AT_FIELD(sans)),
    { "--token-auth-file", NULL, OPT_STR, AT_FIELD(token_file), NULL, 0, 0, "FILE", "bearer tokens: lines of token,user,uid[,\"group,group\"]" },
    { "--max-connections", NULL, OPT_U64, AT_FIELD(max_connections), "15000", 1, 1000000, "N", "connections at once; beyond it new ones are closed" },
    { "--event-ttl", NULL, OPT_MS, AT_FIELD(event_ttl_ms), "1h", 1000, 31536000000, "TIME", "how long an Event is kept after it last happened" },
    { "--max-events", NULL, OPT_U64, AT_FIELD(max_events), "10000", 100, 10000000, "N", "Events kept at most, about 2.5 KiB of memory each; the oldest go first, warnings last" },
    SERVING_NAMESPACE_MAX(AT_FIELD(namespace_objects), AT_FIELD(namespace_bytes)),
    { "--pod-backend", NULL, OPT_STR, AT_FIELD(pod_backend), NULL, 0, 0, "NAME", "what Pods are, for exec, attach, port-forward and logs: local-exec makes this machine all of them, for tests (SILICA_TEST=1); default: nothing runs Pods" },
    { "--pod-socket", NULL, OPT_STR, AT_FIELD(pod_socket), NULL, 0, 0, "PATH", "where `silica node` serves exec, attach, port-forward and logs of Pods" },
    SERVING_READY_FD(AT_FIELD(ready_fd), "it serves"),
    SERVING_LOG_LEVEL(AT_FIELD(log), "Logs", ""),
    SERVING_LOG_FORMAT(AT_FIELD(log)),
    COMMAND_HELP(AT_FIELD(is_help), "Help"),
};
/* clang-format on */

const struct opt_program apiserver_program = {
    .name = "silica apiserver",
    .usage = "--data DIR [options]",
    .example = "silica apiserver --data ~/.local/state/silica-api --listen 127.0.0.1:6443\n"
               "kubectl --kubeconfig ~/.local/state/silica-api/kubeconfig get namespaces",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Serves the Kubernetes API for sandboxes and the objects around them, from one process and one file.\n"
        "DIR/kubeconfig lets its owner in as administrator. TERM and INT end it; what was acknowledged is kept.",
};

static int tell_ready(struct serving *s, const struct apiserver *api, struct err *e)
{
    struct json_out *out = serving_line(s);

    json_out_key(out, "listen"), json_out_array_begin(out);
    json_out_cstr(out, api->address);
    json_out_array_end(out);
    json_out_key(out, "kubeconfig"), json_out_cstr(out, api->kubeconfig);
    log_info("api.listen", KV("addr", (const char *)api->address),
             KV("kubeconfig", (const char *)api->kubeconfig));
    return serving_ready(s, e);
}

static int open_pods(struct pod_socket *s, const char *path, struct apiserver_config *config,
                     struct err *e)
{
    if (pod_socket_open(s, path, e) < 0)
        return err_wrap(e, "--pod-socket");
    config->pods = &s->pods;
    return 0;
}

static int serve(const struct apiserver_options *o, struct apiserver_config *config, struct err *e)
{
    const struct serving_spec spec = { .stop_event = "api.stop",
                                       .ready_fd = o->ready_fd,
                                       .is_server = true };
    struct pod_socket node_socket = { .dir_fd = -1 };
    struct pod_side *side = NULL;
    struct apiserver *api = NULL;
    struct serving s;
    int rc = serving_open(&s, &spec, e);

    if (rc == 0 && o->pod_backend) {
        side = pod_side_new(s.loop, s.children, o->log.level);
        config->pods = pod_side_pods(side);
    }
    if (rc < 0 || (o->pod_socket && open_pods(&node_socket, o->pod_socket, config, e) < 0) ||
        apiserver_open(s.loop, config, &api, e) < 0 ||
        (side && pod_side_start(side, o->data, e) < 0) || tell_ready(&s, api, e) < 0)
        rc = -1;
    else
        ev_loop_run(s.loop);
    apiserver_close(api);
    pod_side_free(side);
    pod_socket_close(&node_socket);
    serving_close(&s);
    return rc;
}

/* What the table does not know; opens the log. */
static int check(const struct apiserver_options *o, struct err *e)
{
    if (!o->data)
        return err_set(e, ERR_USAGE, "no data directory given: --data DIR");
    if (o->pod_backend && strcmp(o->pod_backend, "local-exec") != 0)
        return err_set(e, ERR_USAGE, "--pod-backend: '%s' is not local-exec", o->pod_backend);
    if (o->pod_backend && o->pod_socket)
        return err_set(e, ERR_USAGE, "--pod-backend and --pod-socket are one or the other");
    if (o->pod_backend && pod_side_is_allowed(e) < 0)
        return -1;
    return serving_log_open(&o->log, e);
}

int apiserver_command(int argc, char **argv)
{
    struct apiserver_options o = { 0 };
    struct apiserver_config config;
    const char *sans[OPT_LIST_MAX + 1] = { NULL };
    struct err e;
    int code = command_parse(&apiserver_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (check(&o, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    for (size_t i = 0; i < o.sans.n; i++)
        sans[i] = o.sans.v[i];
    config =
        (struct apiserver_config){ .data = o.data,
                                   .listen = o.listen,
                                   .sans = sans,
                                   .token_file = o.token_file,
                                   .max_connections = (uint32_t)o.max_connections,
                                   .event_ttl_ms = o.event_ttl_ms,
                                   .events_max = o.max_events,
                                   .namespace_max = { o.namespace_objects, o.namespace_bytes } };
    if (serve(&o, &config, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    return 0;
}
