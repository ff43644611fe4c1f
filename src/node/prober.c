#include "node/prober_impl.h"

#include "node/env.h"
#include "sandbox/line.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum prober_kind prober_kind(const struct json *probe)
{
    static const struct {
        const char *key;
        enum prober_kind kind;
    } kinds[] = { { "exec", PROBER_EXEC },
                  { "httpGet", PROBER_HTTP },
                  { "tcpSocket", PROBER_TCP },
                  { "grpc", PROBER_GRPC } };

    EACH(k, kinds) {
        if (json_type(json_get(probe, k->key)) == JSON_OBJECT)
            return k->kind;
    }
    return PROBER_NONE;
}

uint16_t prober_port(const struct json *port, const struct json *container)
{
    const struct json *number = port;
    uint64_t n;

    if (json_type(port) == JSON_STRING) {
        number = NULL;
        JSON_EACH(p, json_get(container, "ports"))
        if (span_eq(json_str(json_get(p, "name")), json_str(port)))
            number = json_get(p, "containerPort");
    }
    return json_u64(number, &n) && n <= UINT16_MAX ? (uint16_t)n : 0;
}

struct net_addr prober_inside(uint16_t port)
{
    struct net_addr addr;
    struct sockaddr_in *in = (struct sockaddr_in *)&addr.sa;

    memset(&addr, 0, sizeof addr);
    *in = (struct sockaddr_in){ .sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    addr.len = sizeof *in;
    return addr;
}

/* ---- the end ---- */

void prober_decide(struct prober *p, const char *fmt, ...)
{
    va_list ap;

    if (p->is_decided)
        return;
    p->is_decided = true;
    p->is_success = !fmt;
    if (!fmt)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(p->message, sizeof p->message, fmt, ap);
    va_end(ap);
}

static void prober_free(void *obj)
{
    struct prober *p = obj;

    grpc_frame_done(&p->frame);
    buf_done(&p->output);
    free(p);
}

/* In a turn of its own: the client's events have returned. */
static void let_go(void *ctx)
{
    struct prober *p = ctx;

    http_client_free(p->client);
    ev_free_later(p->loop, p, prober_free);
}

void prober_end(struct prober *p)
{
    OWN(buf_done) struct buf clean = BUF_INIT(PROBER_MESSAGE_MAX_BYTES);

    prober_decide(p, "it ended without an answer");
    ev_timer_stop(p->loop, &p->deadline);
    line_clean_text(span_cstr(p->message), &clean); /* parts of it are the sandbox's words */
    ev_post(p->loop, &p->task, let_go, p);
    p->done(p->ctx, p->is_success, buf_cstr(&clean));
}

static void end_undone(void *ctx)
{
    prober_end(ctx);
}

/* What is under way ends soon, and then all of it. */
static void call_off(struct prober *p)
{
    if (p->call)
        http_call_cancel(p->call);
    if (p->dial)
        dial_cancel(p->dial);
    if (p->exec)
        sandbox_exec_cancel(p->exec);
}

void prober_cancel(struct prober *p)
{
    prober_decide(p, "it was called off");
    call_off(p);
}

static void on_deadline(void *ctx)
{
    struct prober *p = ctx;
    unsigned long long seconds = p->timeout_ms / 1000;

    switch (p->kind) {
    case PROBER_EXEC:
        prober_decide(p, "command timed out: \"%s\" timed out after %llus", p->name, seconds);
        break;
    case PROBER_HTTP:
        prober_decide(p,
                      "Get \"%s\": context deadline exceeded (Client.Timeout exceeded while "
                      "awaiting headers)",
                      p->name);
        break;
    case PROBER_TCP:
        prober_decide(p, "dial tcp %s: i/o timeout", p->name);
        break;
    case PROBER_GRPC:
        prober_decide(p,
                      "timeout: failed to connect service \"%s\" within %llus: context deadline "
                      "exceeded",
                      p->name, seconds);
        break;
    case PROBER_NONE:
        break;
    }
    call_off(p);
}

/* ---- a connection ---- */

static void on_dialed(void *ctx, struct dial_result *r, const struct err *e)
{
    struct prober *p = ctx;

    p->dial = NULL;
    if (r)
        own_fd_close(&r->fd);
    if (e)
        prober_decide(p, "dial tcp %s: %s", p->name, e->msg);
    else
        prober_decide(p, NULL);
    prober_end(p);
}

static bool begin_tcp(struct prober *p, const struct prober_spec *spec, int fd)
{
    const struct json *tcp = json_get(spec->probe, "tcpSocket");
    uint16_t port = prober_port(json_get(tcp, "port"), spec->container);
    struct net_addr addr = prober_inside(port);

    (void)snprintf(p->name, sizeof p->name, "%s:%u", spec->pod_ip ? spec->pod_ip : "", port);
    if (!port) {
        own_fd_close(&fd);
        prober_decide(p, "the probe's port is none of the container's");
        return false;
    }
    p->dial = dial_start(
        p->loop, &(struct dial_spec){ .addr = &addr, .fd = fd, .timeout_ms = p->timeout_ms + 1000 },
        on_dialed, p);
    return true;
}

/* ---- a command ---- */

static void on_output(void *ctx, enum sandbox_output which, struct span piece)
{
    struct prober *p = ctx;

    (void)which;
    (void)buf_add_capped(&p->output, piece);
}

static void on_ended(void *ctx, int code, const struct err *e)
{
    struct prober *p = ctx;

    p->exec = NULL;
    while (p->output.n && p->output.p[p->output.n - 1] == '\n')
        buf_truncate(&p->output, p->output.n - 1);
    if (e)
        prober_decide(p, "%s", e->msg);
    else if (code == 0)
        prober_decide(p, NULL);
    else
        prober_decide(p, "%s", buf_cstr(&p->output));
    prober_end(p);
}

static void on_started(void *ctx)
{
    (void)ctx;
}

static void on_drain(void *ctx, bool is_open)
{
    (void)ctx;
    (void)is_open;
}

static const struct sandbox_exec_events exec_events = { on_started, on_output, on_drain, on_ended };

/* The command's words. Its variables are those of the Pod's text that stand there as they are: the kubelet knows no others
 * of a container that runs. */
static int read_words(const struct prober_spec *spec, char ***ret, struct err *e)
{
    OWN(env_done) struct env env = { 0 };

    JSON_EACH(var, json_get(spec->container, "env"))
    {
        struct span value = json_str(json_get(var, "value"));

        if (value.n && env_set(&env, json_str(json_get(var, "name")), value, false, e) < 0)
            return -1;
    }
    return env_words(&env, json_get(json_get(spec->probe, "exec"), "command"), ret, e);
}

static void name_command(struct prober *p, char *const *words)
{
    size_t at = 0;

    for (; *words && at < sizeof p->name - 1; words++)
        at += (size_t)snprintf(p->name + at, sizeof p->name - at, "%s%s", at ? " " : "", *words);
}

static bool begin_exec(struct prober *p, const struct prober_spec *spec)
{
    OWN_MEM char **words = NULL;
    struct err e;

    if (read_words(spec, &words, &e) < 0) {
        prober_decide(p, "%s", e.msg);
        return false;
    }
    name_command(p, words);
    if (!spec->sandbox) {
        prober_decide(p, "the sandbox cannot be reached");
        return false;
    }
    if (sandbox_exec(spec->sandbox,
                     &(struct sandbox_exec_spec){
                         .argv = words, .cwd = spec->cwd, .events = &exec_events, .ctx = p },
                     &p->exec, &e) < 0) {
        prober_decide(p, "%s", e.msg);
        return false;
    }
    sandbox_exec_close_stdin(p->exec);
    return true;
}

/* ---- the beginning ---- */

static bool begin(struct prober *p, const struct prober_spec *spec)
{
    int fd = spec->fd > 0 ? spec->fd : -1;

    if (p->kind == PROBER_EXEC || p->kind == PROBER_NONE)
        own_fd_close(&fd);
    else if (fd < 0) {
        prober_decide(p, "the sandbox cannot be reached");
        return false;
    }
    switch (p->kind) {
    case PROBER_EXEC:
        return begin_exec(p, spec);
    case PROBER_TCP:
        return begin_tcp(p, spec, fd);
    case PROBER_HTTP:
        return prober_begin_http(p, spec, fd);
    case PROBER_GRPC:
        return prober_begin_grpc(p, spec, fd);
    case PROBER_NONE:
        break;
    }
    prober_decide(p, "the probe says nothing of what to ask");
    return false;
}

struct prober *prober_start(const struct prober_spec *spec)
{
    struct prober *p = NEW(struct prober);

    p->loop = spec->loop;
    p->kind = prober_kind(spec->probe);
    p->done = spec->done;
    p->ctx = spec->ctx;
    p->takes_any_status = spec->takes_any_status;
    p->timeout_ms = MAX(spec->timeout_ms, (uint64_t)1);
    p->health = -1;
    p->output = (struct buf)BUF_INIT(PROBER_OUTPUT_MAX_BYTES);
    grpc_frame_init(&p->frame, PROBER_OUTPUT_MAX_BYTES);
    if (begin(p, spec))
        ev_timer_start(p->loop, &p->deadline, p->timeout_ms, on_deadline, p);
    else
        ev_post(p->loop, &p->task, end_undone, p);
    return p;
}
