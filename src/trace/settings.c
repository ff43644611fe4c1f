#include "trace/settings.h"

#include "base/str.h"
#include "http/head.h"
#include "trace/limits.h"

#include <string.h>
#include <strings.h>

#define DEFAULT_ENDPOINT "http://localhost:4317"
#define DEFAULT_PORT     4317
#define TIME_MAX_MS      600000

/* A variable that says nothing is as if it were not there. */
static const char *said(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

/* The one of traces alone wins over that of all signals: "OTEL_EXPORTER_OTLP_" TRACES_ what. */
static const char *exporter(const char *what, char name[64])
{
    const char *text;

    (void)snprintf(name, 64, "OTEL_EXPORTER_OTLP_TRACES_%s", what);
    text = said(name);
    if (text)
        return text;
    (void)snprintf(name, 64, "OTEL_EXPORTER_OTLP_%s", what);
    return said(name);
}

bool trace_is_asked_for(void)
{
    const char *off = said("OTEL_SDK_DISABLED"), *to = said("OTEL_TRACES_EXPORTER");
    const char *protocol;
    char name[64];

    protocol = exporter("PROTOCOL", name);
    return exporter("ENDPOINT", name) && !(protocol && strcmp(protocol, "grpc") != 0) &&
           !(off && strcasecmp(off, "true") == 0) && !(to && strcmp(to, "none") == 0);
}

/* ---- the collector ---- */

static int bad_endpoint(const char *name, const char *text, const char *why, struct err *e)
{
    (void)err_set(e, ERR_USAGE, "%s: '%s' is no collector: %s", name, text, why);
    err_hint(e, "write it as http://HOST:PORT, or https://HOST:PORT for TLS");
    return -1;
}

static int read_host(struct trace_settings *s, const char *name, const char *text,
                     struct span authority, struct err *e)
{
    size_t close = span_starts(authority, "[") ? span_find(authority, ']') : 0, colon;
    struct span host = authority;
    uint64_t port = DEFAULT_PORT;

    if (close == SIZE_MAX)
        return bad_endpoint(name, text, "its address is not closed", e);
    colon = span_find(span_skip(authority, close), ':');
    if (colon != SIZE_MAX) {
        host = span_slice(authority, 0, close + colon);
        if (!str_u64(span_skip(authority, close + colon + 1), 65535, &port) || port == 0)
            return bad_endpoint(name, text, "its port is no number from 1 to 65535", e);
    }
    if (close)
        host = span_ends(host, "]") ? span_slice(host, 1, host.n - 1) : SPAN_NONE;
    if (!host.n)
        return bad_endpoint(name, text, "it names no host", e);
    for (size_t i = 0; i < host.n; i++)
        if (host.p[i] <= ' ' || host.p[i] >= 0x7f || strchr("@?#%\\\"<>", host.p[i]))
            return bad_endpoint(name, text, "its host holds a byte that no name has", e);
    s->host = span_dup(host);
    s->port = (uint16_t)port;
    s->authority = span_dup(authority);
    return 0;
}

static int check_protocol(struct err *e)
{
    char name[64];
    const char *text = exporter("PROTOCOL", name);

    return !text || strcmp(text, "grpc") == 0
               ? 0
               : err_set(e, ERR_USAGE, "%s: '%s' is not spoken here, but grpc", name, text);
}

/* A scheme decides on TLS; without one the variable does, as in clients of gRPC. */
static int read_endpoint(struct trace_settings *s, struct err *e)
{
    char name[64], ignored[64];
    const char *text = exporter("ENDPOINT", name), *insecure = exporter("INSECURE", ignored);
    struct span rest = span_cstr(text ? text : DEFAULT_ENDPOINT);
    bool is_plain = false;

    if (insecure && !str_bool(span_cstr(insecure), &is_plain))
        return err_set(e, ERR_USAGE, "%s: '%s' is not true or false", ignored, insecure);
    if (span_starts(rest, "https://")) {
        s->is_tls = true;
        rest = span_skip(rest, 8);
    } else if (span_starts(rest, "http://")) {
        rest = span_skip(rest, 7);
    } else if (span_find(rest, '/') != SIZE_MAX) {
        return bad_endpoint(name, text, "it begins neither with http:// nor with https://", e);
    } else {
        s->is_tls = !is_plain;
    }
    /* A path is for the protocol over HTTP/1.1; in gRPC the method is the path. */
    return read_host(s, name, text ? text : DEFAULT_ENDPOINT,
                     span_slice(rest, 0, span_find(rest, '/')), e);
}

static void read_file(const char *what, char **ret)
{
    char name[64];
    const char *text = exporter(what, name);

    *ret = text ? own_strdup(text) : NULL;
}

static int read_files(struct trace_settings *s, struct err *e)
{
    read_file("CERTIFICATE", &s->ca_file);
    read_file("CLIENT_CERTIFICATE", &s->cert_file);
    read_file("CLIENT_KEY", &s->key_file);
    return !s->cert_file == !s->key_file
               ? 0
               : err_set(e, ERR_USAGE,
                         "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: one is given "
                         "without the other");
}

/* ---- lists of names and values ---- */

static void set_pair(struct trace_pairs *list, struct span name, struct span value)
{
    size_t i = 0;

    while (i < list->n && !span_is(name, list->v[i].name))
        i++;
    if (i == list->n) {
        list->v = own_resize(list->v, list->n + 1, sizeof list->v[0]);
        list->v[list->n++] = (struct trace_pair){ .name = span_dup(name) };
    }
    free(list->v[i].value); /* of the same name the last counts */
    list->v[i].value = span_dup(value);
}

static const char *find_pair(const struct trace_pairs *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].name, name) == 0)
            return list->v[i].value;
    return NULL;
}

static void pairs_done(struct trace_pairs *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->v[i].name);
        free(list->v[i].value);
    }
    free(take_ptr(&list->v));
    list->n = 0;
}

/* "a=1,b=two%20words". Values are not shown: they may be secrets. */
static int read_pairs(struct trace_pairs *to, const char *variable, const char *text,
                      bool (*is_fit)(struct span name, struct span value), struct err *e)
{
    OWN(buf_done) struct buf value = BUF_INIT(TRACE_PAIRS_MAX_BYTES);
    struct span rest = span_cstr(text), pair;

    while (span_cut(&rest, ',', &pair)) {
        size_t eq = span_find(pair, '=');
        struct span name = span_trim(span_slice(pair, 0, eq));

        if (!span_trim(pair).n)
            continue;
        if (eq == SIZE_MAX || !name.n)
            return err_set(e, ERR_USAGE, "%s: one of its parts is not NAME=VALUE", variable);
        buf_clear(&value);
        if (str_percent_decode(span_trim(span_skip(pair, eq + 1)), &value, e) < 0)
            return err_wrap(e, "%s", variable);
        if (!is_fit(name, buf_span(&value)))
            return err_set(e, ERR_USAGE, "%s: '%.*s' has a byte that cannot be sent", variable,
                           SPAN_ARG(name));
        if (to->n == TRACE_PAIRS_MAX)
            return err_set(e, ERR_USAGE, "%s: more than %d parts", variable, TRACE_PAIRS_MAX);
        set_pair(to, name, buf_span(&value));
    }
    return 0;
}

static bool is_field(struct span name, struct span value)
{
    return http_name_is_valid(name) && http_value_is_valid(value);
}

static bool is_text(struct span name, struct span value)
{
    return str_utf8_valid(name) && str_utf8_valid(value) && span_find(value, '\0') == SIZE_MAX;
}

static int read_headers(struct trace_settings *s, struct err *e)
{
    char name[64];
    const char *text = exporter("HEADERS", name);

    return text ? read_pairs(&s->headers, name, text, is_field, e) : 0;
}

static int read_attributes(struct trace_settings *s, const char *service, struct err *e)
{
    const char *text = said("OTEL_RESOURCE_ATTRIBUTES"), *own = said("OTEL_SERVICE_NAME");

    if (text && read_pairs(&s->attributes, "OTEL_RESOURCE_ATTRIBUTES", text, is_text, e) < 0)
        return -1;
    if (own && !is_text(SPAN_NONE, span_cstr(own)))
        return err_set(e, ERR_USAGE, "OTEL_SERVICE_NAME: not UTF-8");
    if (own || !find_pair(&s->attributes, "service.name"))
        set_pair(&s->attributes, SPAN("service.name"), span_cstr(own ? own : service));
    return 0;
}

/* ---- which traces ---- */

static int read_sampler(struct trace_settings *s, struct err *e)
{
    static const struct {
        const char *name;
        enum trace_sampler sampler;
        bool is_parent_heard;
    } rows[] = {
        { "parentbased_always_on", TRACE_ALL, true },
        { "parentbased_always_off", TRACE_NONE, true },
        { "parentbased_traceidratio", TRACE_RATIO, true },
        { "always_on", TRACE_ALL, false },
        { "always_off", TRACE_NONE, false },
        { "traceidratio", TRACE_RATIO, false },
    };
    const char *name = said("OTEL_TRACES_SAMPLER"), *arg = said("OTEL_TRACES_SAMPLER_ARG");
    double share = 1;

    s->is_parent_heard = true;
    if (!name)
        return 0;
    EACH(r, rows) {
        if (strcmp(r->name, name) != 0)
            continue;
        s->sampler = r->sampler;
        s->is_parent_heard = r->is_parent_heard;
        if (r->sampler != TRACE_RATIO)
            return 0;
        if (arg && (!str_double(span_cstr(arg), &share) || share < 0 || share > 1))
            return err_set(e, ERR_USAGE, "OTEL_TRACES_SAMPLER_ARG: '%s' is not from 0 to 1", arg);
        s->below = share >= 1 ? UINT64_MAX : (uint64_t)(share * 0x1p63);
        return 0;
    }
    (void)err_set(e, ERR_USAGE, "OTEL_TRACES_SAMPLER: '%s' is not known", name);
    err_hint(e, "always_on, always_off, traceidratio, or one of them behind parentbased_");
    return -1;
}

/* Milliseconds, as OpenTelemetry's variables have them. */
static int read_ms(const char *name, const char *text, uint64_t preset, uint64_t *ret,
                   struct err *e)
{
    *ret = preset;
    if (text && (!str_u64(span_cstr(text), TIME_MAX_MS, ret) || *ret == 0))
        return err_set(e, ERR_USAGE, "%s: '%s' is no number of milliseconds from 1 to %d", name,
                       text, TIME_MAX_MS);
    return 0;
}

int trace_settings_read(const char *service, struct trace_settings *ret, struct err *e)
{
    char name[64];
    const char *timeout = exporter("TIMEOUT", name);

    *ret = (struct trace_settings){ .sampler = TRACE_ALL };
    if (check_protocol(e) < 0 || read_endpoint(ret, e) < 0 || read_files(ret, e) < 0 ||
        read_headers(ret, e) < 0 || read_attributes(ret, service, e) < 0 ||
        read_sampler(ret, e) < 0 ||
        read_ms(name, timeout, TRACE_TIMEOUT_MS, &ret->timeout_ms, e) < 0 ||
        read_ms("OTEL_BSP_SCHEDULE_DELAY", said("OTEL_BSP_SCHEDULE_DELAY"), TRACE_DELAY_MS,
                &ret->delay_ms, e) < 0) {
        trace_settings_done(ret);
        return -1;
    }
    return 0;
}

void trace_settings_done(struct trace_settings *s)
{
    free(take_ptr(&s->host));
    free(take_ptr(&s->authority));
    free(take_ptr(&s->ca_file));
    free(take_ptr(&s->cert_file));
    free(take_ptr(&s->key_file));
    pairs_done(&s->headers);
    pairs_done(&s->attributes);
}
