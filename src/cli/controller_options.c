#include "cli/controller_options.h"

#include "base/str.h"
#include "cli/command.h"
#include "cli/serving.h"

#include <string.h>

#define AT_FIELD(field) offsetof(struct controller_options, field)

/* clang-format off */
static const struct opt opts[] = {
    SERVING_CLUSTER(AT_FIELD(kubeconfig)),
    { "--extensions", NULL, OPT_BOOL, AT_FIELD(has_extensions), "true", 0, 0, NULL, "templates, claims and warm pools too, not only Sandboxes" },
    { "--cluster-domain", NULL, OPT_STR, AT_FIELD(cluster_domain), "cluster.local", 0, 0, "NAME", "what names of Services end in" },
    { "--metrics-bind-address", NULL, OPT_STR, AT_FIELD(metrics), ":8080", 0, 0, "HOST:PORT", "where /metrics is served; 0: nowhere" },
    { "--health-probe-bind-address", NULL, OPT_STR, AT_FIELD(health), ":8081", 0, 0, "HOST:PORT", "where /healthz and /readyz are served; 0: nowhere" },
    { "--leader-elect", NULL, OPT_BOOL, AT_FIELD(is_elected), "true", 0, 0, NULL, "work only while holding the Lease: of several controllers one works" },
    { "--leader-election-namespace", NULL, OPT_STR, AT_FIELD(lease_namespace), NULL, 0, 0, "NAME", "where the Lease is; default: the pod's namespace, else agent-sandbox-system" },
    SERVING_READY_FD(AT_FIELD(ready_fd), "it serves"),
    { "--sandbox-concurrent-workers", NULL, OPT_U64, AT_FIELD(sandbox_workers), "100", 1, 100000, "N", "Sandboxes looked at at once", "Reconcilers" },
    { "--sandbox-claim-concurrent-workers", NULL, OPT_U64, AT_FIELD(claim_workers), "50", 1, 100000, "N", "claims looked at at once" },
    { "--sandbox-warm-pool-concurrent-workers", NULL, OPT_U64, AT_FIELD(pool_workers), "1", 1, 100000, "N", "pools looked at at once" },
    { "--sandbox-template-concurrent-workers", NULL, OPT_U64, AT_FIELD(template_workers), "1", 0, 100000, "N", "templates looked at at once" },
    { "--sandbox-warm-pool-max-batch-size", NULL, OPT_U64, AT_FIELD(pool_batch), "300", 1, 100000, "N", "members a pool makes or deletes in one pass" },
    { "--sandbox-warm-pool-replenish-delay", NULL, OPT_MS, AT_FIELD(pool_delay_ms), "0", 0, 0, "TIME", "a pool that lost members waits so long before it makes new ones" },
    { "--sandbox-warm-pool-max-refill-rate", NULL, OPT_STR, AT_FIELD(pool_rate), "0", 0, 0, "N", "members a pool makes in a second; 0: as many as it needs" },
    { "--sandbox-warm-pool-readiness-grace-period", NULL, OPT_MS, AT_FIELD(pool_grace_ms), "5m", 1, 0, "TIME", "for a member to become ready, before it is replaced" },
    { "--sandbox-warm-pool-unschedulable-recheck-interval", NULL, OPT_MS, AT_FIELD(pool_recheck_ms), "1m", 1, 0, "TIME", "between looks at members that no node has room for" },
    { "--enable-warm-pool-eviction", NULL, OPT_BOOL, AT_FIELD(is_pool_evictable), "true", 0, 0, NULL, "members that wait may be evicted when nodes are removed" },
    { "--sandbox-write-behind-window", NULL, OPT_MS, AT_FIELD(write_behind_ms), "0", 0, 0, "TIME", "changes of a Pod's labels may wait so long, to be one" },
    { "--disable-claim-events", NULL, OPT_BOOL, AT_FIELD(has_no_claim_events), NULL, 0, 0, NULL, "no Events about claims" },
    { "--disable-claim-observability-annotations", NULL, OPT_BOOL, AT_FIELD(has_no_claim_annotations), NULL, 0, 0, NULL, "no times in claims' annotations: one write less" },
    { "--keep-managed-fields", NULL, OPT_BOOL, AT_FIELD(keeps_fields), NULL, 0, 0, NULL, "leave managedFields of claims and their Sandboxes; else they are cleared where nobody applies them, which saves API servers much" },
    { "--cache-label-selectors", NULL, OPT_BOOL, AT_FIELD(is_cache_selected), NULL, 0, 0, NULL, "keep copies only of Pods and Services with our label" },
    { "--kube-api-qps", NULL, OPT_STR, AT_FIELD(qps), "-1", 0, 0, "N", "requests a second; not above 0: as many as there are", "Client" },
    { "--kube-api-burst", NULL, OPT_U64, AT_FIELD(burst), "10", 1, 1000000, "N", "of them at once" },
    { "--api-connections", NULL, OPT_U64, AT_FIELD(connections), "1", 1, 1000, "N", "connections for requests" },
    { "--separate-watch-connection", NULL, OPT_BOOL, AT_FIELD(has_watch_connection), NULL, 0, 0, NULL, "watches have a connection of their own" },
    ZAP_OPTS(AT_FIELD(zap), "Logs"),
    { "--zap-stacktrace-level", NULL, OPT_STR, AT_FIELD(stack_level), "error", 0, 0, "LEVEL", "taken; there are no stack traces" },
    { "--zap-time-encoding", NULL, OPT_STR, AT_FIELD(time_encoding), "epoch", 0, 0, "FORMAT", "taken; times are epoch in json and RFC 3339 in console" },
    { "--enable-webhook", NULL, OPT_BOOL, AT_FIELD(is_webhook), "true", 0, 0, NULL, "serve /convert: objects in v1alpha1 for those who ask for it, and back", "Conversion" },
    { "--webhook-port", NULL, OPT_U64, AT_FIELD(webhook_port), "9443", 0, 65535, "PORT", "where, on all addresses; 0: any" },
    { "--manage-webhook-certs", NULL, OPT_BOOL, AT_FIELD(manages_certs), "true", 0, 0, NULL, "make its certificate, keep it in a Secret, renew it, and write who signed it into the CRDs" },
    { "--webhook-service-name", NULL, OPT_STR, AT_FIELD(webhook_service), "agent-sandbox-webhook-service", 0, 0, "NAME", "the Service by which API servers come, unless a CRD names a URL" },
    { "--webhook-namespace", NULL, OPT_STR, AT_FIELD(webhook_namespace), "agent-sandbox-system", 0, 0, "NAME", "where that and the Secret are" },
    { "--webhook-cert-check", NULL, OPT_MS, AT_FIELD(cert_check_ms), "1m", 100, 86400000, "TIME", "between looks at the certificate, its Secret and the CRDs" },
    { "--webhook-cert-dir", NULL, OPT_STR, AT_FIELD(cert_dir), "/tmp/k8s-webhook-server/serving-certs", 0, 0, "DIR", "without --manage-webhook-certs: where the certificate is; read again when it changes" },
    { "--webhook-cert-name", NULL, OPT_STR, AT_FIELD(cert_name), "tls.crt", 0, 0, "NAME", "its file there" },
    { "--webhook-key-name", NULL, OPT_STR, AT_FIELD(key_name), "tls.key", 0, 0, "NAME", "its key's; without either of both cert.pem has the two" },
    { "--enable-pprof", NULL, OPT_BOOL, AT_FIELD(is_pprof), NULL, 0, 0, NULL, "/debug/pprof/profile beside /metrics: where processor time goes", "Diagnostics" },
    { "--enable-pprof-debug", NULL, OPT_BOOL, AT_FIELD(is_pprof_debug), NULL, 0, 0, NULL, "and memory, queues and what is under way, below /debug/pprof, and /debug/fgprof" },
    { "--pprof-block-profile-rate", NULL, OPT_STR, AT_FIELD(block_rate), "1000000", 0, 0, "N", "taken; nothing blocks" },
    { "--pprof-mutex-profile-fraction", NULL, OPT_STR, AT_FIELD(mutex_fraction), "10", 0, 0, "N", "taken; there are no locks to wait for" },
    { "--enable-tracing", NULL, OPT_BOOL, AT_FIELD(is_tracing), NULL, 0, 0, NULL, "taken; there are no traces", "Not served yet" },
    COMMAND_HELP(AT_FIELD(is_help), "Help"),
};

/* Given and without effect so far. */
static const char *const not_yet[] = {
    "--enable-tracing", "--zap-stacktrace-level",
    "--zap-time-encoding", "--api-connections", "--separate-watch-connection",
};
/* clang-format on */

const struct opt_program controller_program = {
    .name = "silica controller",
    .usage = "[--kubeconfig FILE] [options]",
    .example = "silica controller --kubeconfig ~/.kube/config",
    .opts = opts,
    .opt_count = LEN(opts),
    .epilog =
        "Keeps Sandboxes and what belongs to them as they are wished, on any Kubernetes API server.\n"
        "TERM and INT let what is under way end, and give the Lease back. USR1 turns debug logs on, and off again.",
};

static int read_number(const char *flag, const char *text, double least, double *ret, struct err *e)
{
    struct span s = span_cstr(text);
    bool is_negative = s.n && s.p[0] == '-';

    if (!str_double(is_negative ? span_skip(s, 1) : s, ret))
        return err_set(e, ERR_INVALID, "%s: '%s' is not a number", flag, text);
    if (is_negative)
        *ret = -*ret;
    if (*ret < least)
        return err_set(e, ERR_INVALID, "%s: %s is less than %g", flag, text, least);
    return 0;
}

int controller_options_check(struct controller_options *o, struct err *e)
{
    if (!*o->cert_name || !*o->key_name)
        return err_set(e, ERR_INVALID, "--webhook-cert-name and --webhook-key-name: not blank");
    return read_number("--kube-api-qps", o->qps, -1e9, &o->qps_number, e) < 0 ||
                   read_number("--sandbox-warm-pool-max-refill-rate", o->pool_rate, 0,
                               &o->pool_rate_number, e) < 0 ||
                   zap_open(&o->zap, e) < 0
               ? -1
               : 0;
}

void controller_options_warn(int argc, char **argv)
{
    EACH(flag, not_yet) {
        if (opt_was_given(&controller_program, argc, argv, *flag))
            log_warn("controller.flag", KV("flag", *flag), KV("effect", "none yet"));
    }
}
