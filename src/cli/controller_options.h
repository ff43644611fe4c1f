/* controller_options: the flags of `silica controller`, which are the public controller's. */
#ifndef SILICA_CLI_CONTROLLER_OPTIONS_H
#define SILICA_CLI_CONTROLLER_OPTIONS_H

#include "base/opt.h"
#include "cli/zap.h"

struct controller_options {
    const char *kubeconfig, *cluster_domain, *metrics, *health, *lease_namespace;
    bool is_elected, has_extensions, is_help;
    uint64_t ready_fd;
    /* reconcilers */
    uint64_t sandbox_workers, claim_workers, pool_workers, template_workers;
    uint64_t pool_batch, pool_delay_ms, pool_grace_ms, pool_recheck_ms, write_behind_ms;
    const char *pool_rate;
    bool is_pool_evictable, has_no_claim_events, has_no_claim_annotations, keeps_fields,
        is_cache_selected;
    /* the client */
    const char *qps;
    uint64_t burst, connections;
    bool has_watch_connection;
    double qps_number, pool_rate_number; /* of the texts above, by controller_options_check */
    /* logs */
    struct zap_options zap;
    const char *stack_level, *time_encoding;
    /* conversion */
    bool is_webhook, manages_certs;
    const char *cert_dir, *cert_name, *key_name, *webhook_service, *webhook_namespace;
    uint64_t webhook_port, cert_check_ms;
    /* diagnostics */
    bool is_pprof, is_pprof_debug;
    const char *block_rate, *mutex_fraction; /* taken, whatever they say */
    /* taken and not served yet */
    bool is_tracing;
};

extern const struct opt_program controller_program;

/* Ranges that the table does not know; sets up the log. ERR_INVALID. */
int controller_options_check(struct controller_options *o, struct err *e);
/* Says of each flag that was given and has no effect yet that it has none. */
void controller_options_warn(int argc, char **argv);

#endif
