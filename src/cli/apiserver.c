/* silica apiserver: the Kubernetes API alone, for tests and for people who bring their own controllers. */
#include "cli/command.h"

#include "apiserver/apiserver.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/pod_side.h"
#include "cli/pod_socket.h"
#include "ev/child.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct apiserver_options {
    const char *data, *listen, *token_file, *pod_backend, *pod_socket, *log_level, *log_format;
    struct opt_list sans;
    uint64_t ready_fd, max_connections, event_ttl_ms, max_events;
    bool is_help;
};

#define AT_FIELD(field) offsetof(struct apiserver_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--data", "SILICA_DATA", OPT_STR, AT_FIELD(data), NULL, 0, 0, "DIR", "where objects, keys and the kubeconfig are kept; made when it is not there", "Serving" },
    { "--listen", NULL, OPT_STR, AT_FIELD(listen), NULL, 0, 0, "HOST:PORT", "address to serve on; default: loopback, the port of last time, else 6443, else a free one" },
    { "--tls-san", NULL, OPT_LIST, AT_FIELD(sans), NULL, 0, 0, "NAME", "another name or address in the server's certificate; may be repeated" },
    { "--token-auth-file", NULL, OPT_STR, AT_FIELD(token_file), NULL, 0, 0, "FILE", "bearer tokens: lines of token,user,uid[,\"group,group\"]" },
    { "--max-connections", NULL, OPT_U64, AT_FIELD(max_connections), "15000", 1, 1000000, "N", "connections at once; beyond it new ones are closed" },
    { "--event-ttl", NULL, OPT_MS, AT_FIELD(event_ttl_ms), "1h", 1000, 31536000000, "TIME", "how long an Event is kept after it last happened" },
    { "--max-events", NULL, OPT_U64, AT_FIELD(max_events), "50000", 100, 10000000, "N", "Events kept at most; the oldest go first" },
    { "--pod-backend", NULL, OPT_STR, AT_FIELD(pod_backend), NULL, 0, 0, "NAME", "what Pods are, for exec, attach, port-forward and logs: local-exec makes this machine all of them, for tests (SILICA_TEST=1); default: nothing runs Pods" },
    { "--pod-socket", NULL, OPT_STR, AT_FIELD(pod_socket), NULL, 0, 0, "PATH", "where `silica node` serves exec, attach, port-forward and logs of Pods" },
    { "--ready-fd", NULL, OPT_U64, AT_FIELD(ready_fd), "18446744073709551615", 0, 0, "N", "write one line of JSON to this descriptor when it serves" },
    { "--log-level", NULL, OPT_STR, AT_FIELD(log_level), "info", 0, 0, "LEVEL", "debug, info, warn or error", "Logs" },
    { "--log-format", NULL, OPT_STR, AT_FIELD(log_format), "text", 0, 0, "FORMAT", "text or json" },
    { "--help", NULL, OPT_BOOL, AT_FIELD(is_help), NULL, 0, 0, NULL, "this text", "Help", 'h' },
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

static int set_up_log(const struct apiserver_options *o, struct err *e)
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

static int tell_ready(const struct apiserver *s, const struct apiserver_options *o, struct err *e)
{
    OWN(buf_done) struct buf line = BUF_INIT(16384);
    struct json_out out;

    json_out_init(&out, &line, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "listen"), json_out_array_begin(&out);
    json_out_cstr(&out, s->address);
    json_out_array_end(&out);
    json_out_key(&out, "kubeconfig"), json_out_cstr(&out, s->kubeconfig);
    json_out_object_end(&out);
    if (json_out_end(&out, e) < 0 || buf_addc(&line, '\n', e) < 0)
        return -1;
    log_info("api.listen", KV("addr", (const char *)s->address),
             KV("kubeconfig", (const char *)s->kubeconfig));
    if (o->ready_fd == UINT64_MAX)
        return 0;
    if (fd_write_all((int)o->ready_fd, buf_span(&line), e) < 0)
        return err_wrap(e, "--ready-fd %llu", (unsigned long long)o->ready_fd);
    (void)close((int)o->ready_fd);
    return 0;
}

static void on_signal(void *ctx, int number)
{
    log_info("api.stop", KV("signal", number));
    ev_loop_stop(ctx);
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
    static const int signals[] = { SIGTERM, SIGINT, 0 };
    struct ev_children *children = NULL;
    struct pod_socket node_socket = { .dir_fd = -1 };
    struct pod_side *side = NULL;
    struct apiserver *s = NULL;
    struct ev_loop *loop;
    int rc = -1;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)mallopt(M_ARENA_MAX, 2);
    if (o->ready_fd != UINT64_MAX)
        (void)fcntl((int)o->ready_fd, F_SETFD, FD_CLOEXEC);
    if (ev_loop_new(&loop, e) < 0)
        return -1;
    if (ev_children_open(loop, signals, on_signal, loop, &children, e) == 0) {
        if (o->pod_backend) {
            side = pod_side_new(loop, children, o->log_level);
            config->pods = pod_side_pods(side);
        }
        if ((!o->pod_socket || open_pods(&node_socket, o->pod_socket, config, e) == 0) &&
            apiserver_open(loop, config, &s, e) == 0 &&
            (!side || pod_side_start(side, o->data, e) == 0) && tell_ready(s, o, e) == 0) {
            ev_loop_run(loop);
            rc = 0;
        }
    }
    apiserver_close(s);
    pod_side_free(side);
    pod_socket_close(&node_socket);
    if (children)
        ev_children_close(children);
    ev_loop_free(loop);
    return rc;
}

int apiserver_command(int argc, char **argv)
{
    struct apiserver_options o = { 0 };
    struct apiserver_config config;
    const char *sans[OPT_LIST_MAX + 1] = { NULL };
    struct err e;
    int rest;

    if (opt_parse(&apiserver_program, argc, argv, &o, &rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.is_help)
        return command_show(opt_help, &apiserver_program);
    if (rest < argc)
        (void)err_set(&e, ERR_USAGE, "unexpected argument '%s'", argv[rest]);
    else if (!o.data)
        (void)err_set(&e, ERR_USAGE, "no data directory given: --data DIR");
    else if (o.pod_backend && strcmp(o.pod_backend, "local-exec") != 0)
        (void)err_set(&e, ERR_USAGE, "--pod-backend: '%s' is not local-exec", o.pod_backend);
    else if (o.pod_backend && o.pod_socket)
        (void)err_set(&e, ERR_USAGE, "--pod-backend and --pod-socket are one or the other");
    else if (!o.pod_backend || pod_side_is_allowed(&e) == 0)
        rest = -1;
    if (rest >= 0 || set_up_log(&o, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    for (size_t i = 0; i < o.sans.n; i++)
        sans[i] = o.sans.v[i];
    config = (struct apiserver_config){ .data = o.data,
                                        .listen = o.listen,
                                        .sans = sans,
                                        .token_file = o.token_file,
                                        .max_connections = (uint32_t)o.max_connections,
                                        .event_ttl_ms = o.event_ttl_ms,
                                        .events_max = o.max_events };
    if (serve(&o, &config, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    return 0;
}
