#include "cli/serving.h"

#include "base/fd.h"
#include "base/metric.h"
#include "cli/command.h"
#include "http/show.h"
#include "kubeclient/kubeclient.h"
#include "net/resolve.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>

#define LINE_MAX_BYTES 16384
#define CLOSE_TURNS    20 /* calls and watches that are called off are told so in later turns */

/* ---- the log ---- */

int serving_log_read(const struct serving_log *o, enum log_level *ret_level,
                     enum log_format *ret_format, struct err *e)
{
    bool is_json = o->format && strcmp(o->format, "json") == 0;

    if (!log_level_parse(o->level, ret_level))
        return err_set(e, ERR_USAGE, "--log-level: '%s' is not debug, info, warn or error",
                       o->level);
    if (o->format && !is_json && strcmp(o->format, "text") != 0)
        return err_set(e, ERR_USAGE, "--log-format: '%s' is neither text nor json", o->format);
    *ret_format = is_json ? LOG_JSON : LOG_TEXT;
    return 0;
}

int serving_log_open(const struct serving_log *o, struct err *e)
{
    enum log_level level;
    enum log_format format;

    if (serving_log_read(o, &level, &format, e) < 0)
        return -1;
    log_open(2, level, format);
    return 0;
}

/* ---- the process ---- */

static void on_signal(void *ctx, int number)
{
    struct serving *s = ctx;
    bool is_again = s->is_stopping;

    if (number == s->spec.news_signal) {
        s->spec.news(s->spec.ctx);
        return;
    }
    if (s->spec.stop_event)
        log_info(s->spec.stop_event, KV("signal", number));
    s->is_stopping = true;
    if (s->spec.stop)
        s->spec.stop(s->spec.ctx, is_again);
    else
        ev_loop_stop(s->loop);
}

int serving_open(struct serving *s, const struct serving_spec *spec, struct err *e)
{
    int signals[5] = { SIGTERM, SIGINT };
    struct rlimit before;
    size_t n = 2;

    *s = (struct serving){ .spec = *spec, .line = BUF_INIT(LINE_MAX_BYTES) };
    if (spec->ends_with_hangup)
        signals[n++] = SIGHUP;
    if (spec->news_signal)
        signals[n++] = spec->news_signal;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)mallopt(M_ARENA_MAX,
                  2); /* workers come and go: what they left must not lie in arenas of their own */
    if (spec->ready_fd != SERVING_NO_FD)
        (void)fcntl((int)spec->ready_fd, F_SETFD, FD_CLOEXEC);
    if (spec->is_server && fd_raise_limit(&before, e) < 0)
        return -1;
    return ev_loop_new(&s->loop, e) < 0 ||
                   ev_children_open(s->loop, signals, on_signal, s, &s->children, e) < 0
               ? -1
               : 0;
}

int serving_resolve(struct serving *s, struct err *e)
{
    return resolver_new(s->loop, &(struct resolver_config){ 0 }, &s->resolver, e);
}

int serving_connect(struct serving *s, const char *kubeconfig,
                    const struct kubeclient_config *config, struct err *e)
{
    struct kubeclient_config all = config ? *config : (struct kubeclient_config){ 0 };
    struct kubeconfig_choice choice = { .file = NULL };
    struct kubeconfig k;

    if (!s->resolver && serving_resolve(s, e) < 0)
        return -1;
    kubeconfig_choice_env(&choice);
    choice.file = kubeconfig;
    if (kubeconfig_load(&choice, &k, e) < 0)
        return -1;
    all.kubeconfig = &k;
    all.children = s->children;
    all.resolver = resolver_dial(s->resolver);
    return kubeclient_new(s->loop, &all, &s->client, e);
}

int serving_show(struct serving *s, const struct show_config *config, struct err *e)
{
    return show_open(s->loop, config, &s->show, e);
}

void serving_disconnect(struct serving *s)
{
    show_close(take_ptr(&s->show));
    kube_client_free(take_ptr(&s->client));
    for (int i = 0; i < CLOSE_TURNS && s->loop; i++)
        ev_loop_turn(s->loop);
}

void serving_close(struct serving *s)
{
    show_close(s->show);
    kube_client_free(s->client);
    resolver_free(s->resolver);
    ev_children_close(s->children);
    ev_loop_free(s->loop);
    buf_done(&s->line);
}

/* ---- what is said ---- */

struct json_out *serving_line(struct serving *s)
{
    buf_clear(&s->line);
    json_out_init(&s->out, &s->line, 0);
    json_out_object_begin(&s->out);
    return &s->out;
}

void serving_add_show(struct serving *s)
{
    json_out_key(&s->out, "metrics"), json_out_cstr(&s->out, show_metrics_address(s->show));
    json_out_key(&s->out, "health"), json_out_cstr(&s->out, show_health_address(s->show));
}

int serving_say(struct serving *s, struct err *e)
{
    uint64_t fd = s->spec.ready_fd;

    json_out_object_end(&s->out);
    if (json_out_end(&s->out, e) < 0 || buf_addc(&s->line, '\n', e) < 0)
        return -1;
    if (fd == SERVING_NO_FD || fd_write_all((int)fd, buf_span(&s->line), e) == 0)
        return 0;
    return err_wrap(e, "--ready-fd %llu", (unsigned long long)fd);
}

int serving_ready(struct serving *s, struct err *e)
{
    if (serving_say(s, e) < 0)
        return -1;
    if (s->spec.ready_fd != SERVING_NO_FD)
        command_let_go((int)s->spec.ready_fd);
    s->spec.ready_fd = SERVING_NO_FD;
    return 0;
}

int serving_write_build(const char *metric, struct buf *out, struct err *e)
{
    static const char labels[] =
        "git_version=\"silica-" SILICA_VERSION "\",git_commit=\"\",build_date=\"\","
        "go_version=\"\",compiler=\"gcc\",platform=\"linux\"";

    return metric_head(out, metric, "gauge", "What this program is.", e) < 0
               ? -1
               : metric_u64(out, metric, labels, 1, e);
}
