/* router_options: the flags of `silica router`; those that the public router has are called as there, too. */
#ifndef SILICA_CLI_ROUTER_OPTIONS_H
#define SILICA_CLI_ROUTER_OPTIONS_H

#include "base/opt.h"
#include "cli/zap.h"
#include "net/tls.h"
#include "router/authorize.h"
#include "router/trust.h"
#include "trace/settings.h"

struct router_options {
    const char *kubeconfig, *listen, *tls_listen, *metrics, *health, *cluster_domain;
    const char *tunnel, *pod_sockets; /* unix sockets */
    const char *workers_text;
    unsigned workers; /* of workers_text, by router_options_check */
    uint64_t ready_fd, listen_fd;
    const char *status_disk;
    uint64_t status_disk_floor;
    bool is_port_shared, has_status_page, is_help;
    /* who may */
    bool is_unauthenticated_allowed, is_token_required;
    struct opt_list allow_origin, allow_host, trusted_proxies;
    struct trust proxies; /* of the list, by router_options_check */
    const char *cert_file, *key_file, *ca_file, *mtls_mode;
    /* by router_options_check */
    bool is_local, is_tls_local; /* the addresses are loopback */
    enum tls_verify client_verify;
    const char *authz_mode, *token, *secret_file, *audiences;
    uint64_t review_ttl_ms, review_rows;
    enum authorize_mode mode; /* of authz_mode, by router_options_check */
    /* requests */
    uint64_t proxy_ms, head_ms, shutdown_ms, max_body_bytes;
    uint64_t ws_idle_ms, ws_lifetime_ms, ws_message_max, ws_per_client;
    uint64_t retries, retry_first_ms, retry_most_ms;
    /* sandboxes */
    bool is_loopback_allowed, is_unlisted_allowed, is_cached;
    const char *cache_namespace;
    /* logs */
    bool has_access_log;
    bool is_traced, is_trace_given; /* given: not to be decided by the environment */
    struct trace_settings
        trace; /* of the environment, by router_options_check, where is_traced; router_options_done */
    struct zap_options zap;
};

#define ROUTER_WORKERS_MAX 64 /* more than processors of the machines that this is for */

extern const struct opt_program router_program;

/* How many processes a number, or `auto` for one per processor, asks for. ERR_USAGE names the flag. */
int router_workers_parse(const char *flag, const char *text, unsigned *ret, struct err *e);
/* It asks an API server. */
bool router_has_client(const struct router_options *o);
/* Processors that this process may use. */
unsigned router_processors(void);

/* What the table does not know; sets up the log. ERR_USAGE, ERR_INVALID. */
int router_options_check(struct router_options *o, struct err *e);
void router_options_done(struct router_options *o);
/* Nobody asked for traces on our command line, and there are none. */
void router_trace_off(const struct err *why);

#endif
