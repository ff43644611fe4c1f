/* silica controller: the reconcilers against any API server, one of several processes leading. */
#include "cli/command.h"

#include "base/fd.h"
#include "base/metric.h"
#include "base/time.h"
#include "cli/controller_debug.h"
#include "cli/controller_options.h"
#include "cli/controller_webhook.h"
#include "cli/serving.h"
#include "controller/controller.h"
#include "controller/domains.h"
#include "http/show.h"
#include "kube/fence.h"
#include "kubeclient/kubeclient.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>

#define LEASE_NAME      "a3317529.agent-sandbox.x-k8s.io" /* the public controller's: both may compete */
#define LEASE_NAMESPACE "agent-sandbox-system"

/* From the first call to the last: lead, work, let go. */
struct role {
    const struct controller_options *o;
    struct serving s;
    struct kube_client
        *fenced; /* its client for who leads, or NULL: it writes only while the Lease is held */
    struct lease *lease;
    struct controller *controller;
    struct controller_webhook *webhook; /* or NULL */
    struct controller_debug *debug;     /* the same */
    struct domains domains;             /* of the operator's file; empty: the default */
    char lease_namespace[256];
    char identity[HOST_NAME_MAX + 40];
    enum log_level level; /* that was asked for */
    bool is_working, is_unreached;
    uint64_t unreached_ms; /* since when */
};

/* ---- work ---- */

static void on_working(void *ctx)
{
    struct role *r = ctx;

    r->is_working = true;
    log_info("controller.working", KV("identity", (const char *)r->identity));
}

static void work(void *ctx)
{
    struct role *r = ctx;
    const struct controller_options *o = r->o;
    struct controller_config config = CONTROLLER_CONFIG_INIT;
    struct err e;

    config.has_extensions = o->has_extensions;
    config.is_remote = true;
    config.cluster_domain = o->cluster_domain;
    config.sandbox_workers = (unsigned)o->sandbox_workers;
    config.template_workers = MAX((unsigned)o->template_workers, 1u);
    config.pool_workers = (unsigned)o->pool_workers;
    config.claim_workers = (unsigned)o->claim_workers;
    config.pool_batch = o->pool_batch;
    config.pool_grace_ms = o->pool_grace_ms;
    config.pool_recheck_ms = o->pool_recheck_ms;
    config.write_behind_ms = o->write_behind_ms;
    config.pool_delay_ms = o->pool_delay_ms;
    config.pool_rate = o->pool_rate_number;
    config.is_pool_evictable = o->is_pool_evictable;
    config.is_cache_selected = o->is_cache_selected;
    config.forgets_fields = !o->keeps_fields;
    config.has_no_claim_events = o->has_no_claim_events;
    config.has_no_claim_times = o->has_no_claim_annotations;
    if (r->domains.names)
        config.label_domains = r->domains.names;
    config.started = on_working;
    config.ctx = r;
    if (r->lease)
        r->fenced = fence_new(r->s.client, r->lease);
    if (controller_open(r->fenced ? r->fenced : r->s.client, &config, &r->controller, &e) == 0)
        return;
    log_error("controller.open", KV("err", &e));
    r->s.exit_code = 1;
    ev_loop_stop(r->s.loop);
}

/* Somebody else may work from now on: not one write more. What is under way is left as it is, as after a crash. */
static void on_lost(void *ctx)
{
    struct role *r = ctx;

    if (r->s.is_stopping)
        return;
    log_error("controller.lost", KV("identity", (const char *)r->identity));
    (void)fflush(NULL);
    _exit(1);
}

static void on_drained(void *ctx)
{
    struct role *r = ctx;

    ev_loop_stop(r->s.loop);
}

/* Conversions are served to the last: another replica's clients may have theirs here. */
static void on_released(void *ctx)
{
    struct role *r = ctx;

    r->lease = NULL;
    controller_webhook_drain(r->webhook, on_drained, r);
}

static void on_rest(void *ctx)
{
    struct role *r = ctx;

    r->controller = NULL;
    r->is_working = false;
    if (r->lease)
        lease_close(r->lease, on_released, r);
    else
        on_released(r);
}

static void stop(void *ctx, bool is_again)
{
    struct role *r = ctx;

    if (is_again) { /* asked twice: at once */
        r->s.exit_code = 1;
        ev_loop_stop(r->s.loop);
        return;
    }
    if (r->controller)
        controller_close(r->controller, on_rest, r);
    else
        on_rest(r);
}

/* The API server went away, or is back: one line each, however many calls find out. */
static void on_reached(void *ctx, const struct err *e)
{
    struct role *r = ctx;
    uint64_t now = time_mono_ms();

    r->is_unreached = e;
    if (e)
        log_warn("controller.unreachable", KV("err", e));
    else
        log_info("controller.reached", KV("ms", now - r->unreached_ms));
    r->unreached_ms = now;
}

/* ---- what is shown ---- */

static int write_leading(const struct role *r, struct buf *out, struct err *e)
{
    bool is_leading = r->o->is_elected ? r->lease && lease_is_held(r->lease) : true;

    return metric_head(out, "leader_election_master_status", "gauge",
                       "Whether this process holds the Lease.", e) < 0
               ? -1
               : metric_u64(out, "leader_election_master_status", "name=\"" LEASE_NAME "\"",
                            is_leading, e);
}

static int write_reach(const struct role *r, struct buf *out, struct err *e)
{
    static const char name[] = "silica_apiserver_reachable";

    return metric_head(out, name, "gauge", "Whether the API server answered the last request.", e) <
                   0
               ? -1
               : metric_u64(out, name, "", !r->is_unreached, e);
}

static int write_metrics(void *ctx, struct buf *out, struct err *e)
{
    struct role *r = ctx;

    if (serving_write_build("agent_sandbox_build_info", out, e) < 0 ||
        write_leading(r, out, e) < 0 || write_reach(r, out, e) < 0 ||
        kubeclient_metrics_write(r->s.client, out, e) < 0 ||
        controller_webhook_metrics(r->webhook, out, e) < 0)
        return -1;
    return r->controller ? controller_metrics_write(r->controller, out, e) : 0;
}

static const char *why_not_ready(void *ctx)
{
    struct role *r = ctx;

    return controller_webhook_why_not(r->webhook);
}

static bool on_other(void *ctx, struct http_exchange *x)
{
    struct role *r = ctx;

    return controller_debug_answer(r->debug, r->controller, x);
}

/* USR1: everything, and the next time what was asked for at the start again. */
static void on_news(void *ctx)
{
    struct role *r = ctx;
    enum log_level now = log_level() == LOG_DEBUG ? r->level : LOG_DEBUG;

    log_set_level(now);
    log_warn("controller.log", KV("is_debug", now == LOG_DEBUG));
}

static int tell_ready(struct role *r, struct err *e)
{
    struct json_out *out = serving_line(&r->s);

    serving_add_show(&r->s);
    json_out_key(out, "webhook"), json_out_cstr(out, controller_webhook_address(r->webhook));
    log_info("controller.show", KV("metrics", show_metrics_address(r->s.show)),
             KV("health", show_health_address(r->s.show)),
             KV("webhook", controller_webhook_address(r->webhook)));
    return serving_ready(&r->s, e);
}

/* ---- the process ---- */

/* A pod's namespace, else where the public manifests put controllers. */
static void choose_namespace(struct role *r)
{
    OWN(buf_done) struct buf text = BUF_INIT(sizeof r->lease_namespace - 1);
    const char *given = r->o->lease_namespace;
    struct err e;

    if (given && *given)
        (void)buf_add_capped(&text, span_cstr(given));
    else if (fd_read_file(KUBECONFIG_ACCOUNT_DIR "/namespace", &text, &e) < 0 || text.n == 0)
        (void)buf_add_capped(&text, SPAN(LEASE_NAMESPACE));
    (void)snprintf(r->lease_namespace, sizeof r->lease_namespace, "%s", buf_cstr(&text));
}

static void choose_identity(struct role *r)
{
    char host[HOST_NAME_MAX + 1] = "silica";
    uint64_t random[2] = { 0 };

    (void)gethostname(host, sizeof host - 1);
    if (getrandom(random, sizeof random, 0) != sizeof random)
        abort();
    (void)snprintf(r->identity, sizeof r->identity, "%s_%016llx%016llx", host,
                   (unsigned long long)random[0], (unsigned long long)random[1]);
}

static void begin(struct role *r)
{
    if (!r->o->is_elected) {
        work(r);
        return;
    }
    r->lease = lease_start(r->s.client, &(struct lease_spec){ .namespace = r->lease_namespace,
                                                              .name = LEASE_NAME,
                                                              .identity = r->identity,
                                                              .on_started = work,
                                                              .on_stopped = on_lost,
                                                              .ctx = r });
}

static int open_show(struct role *r, const struct show_config *show, struct err *e)
{
    r->debug = controller_debug_new(r->s.loop, r->o);
    return serving_show(&r->s, show, e);
}

static int run(struct role *r, struct err *e)
{
    const struct serving_spec spec = { .stop_event = "controller.stop",
                                       .stop = stop,
                                       .ctx = r,
                                       .ready_fd = r->o->ready_fd,
                                       .news_signal = SIGUSR1,
                                       .news = on_news };
    const struct kubeclient_config client = { .qps = MAX(r->o->qps_number, 0),
                                              .burst = (unsigned)r->o->burst,
                                              .reached = on_reached,
                                              .ctx = r };
    const struct show_config show = { .metrics = r->o->metrics,
                                      .health = r->o->health,
                                      .write = write_metrics,
                                      .other = on_other,
                                      .why_not_ready = why_not_ready,
                                      .ctx = r };

    r->level = log_level() == LOG_DEBUG ? LOG_INFO : log_level();
    choose_namespace(r);
    choose_identity(r);
    if ((r->o->has_extensions && domains_read(DOMAINS_FILE, &r->domains, e) < 0) ||
        serving_open(&r->s, &spec, e) < 0 ||
        serving_connect(&r->s, r->o->kubeconfig, &client, e) < 0 ||
        controller_webhook_open(&r->s, r->o, &r->webhook, e) < 0 || open_show(r, &show, e) < 0 ||
        tell_ready(r, e) < 0)
        return -1;
    begin(r);
    ev_loop_run(r->s.loop);
    return 0;
}

int controller_command(int argc, char **argv)
{
    struct controller_options o = { 0 };
    struct role r = { .o = &o };
    struct err e;
    int code = command_parse(&controller_program, argc, argv, &o, NULL);

    if (code != COMMAND_GOES_ON)
        return code;
    if (controller_options_check(&o, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    controller_options_warn(argc, argv);
    if (run(&r, &e) < 0)
        return command_fail(&e, EXIT_FAILED);
    /* The process ends here: a second signal may have left work under way, which nobody waits for. */
    log_info("controller.end", KV("code", r.s.exit_code));
    show_close(r.s.show);
    controller_webhook_close(r.webhook);
    return r.s.exit_code;
}
