/* Probes that are HTTP requests: httpGet, and the health service of gRPC. */
#include "node/prober_impl.h"

#include "base/str.h"
#include "http/grpc.h"
#include "http/limits.h"
#include "proto/pb.h"

#include <stdio.h>
#include <string.h>

#define HEALTH_CHECK   "/grpc.health.v1.Health/Check"
#define PATH_MAX_BYTES 4096
/* What may stand in a path and query as it is; the rest is encoded. */
#define PATH_SAFE "/?&=:@!$'()*+,;%[]#"

/* A request that could not be written: the Pod's text does not fit into one. */
static bool refuse(struct prober *p, int fd, const struct err *e)
{
    own_fd_close(&fd);
    prober_decide(p, "%s", e->msg);
    return false;
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct prober *p = ctx;

    (void)trailers;
    p->call = NULL;
    if (e)
        prober_decide(p, "Get \"%s\": %s", p->name, e->msg);
    prober_end(p);
}

/* ---- httpGet ---- */

/* The status is all that counts: nobody waits for the rest. A redirect is not followed: it shows that somebody serves. */
static void on_http_head(void *ctx, const struct http_head *head)
{
    struct prober *p = ctx;

    if (p->takes_any_status || (head->status >= 200 && head->status < 400))
        prober_decide(p, NULL);
    else
        prober_decide(p, "HTTP probe failed with statuscode: %d", head->status);
    http_call_cancel(p->call);
}

static const struct http_call_events http_events = { on_http_head, NULL, NULL, on_done, NULL };

static int add_fields(const struct json *get, struct http_head *head, struct err *e)
{
    JSON_EACH(field, json_get(get, "httpHeaders"))
    {
        struct span name = json_str(json_get(field, "name")),
                    value = json_str(json_get(field, "value"));

        if (!http_name_is_valid(name) || !http_value_is_valid(value))
            return err_set(e, ERR_INVALID, "header '%.*s' cannot be sent", SPAN_ARG(name));
        if (http_head_add(head, name, value, e) < 0)
            return -1;
    }
    if (!http_head_get(head, "user-agent").p &&
        http_head_add(head, SPAN("user-agent"), SPAN("kube-probe/silica"), e) < 0)
        return -1;
    if (!http_head_get(head, "accept").p && http_head_add(head, SPAN("accept"), SPAN("*/*"), e) < 0)
        return -1;
    return http_head_add(head, SPAN("connection"), SPAN("close"), e);
}

static int read_path(const struct json *get, struct buf *out, struct err *e)
{
    struct span path = json_str(json_get(get, "path"));

    if ((!path.n || path.p[0] != '/') && buf_addc(out, '/', e) < 0)
        return -1;
    return str_percent_encode(path, PATH_SAFE, out, e);
}

static bool is_https(const struct json *get)
{
    return span_is(json_str(json_get(get, "scheme")), "HTTPS");
}

bool prober_begin_http(struct prober *p, const struct prober_spec *spec, int fd)
{
    const struct json *get = json_get(spec->probe, "httpGet");
    uint16_t port = prober_port(json_get(get, "port"), spec->container);
    const char *host = json_cstr(json_get(get, "host"));
    OWN(buf_done) struct buf path = BUF_INIT(PATH_MAX_BYTES);
    OWN(http_head_done) struct http_head head;
    struct net_addr addr = prober_inside(port);
    struct err e;

    http_head_init(&head, HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
    if (!host || !*host)
        host = spec->pod_ip && *spec->pod_ip ? spec->pod_ip : "localhost";
    if (!port && err_set(&e, ERR_INVALID, "the probe's port is none of the container's") < 0)
        return refuse(p, fd, &e);
    if (is_https(get) && !spec->maker && err_set(&e, ERR_UNSUPPORTED, "HTTPS is not served") < 0)
        return refuse(p, fd, &e);
    if (read_path(get, &path, &e) < 0 ||
        http_head_set_request(&head, SPAN("GET"), buf_span(&path), &e) < 0 ||
        add_fields(get, &head, &e) < 0)
        return refuse(p, fd, &e);
    (void)snprintf(p->name, sizeof p->name, "%s://%s:%u%.200s", is_https(get) ? "https" : "http",
                   host, port, buf_cstr(&path));
    p->client = http_client_new(p->loop, &(struct http_client_config){ .idle_max = 1 });
    p->call = http_call_start(
        p->client, &(struct http_call_spec){ .to = { .host = host,
                                                     .port = port,
                                                     .addr = &addr,
                                                     .maker = is_https(get) ? spec->maker : NULL,
                                                     .version = HTTP_V1,
                                                     .fd = fd },
                                             .head = &head,
                                             .connect_ms = p->timeout_ms + 1000,
                                             .events = &http_events,
                                             .ctx = p });
    return true;
}

/* ---- gRPC ---- */

/* The answer: its first field is the service's health. */
static void read_answer(struct prober *p, struct span msg)
{
    struct pb_field f;
    struct err ignored;

    p->health = 0;
    while (pb_next(&msg, &f, &ignored) > 0)
        if (f.number == 1 && f.wire == 0)
            p->health = f.varint <= 3 ? (int)f.varint : 0;
}

static void on_grpc_data(void *ctx, struct span bytes)
{
    struct prober *p = ctx;
    struct err e;

    while (bytes.n && p->health < 0) {
        size_t used = 0;
        enum feed got = grpc_frame_feed(&p->frame, bytes, &used, &e);

        if (got == FEED_BAD) {
            prober_decide(p, "error: health rpc failed: %s", e.msg);
            http_call_cancel(p->call);
            return;
        }
        bytes = span_skip(bytes, used);
        if (got == FEED_DONE)
            read_answer(p, buf_span(&p->frame.msg));
    }
}

static void decide_grpc(struct prober *p, const struct http_head *trailers, const struct err *e)
{
    static const char *const names[] = { "UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN" };
    struct err refusal;

    if (e)
        prober_decide(p, "error: health rpc failed: %s", e->msg);
    else if (trailers && grpc_status_err(trailers, &refusal) < 0)
        prober_decide(p, "error: health rpc failed: %s", refusal.msg);
    else if (p->health == 1)
        prober_decide(p, NULL);
    else
        prober_decide(p, "service unhealthy (responded with \"%s\")", names[MAX(p->health, 0)]);
}

static void on_grpc_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct prober *p = ctx;

    p->call = NULL;
    decide_grpc(p, trailers, e);
    prober_end(p);
}

/* One that is refused at once has its status in its head. */
static void on_grpc_head(void *ctx, const struct http_head *head)
{
    struct prober *p = ctx;
    struct err e;

    if ((http_head_get(head, "grpc-status").p || head->status != 200) &&
        grpc_status_err(head, &e) < 0)
        prober_decide(p, "error: health rpc failed: %s", e.msg);
}

static const struct http_call_events grpc_events = { on_grpc_head, on_grpc_data, NULL, on_grpc_done,
                                                     NULL };

/* HealthCheckRequest: the service's name as field 1. */
static int write_request(const struct json *grpc, struct buf *out, struct err *e)
{
    struct span service = json_str(json_get(grpc, "service"));
    OWN(buf_done) struct buf msg = BUF_INIT(256);

    if (service.n > 127)
        return err_set(e, ERR_LIMIT, "the service's name is too long");
    if (service.n && (buf_addc(&msg, 0x0a, e) < 0 || buf_addc(&msg, (uint8_t)service.n, e) < 0 ||
                      buf_add(&msg, service, e) < 0))
        return -1;
    return grpc_frame_add(out, buf_span(&msg), e);
}

bool prober_begin_grpc(struct prober *p, const struct prober_spec *spec, int fd)
{
    const struct json *grpc = json_get(spec->probe, "grpc");
    uint16_t port = prober_port(json_get(grpc, "port"), spec->container);
    OWN(buf_done) struct buf body = BUF_INIT(256);
    OWN(http_head_done) struct http_head head;
    struct net_addr addr = prober_inside(port);
    struct err e;

    http_head_init(&head, HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
    (void)snprintf(p->name, sizeof p->name, "%s:%u", spec->pod_ip ? spec->pod_ip : "", port);
    if (!port && err_set(&e, ERR_INVALID, "the probe's port is none of the container's") < 0)
        return refuse(p, fd, &e);
    if (grpc_request_head(&head, span_cstr(p->name), SPAN(HEALTH_CHECK), p->timeout_ms, &e) < 0 ||
        write_request(grpc, &body, &e) < 0)
        return refuse(p, fd, &e);
    p->client = http_client_new(p->loop, &(struct http_client_config){ .idle_max = 1 });
    p->call =
        http_call_start(p->client, &(struct http_call_spec){ .to = { .host = "localhost",
                                                                     .port = port,
                                                                     .addr = &addr,
                                                                     .version = HTTP_V2,
                                                                     .fd = fd },
                                                             .head = &head,
                                                             .body = buf_span(&body),
                                                             .connect_ms = p->timeout_ms + 1000,
                                                             .events = &grpc_events,
                                                             .ctx = p });
    return true;
}
