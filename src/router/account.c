#include "router/account.h"

#include "base/log.h"
#include "trace/trace.h"

#include <string.h>

void account_begin(struct account *a, const struct http_exchange *x)
{
    struct span method = http_method(x);

    memcpy(a->method, method.p, MIN(method.n, sizeof a->method - 1));
}

void account_open(struct account *a, const struct http_exchange *x, const struct caller *caller,
                  struct tracer *tracer)
{
    a->path = span_dup(http_path(x));
    a->agent = span_dup(http_field(x, "user-agent"));
    a->id = span_dup(http_field(x, "x-sandbox-id"));
    a->namespace = span_dup(http_field(x, "x-sandbox-namespace"));
    (void)net_addr_ip_text(http_peer(x), a->client);
    if (caller)
        a->user = own_strdup(caller->user);
    if (tracer)
        a->span = trace_begin(tracer, http_req(x));
}

int account_pass(const struct account *a, struct http_head *to, struct err *e)
{
    return a->span ? trace_pass(a->span, to, e) : 0;
}

static void log_access(const struct account *a, int status, uint64_t out_bytes, uint64_t took_us)
{
    char trace[2 * TRACE_ID_BYTES + 1], span[2 * TRACE_SPAN_BYTES + 1];
    struct log_kv kv[12] = { KV("method", (const char *)a->method),
                             KV("path", (const char *)a->path),
                             KV("status", status),
                             KV("bytes_out", out_bytes),
                             KV("duration_ms", took_us / 1000),
                             KV("client_ip", (const char *)a->client),
                             KV("sandbox_id", (const char *)a->id),
                             KV("sandbox_namespace", (const char *)a->namespace),
                             KV("user_agent", (const char *)a->agent) };
    size_t n = 9;

    if (a->user)
        kv[n++] = KV("user", (const char *)a->user);
    if (a->span) {
        kv[n++] = KV("trace_id", trace_hex(trace, a->span->at.trace, TRACE_ID_BYTES));
        kv[n++] = KV("span_id", trace_hex(span, a->span->at.span, TRACE_SPAN_BYTES));
    }
    log_event(LOG_INFO, "access.request", kv, n);
}

/* Names are the public router's. */
static void end_span(struct account *a, struct tracer *tracer, int status)
{
    const struct trace_attribute attributes[] = {
        { "http.method", span_cstr(a->method), 0 },
        { "http.target", span_cstr(a->path), 0 },
        { "sandbox.id", span_cstr(a->id), 0 },
        { "sandbox.namespace", span_cstr(a->namespace), 0 },
        { "http.status_code", SPAN_NONE, status },
    };
    char name[sizeof "HTTP " + sizeof a->method];

    (void)snprintf(name, sizeof name, "HTTP %s", a->method);
    trace_end(tracer, take_ptr(&a->span), name, attributes, LEN(attributes), status >= 500);
}

void account_close(struct account *a, struct tracer *tracer, int status, uint64_t out_bytes,
                   uint64_t took_us)
{
    if (!a->path)
        return;
    if (a->is_logged && log_is_on(LOG_INFO))
        log_access(a, status, out_bytes, took_us);
    if (a->span)
        end_span(a, tracer, status);
    free(take_ptr(&a->path));
    free(take_ptr(&a->agent));
    free(take_ptr(&a->id));
    free(take_ptr(&a->namespace));
    free(take_ptr(&a->user));
}
