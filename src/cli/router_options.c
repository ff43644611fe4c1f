#include "cli/router_options.h"

#include "net/addr.h"

#define AT_FIELD(field) offsetof(struct router_options, field)

/* clang-format off */
static const struct opt opts[] = {
    { "--kubeconfig", NULL, OPT_STR, AT_FIELD(kubeconfig), NULL, 0, 0, "FILE", "the cluster and who we are there; default: $KUBECONFIG, ~/.kube/config, the pod's service account", "Process" },
    { "--listen", NULL, OPT_STR, AT_FIELD(listen), "127.0.0.1:8080", 0, 0, "HOST:PORT", "where requests come in" },
    { "--http-bind-address", NULL, OPT_STR, AT_FIELD(listen), NULL, 0, 0, "HOST:PORT", NULL },
    { "--listen-fd", NULL, OPT_U64, AT_FIELD(listen_fd), "18446744073709551615", 0, 0, "N", "the same, by a socket that listens already" },
    { "--reuse-port", NULL, OPT_BOOL, AT_FIELD(is_port_shared), NULL, 0, 0, NULL, "several routers of this user listen there and share the load" },
    { "--metrics-listen", NULL, OPT_STR, AT_FIELD(metrics), ":9090", 0, 0, "HOST:PORT", "where /metrics is served; 0: nowhere" },
    { "--metrics-bind-address", NULL, OPT_STR, AT_FIELD(metrics), NULL, 0, 0, "HOST:PORT", NULL },
    { "--health-listen", NULL, OPT_STR, AT_FIELD(health), ":8081", 0, 0, "HOST:PORT", "where /healthz and /readyz are served; 0: nowhere" },
    { "--health-probe-bind-address", NULL, OPT_STR, AT_FIELD(health), NULL, 0, 0, "HOST:PORT", NULL },
    { "--ready-fd", NULL, OPT_U64, AT_FIELD(ready_fd), "18446744073709551615", 0, 0, "N", "write one line of JSON to this descriptor when it serves" },
    { "--shutdown-timeout", NULL, OPT_MS, AT_FIELD(shutdown_ms), "30s", 0, 86400000, "TIME", "for requests under way, when it is told to end" },
    { "--allow-unauthenticated", "ALLOW_UNAUTHENTICATED_ROUTER", OPT_BOOL, AT_FIELD(is_unauthenticated_allowed), NULL, 0, 0, NULL, "serve everybody who can connect: other users of this machine, and on other addresses than loopback everybody there", "Who may" },
    { "--allow-origin", NULL, OPT_LIST, AT_FIELD(allow_origin), NULL, 0, 0, "ORIGIN", "whose pages browsers may show that speak to us, where no credential is asked for; may be repeated" },
    { "--allow-host", NULL, OPT_LIST, AT_FIELD(allow_host), NULL, 0, 0, "NAME", "a name of ours besides addresses, localhost and Services, likewise" },
    { "--authz-mode", NULL, OPT_STR, AT_FIELD(authz_mode), NULL, 0, 0, "MODE", "allow-all; token: one secret for all; tokenreview: whom the API server knows; scoped-token: tokens of single sandboxes. Default: token where there is one, else allow-all" },
    { "--auth-token", "ROUTER_AUTH_TOKEN", OPT_STR, AT_FIELD(token), NULL, 0, 0, "TOKEN", "the secret of mode token; better in the variable, where others do not see it" },
    { "--authz-tokenreview-ttl", NULL, OPT_MS, AT_FIELD(review_ttl_ms), "30s", 1, 86400000, "TIME", "how long the API server's word on a token counts" },
    { "--authz-tokenreview-cache-size", NULL, OPT_U64, AT_FIELD(review_rows), "2048", 1, 1000000, "N", "of how many tokens" },
    { "--authz-tokenreview-require-token", NULL, OPT_BOOL, AT_FIELD(is_token_required), NULL, 0, 0, NULL, "who shows no token is refused" },
    { "--authz-tokenreview-audiences", NULL, OPT_STR, AT_FIELD(audiences), NULL, 0, 0, "NAMES", "whom tokens must be for, with commas between" },
    { "--authz-scoped-token-secret-file", NULL, OPT_STR, AT_FIELD(secret_file), NULL, 0, 0, "FILE", "what scoped tokens are signed with; at least 32 bytes" },
    { "--proxy-timeout", "PROXY_TIMEOUT_SECONDS", OPT_MS, AT_FIELD(proxy_ms), "180s", 1, 86400000, "TIME", "for a sandbox that sends nothing; X-Sandbox-Timeout may ask for less", "Requests" },
    { "--max-request-body-bytes", NULL, OPT_BYTES, AT_FIELD(max_body_bytes), "0", 0, 0, "BYTES", "then 413; 0: any length" },
    { "--upstream-max-retries", NULL, OPT_U64, AT_FIELD(retries), "3", 0, 100, "N", "of connections that no sandbox took; nothing else is tried twice" },
    { "--upstream-retry-initial-delay", NULL, OPT_MS, AT_FIELD(retry_first_ms), "200ms", 1, 60000, "TIME", "before the first of them; then twice as long each time" },
    { "--upstream-retry-max-delay", NULL, OPT_MS, AT_FIELD(retry_most_ms), "800ms", 1, 60000, "TIME", "at most" },
    { "--cluster-domain", "CLUSTER_DOMAIN", OPT_STR, AT_FIELD(cluster_domain), "cluster.local", 0, 0, "NAME", "what names of Services end in", "Sandboxes" },
    { "--allow-loopback-pod-ip", NULL, OPT_BOOL, AT_FIELD(is_loopback_allowed), NULL, 0, 0, NULL, "X-Sandbox-Pod-IP may be on this machine's loopback" },
    { "--allow-unlisted-pod-ip", NULL, OPT_BOOL, AT_FIELD(is_unlisted_allowed), NULL, 0, 0, NULL, "any X-Sandbox-Pod-IP, and names by DNS, though no such sandbox is known: what the public routers do" },
    { "--cache-enabled", NULL, OPT_BOOL, AT_FIELD(is_cached), "true", 0, 0, NULL, "know the cluster's sandboxes; without, no cluster is asked, and --allow-unlisted-pod-ip must be given" },
    { "--cache-namespace", NULL, OPT_STR, AT_FIELD(cache_namespace), NULL, 0, 0, "NAME", "know this namespace's only; default: all" },
    { "--access-log", NULL, OPT_BOOL, AT_FIELD(has_access_log), "true", 0, 0, NULL, "one line for each request", "Logs" },
    { "--zap-log-level", NULL, OPT_STR, AT_FIELD(zap.level), "info", 0, 0, "LEVEL", "debug, info, error, or a number above 0 for debug" },
    { "--zap-encoder", NULL, OPT_STR, AT_FIELD(zap.encoder), NULL, 0, 0, "FORMAT", "json, or console for our own format; default: json" },
    { "--zap-devel", NULL, OPT_BOOL, AT_FIELD(zap.is_devel), NULL, 0, 0, NULL, "console and debug" },
    { "--help", NULL, OPT_BOOL, AT_FIELD(is_help), NULL, 0, 0, NULL, "this text", "Help", 'h' },
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

/* Without a word on who may, only this machine's own are served. */
static int check_access(struct router_options *o, struct err *e)
{
    struct net_addr at = { .len = sizeof at.sa };

    if (o->listen_fd == UINT64_MAX && net_addr_parse(o->listen, &at, e) < 0)
        return err_wrap(e, "--listen");
    if (o->listen_fd != UINT64_MAX &&
        getsockname((int)o->listen_fd, (struct sockaddr *)&at.sa, &at.len) < 0)
        return err_sys(e, "--listen-fd %llu", (unsigned long long)o->listen_fd);
    o->is_local = net_addr_is_loopback(&at);
    if (o->is_unauthenticated_allowed || o->authz_mode || o->mode != AUTHORIZE_ALL || o->is_local)
        return 0;
    (void)err_set(e, ERR_USAGE, "--listen %s: everybody who can connect would be served",
                  o->listen);
    err_hint(e,
             "choose an --authz-mode, or say --allow-unauthenticated where something else decides "
             "who can connect");
    return -1;
}

int router_options_check(struct router_options *o, struct err *e)
{
    if (!*o->cluster_domain)
        return err_set(e, ERR_USAGE, "--cluster-domain: not blank");
    if (!o->is_cached && !o->is_unlisted_allowed) {
        (void)err_set(e, ERR_USAGE, "--cache-enabled=false: no sandbox would be known");
        err_hint(e, "--allow-unlisted-pod-ip takes Pod addresses and names as they come");
        return -1;
    }
    return check_mode(o, e) < 0 || check_access(o, e) < 0 || zap_open(&o->zap, e) < 0 ? -1 : 0;
}
