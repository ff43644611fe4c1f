/* silica router: one address for all sandboxes of a cluster. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "cli/router_options.h"
#include "ev/child.h"
#include "http/show.h"
#include "kubeclient/kubeclient.h"
#include "net/resolve.h"
#include "router/known.h"
#include "router/router.h"

#include <fcntl.h>
#include <signal.h>

#define SYNC_MS                                                                                    \
    60000 /* for the cluster to say which sandboxes there are, before anything is served */

#define SECRET_MAX_BYTES 65536
#define CLOSE_TURNS      20 /* calls and watches that are called off are told so in later turns */

struct role {
    const struct router_options *o;
    struct ev_loop *loop;
    struct ev_children *children;
    struct resolver *resolver;
    struct kube_client *client; /* NULL without a cache */
    struct picker *picker;
    struct authorizer *authorizer;
    struct router *router;
    struct show *show;
    struct ev_timer timer; /* the cache's, then the drain's */
    bool is_ready, is_stopping;
    int exit_code;
};

/* ---- what is shown ---- */

static const char *why_not_ready(void *ctx)
{
    const struct role *r = ctx;

    return r->is_ready && !r->is_stopping ? NULL
                                          : "draining"; /* the public router's word for both */
}

static int write_metrics(void *ctx, struct buf *out, struct err *e)
{
    const struct role *r = ctx;

    if (metric_head(out, "sandbox_router_build_info", "gauge", "What this program is.", e) < 0 ||
        metric_u64(out, "sandbox_router_build_info",
                   "git_version=\"silica-" SILICA_VERSION "\",git_commit=\"\",build_date=\"\","
                   "go_version=\"\",compiler=\"gcc\",platform=\"linux\"",
                   1, e) < 0)
        return -1;
    if (r->client && kubeclient_metrics_write(r->client, out, e) < 0)
        return -1;
    return router_metrics_write(r->router, out, e);
}

static int tell_ready(const struct role *r, struct err *e)
{
    OWN(buf_done) struct buf line = BUF_INIT(4096);
    uint64_t fd = r->o->ready_fd;
    struct json_out out;

    json_out_init(&out, &line, 0);
    json_out_object_begin(&out);
    json_out_key(&out, "listen"), json_out_array_begin(&out);
    if (router_address(r->router))
        json_out_cstr(&out, router_address(r->router));
    if (router_tls_address(r->router))
        json_out_cstr(&out, router_tls_address(r->router));
    json_out_array_end(&out);
    json_out_key(&out, "metrics"), json_out_cstr(&out, show_metrics_address(r->show));
    json_out_key(&out, "health"), json_out_cstr(&out, show_health_address(r->show));
    json_out_object_end(&out);
    if (json_out_end(&out, e) < 0 || buf_addc(&line, '\n', e) < 0)
        return -1;
    log_info("router.serve", KV("listen", router_address(r->router)),
             KV("tls", router_tls_address(r->router)), KV("metrics", show_metrics_address(r->show)),
             KV("health", show_health_address(r->show)), KV("cache", r->o->is_cached));
    if (fd == UINT64_MAX)
        return 0;
    if (fd_write_all((int)fd, buf_span(&line), e) < 0)
        return err_wrap(e, "--ready-fd %llu", (unsigned long long)fd);
    (void)close((int)fd);
    return 0;
}

/* ---- life ---- */

static void fail(struct role *r, const struct err *e)
{
    log_error("router.fail", KV("err", e), KV("hint", (const char *)e->hint));
    r->exit_code = 1;
    ev_loop_stop(r->loop);
}

static void on_synced(void *ctx)
{
    struct role *r = ctx;
    struct err e;

    ev_timer_stop(r->loop, &r->timer);
    r->is_ready = true;
    if (tell_ready(r, &e) < 0)
        fail(r, &e);
}

static void not_synced(void *ctx)
{
    struct err e;

    (void)err_set(&e, ERR_TIMEOUT, "the API server did not list Pods and Sandboxes within %d s",
                  SYNC_MS / 1000);
    err_hint(&e, "the account needs get, list and watch of pods and sandboxes.agents.x-k8s.io");
    fail(ctx, &e);
}

static void on_drained(void *ctx)
{
    struct role *r = ctx;

    ev_loop_stop(r->loop);
}

static void drain_over(void *ctx)
{
    struct role *r = ctx;

    log_warn("router.cut", KV("after_ms", r->o->shutdown_ms));
    ev_loop_stop(r->loop);
}

static void on_signal(void *ctx, int number)
{
    struct role *r = ctx;

    log_info("router.stop", KV("signal", number));
    if (r->is_stopping || !r->is_ready) { /* asked twice, or nothing is under way */
        ev_loop_stop(r->loop);
        return;
    }
    r->is_stopping = true;
    ev_timer_start(r->loop, &r->timer, r->o->shutdown_ms, drain_over, r);
    router_drain(r->router, on_drained, r);
}

static int connect_client(struct role *r, struct err *e)
{
    struct kubeconfig_choice choice = { .file = NULL };
    struct kubeconfig k;

    kubeconfig_choice_env(&choice);
    choice.file = r->o->kubeconfig;
    if (kubeconfig_load(&choice, &k, e) < 0)
        return -1;
    return kubeclient_new(r->loop,
                          &(struct kubeclient_config){ .kubeconfig = &k,
                                                       .children = r->children,
                                                       .resolver = resolver_dial(r->resolver) },
                          &r->client, e);
}

static int open_authorizer(struct role *r, struct err *e)
{
    const struct router_options *o = r->o;
    OWN(buf_done) struct buf secret = BUF_INIT(SECRET_MAX_BYTES);
    struct authorizer_config config = { .mode = o->mode,
                                        .secret = span_cstr(o->token),
                                        .review = { .client = r->client,
                                                    .loop = r->loop,
                                                    .ttl_ms = o->review_ttl_ms,
                                                    .rows_max = o->review_rows,
                                                    .is_token_required = o->is_token_required,
                                                    .audiences = o->audiences } };

    if (o->mode == AUTHORIZE_SCOPED) {
        if (fd_read_file(o->secret_file, &secret, e) < 0)
            return err_wrap(e, "--authz-scoped-token-secret-file");
        config.secret = buf_span(&secret);
    }
    return authorizer_new(&config, &r->authorizer, e);
}

static int open_parts(struct role *r, struct err *e)
{
    const struct router_options *o = r->o;
    bool is_open = o->mode == AUTHORIZE_ALL; /* to everybody who can connect */
    bool is_tls_open = is_open && o->client_verify != TLS_VERIFY_REQUIRED;
    const struct known_config known = { .client = o->is_cached ? r->client : NULL,
                                        .loop = r->loop,
                                        .namespace = o->cache_namespace,
                                        .cluster_domain = o->cluster_domain,
                                        .is_unlisted_allowed = o->is_unlisted_allowed,
                                        .synced = on_synced,
                                        .ctx = r };
    struct router_config config = {
        .resolver = resolver_dial(r->resolver),
        .rules = { o->is_loopback_allowed, o->proxy_ms },
        .plain = { .listen_fd = -1,
                   .listen = o->listen,
                   .is_guarded = is_open && o->is_local,
                   .is_owner_only = is_open && o->is_local && !o->is_unauthenticated_allowed },
        .tls = { .listen_fd = -1,
                 .listen = o->tls_listen,
                 .is_guarded = is_tls_open && o->is_tls_local,
                 .is_owner_only =
                     is_tls_open && o->is_tls_local && !o->is_unauthenticated_allowed },
        .certificates = { o->cert_file, o->key_file, o->ca_file, o->client_verify },
        .is_port_shared = o->is_port_shared,
        .allow_origin = o->allow_origin,
        .allow_host = o->allow_host,
        .proxies = o->proxies,
        .head_ms = o->head_ms,
        .max_body_bytes = o->max_body_bytes,
        .retries = (unsigned)o->retries,
        .retry_first_ms = o->retry_first_ms,
        .retry_most_ms = o->retry_most_ms,
        .has_access_log = o->has_access_log
    };
    const struct show_config show = { .metrics = o->metrics,
                                      .health = o->health,
                                      .write = write_metrics,
                                      .why_not_ready = why_not_ready,
                                      .ctx = r };

    if (known_new(&known, &r->picker, e) < 0 || open_authorizer(r, e) < 0)
        return -1;
    if (o->listen_fd != UINT64_MAX)
        config.plain.listen_fd = (int)o->listen_fd;
    config.picker = r->picker;
    config.authorizer = r->authorizer;
    return router_open(r->loop, &config, &r->router, e) < 0 ||
                   show_open(r->loop, &show, &r->show, e) < 0
               ? -1
               : 0;
}

/* Also half open. */
static void close_parts(struct role *r)
{
    router_close(r->router);
    show_close(r->show);
    known_free(r->picker);
    if (r->client)
        kube_client_free(r->client);
    for (int i = 0; i < CLOSE_TURNS && r->loop; i++)
        ev_loop_turn(r->loop);
    authorizer_free(r->authorizer);
    if (r->resolver)
        resolver_free(r->resolver);
    if (r->children)
        ev_children_close(r->children);
    if (r->loop)
        ev_loop_free(r->loop);
}

static int run(struct role *r, struct err *e)
{
    static const int signals[] = { SIGTERM, SIGINT, 0 };

    (void)signal(SIGPIPE, SIG_IGN);
    if (r->o->ready_fd != UINT64_MAX)
        (void)fcntl((int)r->o->ready_fd, F_SETFD, FD_CLOEXEC);
    if (ev_loop_new(&r->loop, e) < 0 ||
        ev_children_open(r->loop, signals, on_signal, r, &r->children, e) < 0 ||
        resolver_new(r->loop, &(struct resolver_config){ 0 }, &r->resolver, e) < 0 ||
        ((r->o->is_cached || r->o->mode == AUTHORIZE_REVIEW) && connect_client(r, e) < 0) ||
        open_parts(r, e) < 0)
        return -1;
    ev_timer_start(r->loop, &r->timer, SYNC_MS, not_synced, r);
    ev_loop_run(r->loop);
    ev_timer_stop(r->loop, &r->timer);
    return 0;
}

int router_command(int argc, char **argv)
{
    struct router_options o = { 0 };
    struct role r = { .o = &o };
    struct err e;
    int rest;

    if (opt_parse(&router_program, argc, argv, &o, &rest, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (o.is_help)
        return command_show(opt_help, &router_program);
    if (rest < argc) {
        (void)err_set(&e, ERR_USAGE, "unexpected argument '%s'", argv[rest]);
        return command_fail(&e, EXIT_USAGE);
    }
    if (router_options_check(&o, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    if (run(&r, &e) < 0) {
        close_parts(&r);
        return command_fail(&e, 1);
    }
    close_parts(&r);
    log_info("router.end", KV("code", r.exit_code));
    return r.exit_code;
}
