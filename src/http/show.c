#include "http/show.h"

#include "base/log.h"
#include "base/metric.h"
#include "http/guard.h"
#include "http/limits.h"
#include "http/serve.h"
#include "net/listen.h"

#include <string.h>

/* One address. */
struct door {
    struct http_server *http;
    struct net_listener *listener;
    char address[NET_ADDR_TEXT_BYTES]; /* "": closed */
};

struct show {
    struct ev_loop *loop;
    struct show_config config;
    struct door metrics, health;
};

static void refuse(struct http_exchange *x, int status, const char *text)
{
    http_answer(x, status, "text/plain; charset=utf-8", span_cstr(text));
}

static bool is_read(struct http_exchange *x)
{
    if (http_method_is(x, "GET") || http_method_is(x, "HEAD"))
        return true;
    http_answer_field(x, "allow", SPAN("GET, HEAD"));
    refuse(x, 405, "only GET and HEAD\n");
    return false;
}

/* On loopback every browser of the machine reaches it: figures have names of namespaces, and the debugger's are memory. */
static bool is_kept_out(const struct door *d, struct http_exchange *x)
{
    static const struct opt_list nothing;
    static const struct guard_names names = { .cluster_domain = "cluster.local",
                                              .allowed = &nothing };

    if (!net_addr_is_loopback(net_listener_addr(d->listener)) ||
        (guard_is_own_origin(http_req(x), &nothing) && guard_is_local_host(http_req(x), &names)))
        return false;
    refuse(x, 403, "this Origin or Host is not allowed on loopback\n");
    return true;
}

static void on_metrics(void *ctx, struct http_exchange *x)
{
    OWN(buf_done) struct buf text = BUF_INIT(SHOW_METRICS_MAX_BYTES);
    struct show *s = ctx;
    struct err e;

    if (is_kept_out(&s->metrics, x) || !is_read(x))
        return;
    if (!span_is(http_path(x), "/metrics") && s->config.other && s->config.other(s->config.ctx, x))
        return;
    if (!span_is(http_path(x), "/metrics")) {
        refuse(x, 404, "only /metrics is here\n");
        return;
    }
    if (metric_process(&text, &e) < 0 ||
        (s->config.write && s->config.write(s->config.ctx, &text, &e) < 0)) {
        log_warn("show.metrics", KV("err", &e));
        refuse(x, 500, "cannot write the metrics\n");
        return;
    }
    http_answer(x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_span(&text));
}

/* A ping: whoever waits for work to begin looks at the objects. */
static void on_health(void *ctx, struct http_exchange *x)
{
    struct span path = http_path(x);
    struct show *s = ctx;
    const char *why_not = NULL;

    if (!is_read(x))
        return;
    if (s->config.why_not_ready && span_starts(path, "/readyz"))
        why_not = s->config.why_not_ready(s->config.ctx);
    if (why_not)
        refuse(x, 503, why_not);
    else if (span_is(path, "/healthz") || span_is(path, "/readyz") ||
             span_is(path, "/healthz/ping") || span_is(path, "/readyz/ping"))
        refuse(x, 200, "ok");
    else
        refuse(x, 404, "only /healthz and /readyz are here\n");
}

static int open_door(struct show *s, struct door *d, const char *at,
                     void (*on_request)(void *ctx, struct http_exchange *x), struct err *e)
{
    const struct http_server_config http = { .on_request = on_request,
                                             .ctx = s,
                                             .head_max_bytes = HTTP_SERVER_HEAD_MAX_BYTES,
                                             .head_timeout_ms = HTTP_SERVER_HEAD_TIMEOUT_MS,
                                             .idle_timeout_ms = HTTP_SERVER_IDLE_TIMEOUT_MS,
                                             .stall_timeout_ms = HTTP_SERVER_STALL_TIMEOUT_MS,
                                             .max_connections = SHOW_CONNECTIONS_MAX };
    struct net_addr addr;

    if (!at || !*at || strcmp(at, "0") == 0)
        return 0;
    if (net_addr_parse(at, &addr, e) < 0)
        return -1;
    d->http = http_server_new(s->loop, &http);
    if (net_listen(s->loop, &addr, http_server_accept, d->http, &d->listener, e) < 0)
        return -1;
    (void)net_addr_text(net_listener_addr(d->listener), d->address);
    return 0;
}

int show_open(struct ev_loop *loop, const struct show_config *config, struct show **ret,
              struct err *e)
{
    struct show *s = NEW(struct show);

    s->loop = loop;
    s->config = *config;
    if (open_door(s, &s->metrics, config->metrics, on_metrics, e) < 0 ||
        open_door(s, &s->health, config->health, on_health, e) < 0) {
        show_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

static const char *address_of(const struct door *d)
{
    return *d->address ? d->address : NULL;
}

const char *show_metrics_address(const struct show *s)
{
    return address_of(&s->metrics);
}

const char *show_health_address(const struct show *s)
{
    return address_of(&s->health);
}

static void close_door(struct door *d)
{
    if (d->listener)
        net_listener_close(d->listener);
    if (d->http)
        http_server_free(d->http);
}

void show_close(struct show *s)
{
    if (!s)
        return;
    close_door(&s->metrics);
    close_door(&s->health);
    free(s);
}
