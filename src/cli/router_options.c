#include "cli/router_options.h"

#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/serving.h"
#include "net/addr.h"

#include <sched.h>
#include <string.h>

#define AT_FIELD(field) offsetof(struct router_options, field)

/* clang-format off */
static const struct opt opts[] = {
    SERVING_CLUSTER(AT_FIELD(kubeconfig)),
    { "--listen", NULL, OPT_STR, AT_FIELD(listen), "127.0.0.1:8080", 0, 0, "HOST:PORT", "where requests come in, in clear; empty: nowhere" },
    { "--http-bind-address", NULL, OPT_STR, AT_FIELD(listen), NULL, 0, 0, "HOST:PORT", NULL },
    { "--https-listen", NULL, OPT_STR, AT_FIELD(tls_listen), NULL, 0, 0, "HOST:PORT", "where requests come in by TLS" },
    { "--https-bind-address", NULL, OPT_STR, AT_FIELD(tls_listen), NULL, 0, 0, "HOST:PORT", NULL },
    { "--listen-fd", NULL, OPT_FD, AT_FIELD(listen_fd), NULL, 0, 0, "N", "instead of --listen: a socket that listens already" },
    { "--tunnel-socket", NULL, OPT_STR, AT_FIELD(tunnel), NULL, 0, 0, "PATH", "a unix socket where port-forwards come in from processes of our own user, with a word on who is behind each; what they may is asked of the API server: to create pods/portforward where the sandbox is" },
    { "--pod-sockets", NULL, OPT_STR, AT_FIELD(pod_sockets), NULL, 0, 0, "PATH", "the unix socket of a node on this machine (DIR/sockets.sock): its Pods are reached from inside, at any port, and nothing else is" },
    { "--status-page", NULL, OPT_BOOL, AT_FIELD(has_status_page), NULL, 0, 0, NULL, "show browsers of our own user, at / in clear, which pools, claims and sandboxes there are and what is wrong; the account must be able to list them, and events" },
    { "--status-disk", NULL, OPT_STR, AT_FIELD(status_disk), NULL, 0, 0, "DIR", NULL },
    { "--status-disk-floor", NULL, OPT_BYTES, AT_FIELD(status_disk_floor), "0", 0, UINT64_MAX, "SIZE", NULL },
    { "--reuse-port", NULL, OPT_BOOL, AT_FIELD(is_port_shared), NULL, 0, 0, NULL, "several routers of this user listen there and share the load" },
    { "--workers", NULL, OPT_STR, AT_FIELD(workers_text), "1", 0, 0, "N", "processes that share the work, kept alive by one more, which shows what all of them count; 0 or auto: one for each processor" },
    { "--tls-cert-file", NULL, OPT_STR, AT_FIELD(cert_file), NULL, 0, 0, "FILE", "our certificate and its chain; read again when it changes" },
    { "--tls-key-file", NULL, OPT_STR, AT_FIELD(key_file), NULL, 0, 0, "FILE", "its key, likewise" },
    { "--metrics-listen", NULL, OPT_STR, AT_FIELD(metrics), ":9090", 0, 0, "HOST:PORT", "where /metrics is served; 0: nowhere" },
    { "--metrics-bind-address", NULL, OPT_STR, AT_FIELD(metrics), NULL, 0, 0, "HOST:PORT", NULL },
    { "--health-listen", NULL, OPT_STR, AT_FIELD(health), ":8081", 0, 0, "HOST:PORT", "where /healthz and /readyz are served; 0: nowhere" },
    { "--health-probe-bind-address", NULL, OPT_STR, AT_FIELD(health), NULL, 0, 0, "HOST:PORT", NULL },
    SERVING_READY_FD(AT_FIELD(ready_fd), "it serves"),
    { "--shutdown-timeout", NULL, OPT_MS, AT_FIELD(shutdown_ms), "30s", 0, 86400000, "TIME", "for requests under way, when it is told to end" },
    { "--allow-unauthenticated", "ALLOW_UNAUTHENTICATED_ROUTER", OPT_BOOL, AT_FIELD(is_unauthenticated_allowed), NULL, 0, 0, NULL, "serve everybody who can connect: other users of this machine, and on other addresses than loopback everybody there", "Who may" },
    { "--allow-origin", NULL, OPT_LIST, AT_FIELD(allow_origin), NULL, 0, 0, "ORIGIN", "whose pages browsers may show that speak to us, where no credential is asked for; may be repeated" },
    { "--allow-host", NULL, OPT_LIST, AT_FIELD(allow_host), NULL, 0, 0, "NAME", "a name of ours besides addresses, localhost and sandbox-router-svc.NAMESPACE.svc, likewise" },
    { "--mtls-mode", NULL, OPT_STR, AT_FIELD(mtls_mode), "off", 0, 0, "MODE", "by TLS: off; optional: a certificate that is shown is looked at; required: who has none is not served" },
    { "--tls-client-ca-file", NULL, OPT_STR, AT_FIELD(ca_file), NULL, 0, 0, "FILE", "who signs the certificates of clients" },
    { "--authz-mode", NULL, OPT_STR, AT_FIELD(authz_mode), NULL, 0, 0, "MODE", "allow-all; token: one secret for all; tokenreview: whom the API server knows; scoped-token: tokens of single sandboxes. Default: token where there is one, else allow-all" },
    { "--auth-token", "ROUTER_AUTH_TOKEN", OPT_STR, AT_FIELD(token), NULL, 0, 0, "TOKEN", "the secret of mode token; better in the variable, where others do not see it" },
    { "--authz-tokenreview-ttl", NULL, OPT_MS, AT_FIELD(review_ttl_ms), "30s", 1, 86400000, "TIME", "how long the API server's word on a token counts" },
    { "--authz-tokenreview-cache-size", NULL, OPT_U64, AT_FIELD(review_rows), "2048", 1, 1000000, "N", "of how many tokens" },
    { "--authz-tokenreview-require-token", NULL, OPT_BOOL, AT_FIELD(is_token_required), NULL, 0, 0, NULL, "who shows no token is refused" },
    { "--authz-tokenreview-audiences", NULL, OPT_STR, AT_FIELD(audiences), NULL, 0, 0, "NAMES", "whom tokens must be for, with commas between" },
    { "--authz-scoped-token-secret-file", NULL, OPT_STR, AT_FIELD(secret_file), NULL, 0, 0, "FILE", "what scoped tokens are signed with; at least 32 bytes" },
    { "--proxy-timeout", "PROXY_TIMEOUT_SECONDS", OPT_MS, AT_FIELD(proxy_ms), "180s", 1, 86400000, "TIME", "for a sandbox that sends nothing; X-Sandbox-Timeout may ask for less", "Requests" },
    { "--response-header-timeout", NULL, OPT_MS, AT_FIELD(head_ms), "0", 0, 86400000, "TIME", "for its answer to begin, once it has the request; 0: as long as above" },
    { "--max-request-body-bytes", NULL, OPT_BYTES, AT_FIELD(max_body_bytes), "0", 0, 0, "BYTES", "then 413; 0: any length" },
    { "--websocket-idle-timeout", "WEBSOCKET_IDLE_TIMEOUT_SECONDS", OPT_MS, AT_FIELD(ws_idle_ms), "0", 0, 31536000000, "TIME", "for a WebSocket without a message either way; 0: any time" },
    { "--websocket-max-lifetime", "WEBSOCKET_MAX_LIFETIME_SECONDS", OPT_MS, AT_FIELD(ws_lifetime_ms), "0", 0, 31536000000, "TIME", "of a WebSocket; 0: any time" },
    { "--websocket-max-message-bytes", "WEBSOCKET_MAX_MESSAGE_BYTES", OPT_BYTES, AT_FIELD(ws_message_max), "0", 0, 0, "BYTES", "of one message, as it is sent; 0: any length" },
    { "--websocket-max-connections-per-client", "WEBSOCKET_MAX_CONNECTIONS_PER_CLIENT", OPT_U64, AT_FIELD(ws_per_client), "0", 0, 1000000, "N", "WebSockets that one address has at once, in each worker; then 403. 0: any number" },
    { "--trusted-proxy-cidrs", "TRUSTED_PROXY_CIDRS", OPT_LIST, AT_FIELD(trusted_proxies), NULL, 0, 0, "RANGES", "whose X-Forwarded-For, -Host and -Proto go on, with commas between; those of others are replaced" },
    { "--upstream-max-retries", NULL, OPT_U64, AT_FIELD(retries), "3", 0, 100, "N", "of connections that no sandbox took; nothing else is tried twice" },
    { "--upstream-retry-initial-delay", NULL, OPT_MS, AT_FIELD(retry_first_ms), "200ms", 1, 60000, "TIME", "before the first of them; then twice as long each time" },
    { "--upstream-retry-max-delay", NULL, OPT_MS, AT_FIELD(retry_most_ms), "800ms", 1, 60000, "TIME", "at most" },
    { "--cluster-domain", "CLUSTER_DOMAIN", OPT_STR, AT_FIELD(cluster_domain), "cluster.local", 0, 0, "NAME", "what names of Services end in", "Sandboxes" },
    { "--allow-loopback-pod-ip", NULL, OPT_BOOL, AT_FIELD(is_loopback_allowed), NULL, 0, 0, NULL, "X-Sandbox-Pod-IP may be on this machine's loopback" },
    { "--allow-unlisted-pod-ip", NULL, OPT_BOOL, AT_FIELD(is_unlisted_allowed), NULL, 0, 0, NULL, "any X-Sandbox-Pod-IP, and names by DNS, though no such sandbox is known: what the public routers do" },
    { "--cache-enabled", NULL, OPT_BOOL, AT_FIELD(is_cached), "true", 0, 0, NULL, "know the cluster's sandboxes; without, no cluster is asked, and --allow-unlisted-pod-ip must be given" },
    { "--cache-namespace", NULL, OPT_STR, AT_FIELD(cache_namespace), NULL, 0, 0, "NAME", "know this namespace's only; default: all" },
    { "--access-log", NULL, OPT_BOOL, AT_FIELD(has_access_log), "true", 0, 0, NULL, "one line for each request", "Logs" },
    { "--enable-tracing", NULL, OPT_BOOL, AT_FIELD(is_traced), NULL, 0, 0, NULL, "tell a collector of OpenTelemetry of each request, by OTLP over gRPC; where, and which of them, is in the variables that OpenTelemetry has for it. Unless it is said, on where OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set" },
    ZAP_OPTS(AT_FIELD(zap), NULL),
    COMMAND_HELP(AT_FIELD(is_help), "Help"),
};
/* clang-format on */

const struct opt_program router_program = {
    .name = "silica router",
    .usage = "[--kubeconfig FILE] [options]",
    .example = "silica router --kubeconfig ~/.kube/config --listen 127.0.0.1:8080\n"
               "curl -H 'X-Sandbox-ID: demo' http://127.0.0.1:8080/health",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Passes each request on to the sandbox that its X-Sandbox-ID and X-Sandbox-Namespace name, as it is.\n"
        "TERM and INT let requests under way end.",
};

static int check_mode(struct router_options *o, struct err *e)
{
    if (!o->authz_mode)
        o->mode = o->token && *o->token ? AUTHORIZE_TOKEN : AUTHORIZE_ALL;
    else if (!authorize_mode_parse(o->authz_mode, &o->mode))
        return err_set(e, ERR_USAGE,
                       "--authz-mode: '%s' is not allow-all, token, tokenreview or scoped-token",
                       o->authz_mode);
    if (o->mode == AUTHORIZE_TOKEN && !(o->token && *o->token))
        return err_set(e, ERR_USAGE, "--authz-mode token: ROUTER_AUTH_TOKEN must be set");
    if (o->mode == AUTHORIZE_SCOPED && !(o->secret_file && *o->secret_file))
        return err_set(e, ERR_USAGE,
                       "--authz-mode scoped-token: --authz-scoped-token-secret-file must be given");
    return 0;
}

static bool is_said(const char *text)
{
    return text && *text;
}

static int check_tls(struct router_options *o, struct err *e)
{
    if (strcmp(o->mtls_mode, "off") == 0)
        o->client_verify = TLS_VERIFY_NONE;
    else if (strcmp(o->mtls_mode, "optional") == 0)
        o->client_verify = TLS_VERIFY_OPTIONAL;
    else if (strcmp(o->mtls_mode, "required") == 0)
        o->client_verify = TLS_VERIFY_REQUIRED;
    else
        return err_set(e, ERR_USAGE, "--mtls-mode: '%s' is not off, optional or required",
                       o->mtls_mode);
    if (is_said(o->tls_listen) && !(is_said(o->cert_file) && is_said(o->key_file)))
        return err_set(e, ERR_USAGE,
                       "--https-listen: --tls-cert-file and --tls-key-file must be given");
    if (o->client_verify != TLS_VERIFY_NONE && !(is_said(o->tls_listen) && is_said(o->ca_file)))
        return err_set(e, ERR_USAGE,
                       "--mtls-mode: --https-listen and --tls-client-ca-file must be given");
    return 0;
}

/* Without a word on who may, only this machine's own are served. */
static int check_door(const struct router_options *o, const char *flag, const char *text,
                      bool *ret_is_local, struct err *e)
{
    bool is_certified = text == o->tls_listen && o->client_verify == TLS_VERIFY_REQUIRED;
    struct net_addr at = { .len = sizeof at.sa };

    if (text == o->listen && o->listen_fd != SERVING_NO_FD) {
        if (getsockname((int)o->listen_fd, (struct sockaddr *)&at.sa, &at.len) < 0)
            return err_sys(e, "--listen-fd %llu", (unsigned long long)o->listen_fd);
    } else if (!is_said(text)) {
        return 0;
    } else if (net_addr_parse(text, &at, e) < 0) {
        return err_wrap(e, "%s", flag);
    }
    *ret_is_local = net_addr_is_loopback(&at);
    if (*ret_is_local || is_certified || o->is_unauthenticated_allowed || o->authz_mode ||
        o->mode != AUTHORIZE_ALL)
        return 0;
    (void)err_set(e, ERR_USAGE, "%s %s: everybody who can connect would be served", flag, text);
    err_hint(e,
             "choose an --authz-mode, or say --allow-unauthenticated where something else decides "
             "who can connect");
    return -1;
}

static int check_access(struct router_options *o, struct err *e)
{
    if (!is_said(o->listen) && !is_said(o->tls_listen) && o->listen_fd == SERVING_NO_FD)
        return err_set(e, ERR_USAGE, "--listen and --https-listen: one of them must be given");
    return check_door(o, "--listen", o->listen, &o->is_local, e) < 0 ||
                   check_door(o, "--https-listen", o->tls_listen, &o->is_tls_local, e) < 0
               ? -1
               : 0;
}

bool router_has_client(const struct router_options *o)
{
    return o->is_cached || o->mode == AUTHORIZE_REVIEW;
}

unsigned router_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) < 0 ? 1 : MAX((unsigned)CPU_COUNT(&set), 1u);
}

int router_workers_parse(const char *flag, const char *text, unsigned *ret, struct err *e)
{
    uint64_t n = 0;

    if (strcmp(text, "auto") != 0 && !str_u64(span_cstr(text), ROUTER_WORKERS_MAX, &n))
        return err_set(e, ERR_USAGE, "%s: '%s' is neither auto nor a number up to %d", flag, text,
                       ROUTER_WORKERS_MAX);
    *ret = n ? (unsigned)n : MIN(router_processors(), (unsigned)ROUTER_WORKERS_MAX);
    return 0;
}

void router_trace_off(const struct err *why)
{
    log_warn("trace.off", KV("err", why), KV("hint", (const char *)why->hint));
}

/* Without a word on our command line, variables of the environment are as much for other programs: a wrong one is no reason
 * not to serve. */
static int read_trace(struct router_options *o, struct err *e)
{
    struct err why;

    if (!o->is_trace_given)
        o->is_traced = trace_is_asked_for();
    if (!o->is_traced || trace_settings_read("sandbox-router", &o->trace, &why) == 0)
        return 0;
    if (o->is_trace_given) {
        *e = why;
        return -1;
    }
    o->is_traced = false;
    router_trace_off(&why);
    return 0;
}

int router_options_check(struct router_options *o, struct err *e)
{
    if (router_workers_parse("--workers", o->workers_text, &o->workers, e) < 0)
        return -1;
    for (size_t i = 0; i < o->trusted_proxies.n; i++)
        if (trust_add(&o->proxies, o->trusted_proxies.v[i], e) < 0)
            return err_wrap(e, "--trusted-proxy-cidrs");
    if (!*o->cluster_domain)
        return err_set(e, ERR_USAGE, "--cluster-domain: not blank");
    if (is_said(o->tunnel) && (!o->is_cached || o->is_unlisted_allowed)) {
        (void)err_set(e, ERR_USAGE, "--tunnel-socket: callers may have known sandboxes only");
        err_hint(e, "leave out --cache-enabled=false and --allow-unlisted-pod-ip");
        return -1;
    }
    if (is_said(o->pod_sockets) && (!o->is_cached || o->is_unlisted_allowed)) {
        (void)err_set(e, ERR_USAGE, "--pod-sockets: nothing but known Pods is reached");
        err_hint(e, "leave out --cache-enabled=false and --allow-unlisted-pod-ip");
        return -1;
    }
    if (!o->is_cached && !o->is_unlisted_allowed) {
        (void)err_set(e, ERR_USAGE, "--cache-enabled=false: no sandbox would be known");
        err_hint(e, "--allow-unlisted-pod-ip takes Pod addresses and names as they come");
        return -1;
    }
    return check_mode(o, e) < 0 || check_tls(o, e) < 0 || check_access(o, e) < 0 ||
                   zap_open(&o->zap, e) < 0 || read_trace(o, e) < 0
               ? -1
               : 0;
}

void router_options_done(struct router_options *o)
{
    trace_settings_done(&o->trace);
}
