/* silica router: one address for all sandboxes of a cluster. */
#include "cli/command.h"

#include "base/fd.h"
#include "cli/pod_socket.h"
#include "cli/router_workers.h"
#include "cli/serving.h"
#include "http/show.h"
#include "kubeclient/kubeclient.h"
#include "net/resolve.h"
#include "router/known.h"
#include "router/overview.h"
#include "router/router.h"
#include "router/sockets.h"
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>

#define SYNC_MS                                                                                    \
    60000 /* for the cluster to say which sandboxes there are, before anything is served */

#define FLUSH_MS                                                                                   \
    3000 /* for the collector of traces to take the last of them, after the last request */

#define SECRET_MAX_BYTES 65536

struct role {
    const struct router_options *o;
    const struct router_seat *seat; /* NULL: it is the only process */
    struct serving s;               /* without a client where there is no cache */
    struct picker *picker;
    struct pod_socket tunnel, node; /* their directories; -1: none */
    struct dial_plug *sockets;      /* the node's */
    struct authorizer *authorizer;
    struct overview *overview;
    int disk_fd;           /* of what the page tells; -1 */
    struct tracer *tracer; /* or NULL */
    struct router *router;
    struct ev_timer timer; /* the cache's, then the drain's */
    bool is_ready, is_over;
};

/* ---- what is shown ---- */

static const char *why_not_ready(void *ctx)
{
    const struct role *r = ctx;

    return r->is_ready && !r->s.is_stopping ? NULL
                                            : "draining"; /* the public router's word for both */
}

static int write_metrics(void *ctx, struct buf *out, struct err *e)
{
    const struct role *r = ctx;

    if (serving_write_build("sandbox_router_build_info", out, e) < 0 ||
        (r->s.client && kubeclient_metrics_write(r->s.client, out, e) < 0))
        return -1;
    return router_metrics_write(r->router, out, e);
}

static int tell_ready(struct role *r, struct err *e)
{
    struct json_out *out = serving_line(&r->s);

    json_out_key(out, "listen"), json_out_array_begin(out);
    if (router_address(r->router))
        json_out_cstr(out, router_address(r->router));
    if (router_tls_address(r->router))
        json_out_cstr(out, router_tls_address(r->router));
    json_out_array_end(out);
    serving_add_show(&r->s);
    log_info("router.serve", KV("listen", router_address(r->router)),
             KV("tls", router_tls_address(r->router)),
             KV("metrics", show_metrics_address(r->s.show)),
             KV("health", show_health_address(r->s.show)), KV("cache", r->o->is_cached),
             KV("tracing", r->tracer != NULL));
    return serving_ready(&r->s, e);
}

/* ---- life ---- */

static void fail(struct role *r, const struct err *e)
{
    log_error("router.fail", KV("err", e), KV("hint", (const char *)e->hint));
    r->s.exit_code = 1;
    ev_loop_stop(r->s.loop);
}

static void on_synced(void *ctx)
{
    struct role *r = ctx;
    struct err e;

    if (!r->router) /* it could not be opened, and the loop turns for what it has to let go */
        return;
    ev_timer_stop(r->s.loop, &r->timer);
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

static void on_told(void *ctx)
{
    struct role *r = ctx;

    ev_loop_stop(r->s.loop);
}

/* Nothing is under way any more, or is not waited for. */
static void on_drained(void *ctx)
{
    struct role *r = ctx;

    if (r->is_over)
        return;
    r->is_over = true;
    if (r->tracer)
        tracer_flush(r->tracer, FLUSH_MS, on_told, r);
    else
        on_told(r);
}

static void drain_over(void *ctx)
{
    struct role *r = ctx;

    log_warn("router.cut", KV("after_ms", r->o->shutdown_ms));
    on_drained(r);
}

static void stop(void *ctx, bool is_again)
{
    struct role *r = ctx;

    /* Who ends all processes of a service at once told us, and so does the one above us, which has its own patience. */
    if (is_again && r->seat)
        return;
    if (is_again || !r->is_ready) { /* asked twice, or nothing is under way */
        ev_loop_stop(r->s.loop);
        return;
    }
    ev_timer_start(r->s.loop, &r->timer, r->o->shutdown_ms, drain_over, r);
    router_drain(r->router, on_drained, r);
}

static int open_authorizer(struct role *r, struct err *e)
{
    const struct router_options *o = r->o;
    OWN(buf_done) struct buf secret = BUF_INIT(SECRET_MAX_BYTES);
    struct authorizer_config config = { .mode = o->mode,
                                        .secret = span_cstr(o->token),
                                        .review = { .client = r->s.client,
                                                    .loop = r->s.loop,
                                                    .ttl_ms = o->review_ttl_ms,
                                                    .rows_max = o->review_rows,
                                                    .is_token_required = o->is_token_required,
                                                    .audiences = o->audiences },
                                        .access = { .what = REVIEW_ACCESS,
                                                    .client = o->tunnel ? r->s.client : NULL,
                                                    .loop = r->s.loop,
                                                    .ttl_ms = ACCESS_TTL_MS,
                                                    .no_ttl_ms = ACCESS_NO_TTL_MS,
                                                    .rows_max = ACCESS_ROWS_MAX } };

    if (o->mode == AUTHORIZE_SCOPED) {
        if (fd_read_file(o->secret_file, &secret, e) < 0)
            return err_wrap(e, "--authz-scoped-token-secret-file");
        config.secret = buf_span(&secret);
    }
    return authorizer_new(&config, &r->authorizer, e);
}

static int find_doors(struct role *r, struct router_config *config, struct err *e)
{
    const struct router_options *o = r->o;

    if (r->seat) { /* the one above us listens */
        config->plain.listen_fd = r->seat->plain_fd;
        config->plain.listen = NULL;
        config->tls.listen_fd = r->seat->tls_fd;
        config->tls.listen = NULL;
        config->tunnel.listen_fd = r->seat->tunnel_fd;
        config->board = r->seat->board;
        config->seat = r->seat->number;
        return 0;
    }
    if (o->listen_fd != SERVING_NO_FD)
        config->plain.listen_fd = (int)o->listen_fd;
    if (o->tunnel && (pod_socket_open(&r->tunnel, o->tunnel, e) < 0 ||
                      pod_socket_listen(&r->tunnel, &config->tunnel.listen_fd, e) < 0))
        return err_wrap(e, "--tunnel-socket");
    return 0;
}

static int open_tracer(struct role *r, struct err *e)
{
    struct err why;

    if (!r->o->is_traced ||
        tracer_new(r->s.loop, resolver_dial(r->s.resolver), &r->o->trace, &r->tracer, &why) == 0)
        return 0;
    if (!r->o->is_trace_given) {
        router_trace_off(&why);
        return 0;
    }
    *e = why;
    return -1;
}

static int open_parts(struct role *r, struct err *e)
{
    const struct router_options *o = r->o;
    bool is_open = o->mode == AUTHORIZE_ALL; /* to everybody who can connect */
    bool is_tls_open = is_open && o->client_verify != TLS_VERIFY_REQUIRED;
    const struct known_config known = { .client = o->is_cached ? r->s.client : NULL,
                                        .loop = r->s.loop,
                                        .namespace = o->cache_namespace,
                                        .cluster_domain = o->cluster_domain,
                                        .is_unlisted_allowed = o->is_unlisted_allowed,
                                        .synced = on_synced,
                                        .ctx = r };
    struct router_config config = {
        .resolver = resolver_dial(r->s.resolver),
        /* Where sockets are made inside, an address only says which Pod is meant: nothing connects to it. */
        .rules = { o->is_loopback_allowed || o->pod_sockets, o->proxy_ms },
        .plain = { .listen_fd = -1,
                   .listen = o->listen,
                   .is_guarded = is_open && o->is_local,
                   .is_owner_only = is_open && o->is_local && !o->is_unauthenticated_allowed },
        .tls = { .listen_fd = -1,
                 .listen = o->tls_listen,
                 .is_guarded = is_tls_open && o->is_tls_local,
                 .is_owner_only =
                     is_tls_open && o->is_tls_local && !o->is_unauthenticated_allowed },
        .tunnel = { .listen_fd = -1, .is_guarded = true },
        .certificates = { o->cert_file, o->key_file, o->ca_file, o->client_verify },
        .is_port_shared = o->is_port_shared,
        .allow_origin = o->allow_origin,
        .allow_host = o->allow_host,
        .cluster_domain = o->cluster_domain,
        .proxies = o->proxies,
        .head_ms = o->head_ms,
        .max_body_bytes = o->max_body_bytes,
        .websocket = { o->ws_idle_ms, o->ws_lifetime_ms, o->ws_message_max },
        .websockets_per_client = o->ws_per_client,
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
    if (find_doors(r, &config, e) < 0)
        return -1;
    if (o->pod_sockets) {
        if (pod_socket_open(&r->node, o->pod_sockets, e) < 0)
            return err_wrap(e, "--pod-sockets");
        config.sockets = r->sockets = sockets_new(r->s.loop, &r->node.addr);
    }
    if (o->status_disk) { /* a page that cannot say how full it is, is one all the same */
        r->disk_fd = open(o->status_disk, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (r->disk_fd < 0)
            log_warn("router.disk", KV("dir", o->status_disk), KV("errno", errno));
    }
    if (o->has_status_page && r->s.client)
        config.overview = r->overview = overview_new(r->s.client, r->disk_fd, o->status_disk_floor);
    if (open_tracer(r, e) < 0)
        return -1;
    config.tracer = r->tracer;
    config.picker = r->picker;
    config.authorizer = r->authorizer;
    return router_open(r->s.loop, &config, &r->router, e) < 0 || serving_show(&r->s, &show, e) < 0
               ? -1
               : 0;
}

/* Also half open. */
static void close_parts(struct role *r)
{
    router_close(r->router);
    sockets_free(r->sockets);
    known_free(r->picker);
    tracer_free(r->tracer);
    serving_disconnect(&r->s);
    authorizer_free(r->authorizer);
    overview_free(r->overview);
    own_fd_close(&r->disk_fd);
    pod_socket_close(&r->tunnel);
    pod_socket_close(&r->node);
    serving_close(&r->s);
}

static int run(struct role *r, struct err *e)
{
    const struct serving_spec spec = { .stop_event = "router.stop",
                                       .stop = stop,
                                       .ctx = r,
                                       .ready_fd = r->o->ready_fd,
                                       .is_server = true };
    const struct kubeclient_config client = { .counts = r->seat ? r->seat->counts : NULL };

    if (serving_open(&r->s, &spec, e) < 0 || serving_resolve(&r->s, e) < 0 ||
        (router_has_client(r->o) && serving_connect(&r->s, r->o->kubeconfig, &client, e) < 0) ||
        open_parts(r, e) < 0)
        return -1;
    ev_timer_start(r->s.loop, &r->timer, SYNC_MS, not_synced, r);
    ev_loop_run(r->s.loop);
    ev_timer_stop(r->s.loop, &r->timer);
    return 0;
}

int router_serve(const struct router_options *o, const struct router_seat *seat)
{
    struct role r = {
        .o = o, .seat = seat, .tunnel = { .dir_fd = -1 }, .node = { .dir_fd = -1 }, .disk_fd = -1
    };
    struct err e;

    if (run(&r, &e) < 0) {
        close_parts(&r);
        return command_fail(&e, EXIT_FAILED);
    }
    close_parts(&r);
    log_info("router.end", KV("code", r.s.exit_code));
    return r.s.exit_code;
}

static int serve(struct router_options *o)
{
    struct err e;

    if (router_options_check(o, &e) < 0)
        return command_fail(&e, EXIT_USAGE);
    return o->workers > 1 ? router_workers(o) : router_serve(o, NULL);
}

int router_command(int argc, char **argv)
{
    struct router_options o = { 0 };
    int code = command_parse(&router_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    o.is_trace_given = opt_was_given(&router_program, argc, argv, "--enable-tracing");
    code = serve(&o);
    router_options_done(&o);
    return code;
}
