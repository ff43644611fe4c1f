/* The supervisor of `silica up`: starts the parts one after the other, brings back those that die, ends them in order. */
#include "cli/up.h"

#include "cli/command.h"
#include "cli/sandbox_check.h"
#include "ev/timer.h"
#include "node/node.h"
#include "up/gate.h"
#include "up/limits.h"
#include "up/names.h"
#include "up/part.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

/* Which ports were chosen, in the data directory. */
#define API_PORT_FILE    "port"
#define ROUTER_PORT_FILE "router-port"

#define PARTS_MAX   4
#define PATIENCE_MS 10000 /* for a part to end; then it is killed, which loses nothing */

/* The first part is started alone: the others need it. They end the other way round, one by one. */
struct up {
    const struct up_options *o;
    struct place *place;
    struct serving s;
    struct part *parts[PARTS_MAX];
    size_t count;
    struct gate *gate; /* one more router, while somebody wants a Gateway */
    const char *router_argv[PART_ARGS_MAX + 1]; /* of both */
    int api_fd, router_fd, parts_fd,
        node_fd; /* held here, so that callers wait while a part is away */
    char node_config[4200], router_config[4200], router_socket[4200], node_sockets[4200],
        router_host[128], router_workers[16], disk_floor[24], pod_port_min[8], max_pods[24],
        node_name[NODE_NAME_BYTES];
    struct up_addresses addresses;
    bool is_ready, is_stopping;
    struct err e; /* why it stops */
    bool has_failed;
    time_t started;
};

/* ---- what runs, for the other commands ---- */

static void put_part(struct json_out *out, const struct part *p)
{
    json_out_object_begin(out);
    json_out_key(out, "name"), json_out_cstr(out, part_name(p));
    json_out_key(out, "state"), json_out_cstr(out, part_state_name(part_state(p)));
    json_out_key(out, "pid"), json_out_i64(out, part_pid(p));
    json_out_key(out, "restarts"), json_out_u64(out, part_restarts(p));
    json_out_object_end(out);
}

static void write_info(struct up *u)
{
    OWN(buf_done) struct buf text = BUF_INIT(UP_FILE_MAX_BYTES);
    struct json_out out;
    struct err e;

    json_out_init(&out, &text, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "pid"), json_out_i64(&out, getpid());
    json_out_key(&out, "version"), json_out_cstr(&out, SILICA_VERSION);
    json_out_key(&out, "started"), json_out_i64(&out, u->started);
    json_out_key(&out, "ready"), json_out_bool(&out, u->is_ready);
    up_add_addresses(&u->addresses, &out);
    json_out_key(&out, "disk_floor"), json_out_u64(&out, u->o->disk_floor_bytes);
    json_out_key(&out, "gateway");
    json_out_cstr(&out, u->gate ? gate_address(u->gate) : NULL);
    json_out_key(&out, "parts"), json_out_array_begin(&out);
    for (size_t i = 0; i < u->count; i++)
        put_part(&out, u->parts[i]);
    if (u->gate && gate_part(u->gate))
        put_part(&out, gate_part(u->gate));
    json_out_array_end(&out);
    json_out_object_end(&out);
    if (json_out_end(&out, &e) < 0 || place_write(u->place, buf_span(&text), &e) < 0)
        log_warn("up.info", KV("err", &e));
}

static int tell_ready(struct up *u, struct err *e)
{
    if (place_remember(u->place, API_PORT_FILE, u->api_fd, e) < 0 ||
        (u->router_fd >= 0 && place_remember(u->place, ROUTER_PORT_FILE, u->router_fd, e) < 0))
        return -1;
    log_info("up.ready", KV("addr", (const char *)u->addresses.listen));
    if (!u->o->is_child)
        up_greet(&u->addresses, u->o->data, false);
    up_add_addresses(&u->addresses, serving_line(&u->s));
    return serving_ready(&u->s, e);
}

/* ---- the parts ---- */

/* Those that were started last go first, one at a time. */
static void stop_next(struct up *u)
{
    if (u->gate && gate_part(u->gate)) {
        gate_stop(u->gate, PATIENCE_MS);
        return; /* gate_changed goes on */
    }
    for (size_t i = u->count; i-- > 0;) {
        if (part_state(u->parts[i]) == PART_ENDED || part_state(u->parts[i]) == PART_ABSENT)
            continue;
        part_stop(u->parts[i], PATIENCE_MS);
        return; /* on_change goes on */
    }
    ev_loop_stop(u->s.loop);
}

static void stop(struct up *u, const struct err *why)
{
    if (why && !u->has_failed) {
        u->has_failed = true;
        u->e = *why;
    }
    if (u->is_stopping)
        return;
    u->is_stopping = true;
    stop_next(u);
}

/* Control is told, which says so at the Gateways. */
static void gate_changed(void *ctx)
{
    struct up *u = ctx;
    pid_t pid = part_pid(u->parts[0]);

    write_info(u);
    if (u->is_stopping && !gate_part(u->gate))
        stop_next(u);
    else if (!u->is_stopping && pid > 0)
        (void)kill(pid, UP_SIGNAL_GATE);
}

static void start_more(struct up *u)
{
    bool is_ready = true;
    struct err e;

    for (size_t i = 0; i < u->count; i++) {
        if (part_state(u->parts[i]) == PART_ABSENT)
            part_start(u->parts[i]);
        is_ready = is_ready && part_has_served(u->parts[i]);
        if (i == 0 && !is_ready)
            return;
    }
    if (u->is_ready || !is_ready || u->is_stopping)
        return;
    u->is_ready = true;
    write_info(u);
    if (tell_ready(u, &e) < 0)
        stop(u, &e);
}

/* It said why on its log, as a command does: its last words are the user's message. */
static void give_up(struct up *u, const struct part *p)
{
    struct span words = span_trim(part_last_words(p)), line = SPAN_NONE, hint = SPAN_NONE, rest;
    struct err e;

    for (rest = words; span_cut(&rest, '\n', &line);) {
        if (span_starts(line, "hint: "))
            hint = span_skip(line, 6);
        else if (span_starts(line, "silica: "))
            words = span_skip(line, 8);
    }
    (void)err_set(&e, ERR_UNAVAILABLE, "the %s could not start: %.*s", part_name(p), (int)words.n,
                  (const char *)words.p);
    if (hint.n)
        err_hint(&e, "%.*s", (int)hint.n, (const char *)hint.p);
    stop(u, &e);
}

static void on_change(void *ctx, struct part *p)
{
    struct up *u = ctx;

    write_info(u);
    if (u->is_stopping) {
        if (part_state(p) == PART_ENDED)
            stop_next(u);
        return;
    }
    /* One that never served and ended by itself would do so again; one that was killed is worth another try. */
    if (part_state(p) == PART_WAITING && !part_has_served(p) && WIFEXITED(part_wait_status(p)))
        give_up(u, p);
}

static void on_line(void *ctx, struct part *p, struct span line)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct up *u = ctx;
    bool is_gate_wanted;
    const char *pool;
    int64_t ready = 0;
    struct err e;

    if (u->is_stopping)
        return;
    if (json_parse(line, NULL, &doc, &e) < 0) {
        log_warn("up.line", KV("part", part_name(p)), KV("err", &e));
        return;
    }
    if (json_bool(json_get(json_doc_root(doc), "gateway"), &is_gate_wanted)) {
        if (u->gate)
            gate_want(u->gate, is_gate_wanted);
        return;
    }
    pool = json_cstr(json_get(json_doc_root(doc), "warm"));
    if (!pool) {
        start_more(u);
        return;
    }
    (void)json_i64(json_get(json_doc_root(doc), "ready"), &ready);
    log_info("up.warm", KV("pool", pool), KV("ready", ready));
    if (!u->o->is_child) {
        printf("%s is warm: %lld sandboxes are ready\n", pool, (long long)ready);
        (void)fflush(stdout);
    }
}

static int add_part(struct up *u, const char *name, int listen_fd, const char *const *argv,
                    struct err *e)
{
    struct part_spec spec = { .name = name,
                              .argv = argv,
                              .listen_fd = listen_fd,
                              .is_loud = u->o->is_loud,
                              .on_line = on_line,
                              .on_change = on_change,
                              .ctx = u };

    if (place_open_log(u->place, name, &spec.log_fd, e) < 0)
        return -1;
    assert(u->count < PARTS_MAX);
    u->parts[u->count++] = part_new(u->s.loop, u->s.children, &spec);
    return 0;
}

static int add_control(struct up *u, struct err *e)
{
    const char *argv[PART_ARGS_MAX + 1] = { "control",      "--data",     u->place->path,
                                            "--node-name",  u->node_name, "--log-level",
                                            u->o->log.level };
    char welcome[PATH_MAX], objects[24], bytes[24];
    size_t n = 7;

    (void)snprintf(objects, sizeof objects, "%llu", (unsigned long long)u->o->namespace_objects);
    (void)snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)u->o->namespace_bytes);
    (void)snprintf(u->max_pods, sizeof u->max_pods, "%llu", (unsigned long long)u->o->max_pods);
    argv[n++] = "--max-pods", argv[n++] = u->max_pods;
    argv[n++] = "--namespace-max-objects", argv[n++] = objects;
    argv[n++] = "--namespace-max-bytes", argv[n++] = bytes;

    if (u->o->file.templates || u->o->file.pools) {
        (void)snprintf(welcome, sizeof welcome, "%s/" UP_WELCOME_FILE, u->place->path);
        argv[n++] = "--welcome";
        argv[n++] = welcome;
    }
    for (size_t i = 0; i < u->o->sans.n && n + 2 < LEN(argv); i++) {
        argv[n++] = "--tls-san";
        argv[n++] = u->o->sans.v[i];
    }
    return add_part(u, "control", u->api_fd, argv, e);
}

static int add_node(struct up *u, struct err *e)
{
    const char *argv[PART_ARGS_MAX + 1] = { "node",
                                            "--kubeconfig",
                                            u->node_config,
                                            "--data",
                                            u->place->path,
                                            "--pod-socket-fd",
                                            "0",
                                            "--ready-fd",
                                            "1",
                                            "--node-name",
                                            u->node_name,
                                            "--no-scheduler",
                                            "--no-check",
                                            "--log-level",
                                            u->o->log.level,
                                            "--pod-port-min",
                                            u->pod_port_min,
                                            "--max-pods",
                                            u->max_pods };
    const struct {
        const char *flag;
        uint64_t n;
    } limits[] = { { "--pids", u->o->limits.pids },
                   { "--memory", u->o->limits.memory_bytes },
                   { "--total-pids", u->o->all.pids },
                   { "--total-memory", u->o->all.memory_bytes },
                   { "--disk-floor", u->o->disk_floor_bytes } };
    char numbers[LEN(limits)][24];
    size_t n = 19;

    if (u->o->is_every_address)
        argv[n++] = "--pod-addresses";

    (void)snprintf(u->pod_port_min, sizeof u->pod_port_min, "%u", (unsigned)u->o->pod_port_min);
    for (size_t i = 0; i < LEN(limits); i++) {
        if (!limits[i].n)
            continue;
        (void)snprintf(numbers[i], sizeof numbers[i], "%llu", (unsigned long long)limits[i].n);
        argv[n++] = limits[i].flag;
        argv[n++] = numbers[i];
    }
    return add_part(u, "node", u->node_fd, argv, e);
}

static int add_router(struct up *u, struct err *e)
{
    const char *argv[PART_ARGS_MAX + 1] = { "router",
                                            "--kubeconfig",
                                            u->router_config,
                                            "--listen-fd",
                                            "0",
                                            "--ready-fd",
                                            "1",
                                            "--metrics-listen",
                                            "0",
                                            "--health-listen",
                                            "0",
                                            "--proxy-timeout",
                                            "3600s",
                                            "--zap-encoder",
                                            "console",
                                            "--zap-log-level",
                                            strcmp(u->o->log.level, "warn") == 0
                                                ? "error"
                                                : u->o->log.level };
    const struct gate_spec gate = { .place = u->place,
                                    .argv = u->router_argv,
                                    .is_loud = u->o->is_loud,
                                    .changed = gate_changed,
                                    .ctx = u };
    size_t n = 0;

    (void)snprintf(u->disk_floor, sizeof u->disk_floor, "%llu",
                   (unsigned long long)u->o->disk_floor_bytes);
    (void)snprintf(u->router_workers, sizeof u->router_workers, "%u", u->o->router_worker_count);
    while (argv[n])
        n++;
    for (size_t i = 0; i < u->o->allow_hosts.n && n + 13 < LEN(argv); i++) {
        argv[n++] = "--allow-host";
        argv[n++] = u->o->allow_hosts.v[i];
    }
    argv[n++] = "--pod-sockets";
    argv[n++] = u->node_sockets;
    memcpy(u->router_argv, argv, sizeof argv); /* tunnels are the first one's */
    argv[n++] = "--status-page";
    argv[n++] = "--status-disk";
    argv[n++] = u->place->path;
    argv[n++] = "--status-disk-floor";
    argv[n++] = u->disk_floor;
    argv[n++] = "--tunnel-socket";
    argv[n++] = u->router_socket;
    argv[n++] = "--workers";
    argv[n++] = u->router_workers;
    u->gate = gate_new(u->s.loop, u->s.children, &gate);
    return add_part(u, "router", u->router_fd, argv, e);
}

static int add_parts(struct up *u, struct err *e)
{
    const char *const parts[] = {
        "parts",       "--data",        u->place->path,
        "--log-level", u->o->log.level, u->router_fd >= 0 ? "--router" : NULL,
        NULL
    };

    return add_control(u, e) < 0 || add_part(u, "parts", u->parts_fd, parts, e) < 0 ||
                   add_node(u, e) < 0 || (u->router_fd >= 0 && add_router(u, e) < 0)
               ? -1
               : 0;
}

/* ---- life ---- */

static void on_stop(void *ctx, bool is_again)
{
    (void)is_again; /* patience with the parts has an end of its own */
    stop(ctx, NULL);
}

static int listen_all(struct up *u, struct err *e)
{
    const struct place_port api = { u->o->listen, API_PORT_FILE, "--listen", 6443 };
    const struct place_port router = { u->o->router_listen, ROUTER_PORT_FILE, "--router-listen",
                                       8090 };
    const char *path = u->place->path;
    int dir_fd = u->place->dir.fd;

    if (place_listen(u->place, &api, &u->api_fd, e) < 0 ||
        place_address(u->api_fd, u->addresses.listen, sizeof u->addresses.listen, e) < 0)
        return err_wrap(e, "the API server");
    if (dir_listen(dir_fd, PARTS_SOCKET, SOCK_STREAM, &u->parts_fd, e) < 0 ||
        dir_listen(dir_fd, NODE_SOCKET, SOCK_STREAM, &u->node_fd, e) < 0)
        return -1;
    (void)snprintf(u->addresses.kubeconfig, sizeof u->addresses.kubeconfig, "%s/kubeconfig", path);
    node_own_name(u->node_name);
    (void)snprintf(u->node_config, sizeof u->node_config, "%s/node.kubeconfig", path);
    (void)snprintf(u->router_config, sizeof u->router_config, "%s/router.kubeconfig", path);
    (void)snprintf(u->router_socket, sizeof u->router_socket, "%s/" ROUTER_SOCKET, path);
    (void)snprintf(u->node_sockets, sizeof u->node_sockets, "%s/" NODE_SOCKETS_FILE, path);
    if (!command_is_known("router"))
        return 0;
    if (place_listen(u->place, &router, &u->router_fd, e) < 0 ||
        place_address(u->router_fd, u->router_host, sizeof u->router_host, e) < 0)
        return err_wrap(e, "the router");
    (void)snprintf(u->addresses.router, sizeof u->addresses.router, "http://%s", u->router_host);
    return 0;
}

static int serve(struct up *u, struct err *e)
{
    const struct serving_spec spec = { .stop_event = "up.stop",
                                       .stop = on_stop,
                                       .ctx = u,
                                       .ready_fd = u->o->ready_fd,
                                       .ends_with_hangup = true };
    struct err check;

    if (serving_open(&u->s, &spec, e) < 0 || listen_all(u, e) < 0 || add_parts(u, e) < 0)
        return -1;
    start_more(u);
    /* Here, while control opens its store: nobody waits for a loop that has nothing to do yet. The other parts are started
     * after it, so a failure ends before any of them. */
    if (sandbox_check(u->place->path, &u->o->all, &check) < 0)
        stop(u, &check);
    ev_loop_run(u->s.loop);
    if (!u->has_failed)
        return 0;
    *e = u->e;
    return -1;
}

int up_run(const struct up_options *o, struct place *place, struct err *e)
{
    struct up u = { .o = o,
                    .place = place,
                    .api_fd = -1,
                    .router_fd = -1,
                    .parts_fd = -1,
                    .node_fd = -1,
                    .started = time(NULL) };
    int rc;

    rc = serve(&u, e);
    gate_free(u.gate);
    for (size_t i = 0; i < u.count; i++)
        part_free(u.parts[i]);
    own_fd_close(&u.api_fd);
    own_fd_close(&u.router_fd);
    own_fd_close(&u.parts_fd);
    own_fd_close(&u.node_fd);
    serving_close(&u.s);
    return rc;
}
