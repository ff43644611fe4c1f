#include "cli/controller_webhook.h"

#include "base/log.h"
#include "base/metric.h"
#include "cli/controller_options.h"
#include "cli/serving.h"
#include "controller/certs_keeper.h"
#include "ev/timer.h"
#include "kubeclient/file.h"

#include <limits.h>
#include <stdio.h>

#define FILES_LOOK_MS     1000 /* a stat of two files */
#define COMBINED_NAME     "cert.pem"
#define ADDRESS_MAX_BYTES 16

struct controller_webhook {
    struct serving *s;
    const struct controller_options *o;
    struct webhook *webhook;
    struct certs_keeper *keeper; /* NULL: files */
    struct buf cert_path, key_path;
    struct file_stamp cert_stamp, key_stamp;
    struct ev_timer look;
    uint64_t reads, read_errors;
};

/* ---- files ---- */

static int choose_files(struct controller_webhook *w, struct err *e)
{
    const struct controller_options *o = w->o;
    const char *cert = o->cert_name, *key = o->key_name;
    OWN(buf_done) struct buf both = BUF_INIT(PATH_MAX);

    if (buf_addf(&both, e, "%s/" COMBINED_NAME, o->cert_dir) < 0 ||
        buf_addf(&w->cert_path, e, "%s/%s", o->cert_dir, cert) < 0 ||
        buf_addf(&w->key_path, e, "%s/%s", o->cert_dir, key) < 0)
        return -1;
    if (strcmp(cert, "tls.crt") != 0 || strcmp(key, "tls.key") != 0 ||
        access(buf_cstr(&w->cert_path), F_OK) == 0 || access(buf_cstr(&w->key_path), F_OK) == 0 ||
        access(buf_cstr(&both), F_OK) < 0)
        return 0;
    buf_clear(&w->cert_path);
    buf_clear(&w->key_path);
    return buf_add(&w->cert_path, buf_span(&both), e) < 0 ||
                   buf_add(&w->key_path, buf_span(&both), e) < 0
               ? -1
               : 0;
}

static int read_files(struct controller_webhook *w, struct buf *cert, struct buf *key,
                      struct err *e)
{
    (void)file_has_changed(buf_cstr(&w->cert_path), &w->cert_stamp);
    (void)file_has_changed(buf_cstr(&w->key_path), &w->key_stamp);
    return file_read(buf_cstr(&w->cert_path), cert, e) < 0 ||
                   file_read(buf_cstr(&w->key_path), key, e) < 0
               ? -1
               : 0;
}

static int renew(struct controller_webhook *w, struct err *e)
{
    OWN(file_wipe) struct buf cert = BUF_INIT(CERTS_MAX_BYTES), key = BUF_INIT(CERTS_MAX_BYTES);

    if (read_files(w, &cert, &key, e) < 0)
        return -1;
    return webhook_renew(w->webhook, &(struct webhook_pair){ buf_span(&cert), buf_span(&key) }, e);
}

/* Two files are swapped one after the other: a pair that does not fit is looked at again when the second one changes. */
static void look(void *ctx)
{
    struct controller_webhook *w = ctx;
    bool has_changed = file_has_changed(buf_cstr(&w->cert_path), &w->cert_stamp);
    struct err e;

    if (file_has_changed(buf_cstr(&w->key_path), &w->key_stamp) || has_changed) {
        w->reads++;
        if (renew(w, &e) < 0) {
            w->read_errors++;
            log_warn("webhook.certificate", KV("err", &e), KV("kept", "the old one"));
        } else {
            log_info("webhook.certificate", KV("file", buf_cstr(&w->cert_path)));
        }
    }
    ev_timer_start(w->s->loop, &w->look, FILES_LOOK_MS, look, w);
}

/* ---- life ---- */

static int serve(struct controller_webhook *w, const struct webhook_pair *pair, struct err *e)
{
    char listen[ADDRESS_MAX_BYTES];

    (void)snprintf(listen, sizeof listen, ":%u", (unsigned)w->o->webhook_port);
    return webhook_open(w->s->loop,
                        &(struct webhook_config){
                            .listen = listen, .pair = *pair, .review = { w->o->has_extensions } },
                        &w->webhook, e);
}

static int open_files(struct controller_webhook *w, struct err *e)
{
    OWN(file_wipe) struct buf cert = BUF_INIT(CERTS_MAX_BYTES), key = BUF_INIT(CERTS_MAX_BYTES);

    if (choose_files(w, e) < 0 || read_files(w, &cert, &key, e) < 0) {
        err_hint(e, "put the certificate there, or let it be made: --manage-webhook-certs");
        return err_wrap(e, "the webhook's certificate");
    }
    if (serve(w, &(struct webhook_pair){ buf_span(&cert), buf_span(&key) }, e) < 0)
        return -1;
    w->reads = 1;
    ev_timer_start(w->s->loop, &w->look, FILES_LOOK_MS, look, w);
    return 0;
}

static void on_broken(void *ctx, const struct err *e)
{
    struct controller_webhook *w = ctx;

    log_error("webhook.secret", KV("err", e), KV("hint", (const char *)e->hint));
    w->s->exit_code = 1;
    ev_loop_stop(w->s->loop);
}

static int open_kept(struct controller_webhook *w, struct err *e)
{
    const struct certs_keeper_config config = { .namespace = w->o->webhook_namespace,
                                                .service = w->o->webhook_service,
                                                .cluster_domain = w->o->cluster_domain,
                                                .check_ms = w->o->cert_check_ms,
                                                .broken = on_broken,
                                                .ctx = w };
    struct webhook_pair pair;

    if (certs_keeper_new(w->s->client, &config, &w->keeper, e) < 0)
        return -1;
    pair = certs_keeper_pair(w->keeper);
    if (serve(w, &pair, e) < 0)
        return -1;
    certs_keeper_start(w->keeper, w->webhook);
    return 0;
}

int controller_webhook_open(struct serving *s, const struct controller_options *o,
                            struct controller_webhook **ret, struct err *e)
{
    struct controller_webhook *w;

    *ret = NULL;
    if (!o->is_webhook)
        return 0;
    w = NEW(struct controller_webhook);
    w->s = s;
    w->o = o;
    w->cert_path.max = w->key_path.max = PATH_MAX;
    *ret = w;
    return o->manages_certs ? open_kept(w, e) : open_files(w, e);
}

void controller_webhook_drain(struct controller_webhook *w, void (*done)(void *ctx), void *ctx)
{
    if (!w) {
        done(ctx);
        return;
    }
    certs_keeper_close(take_ptr(&w->keeper));
    webhook_drain(w->webhook, done, ctx);
}

void controller_webhook_close(struct controller_webhook *w)
{
    if (!w)
        return;
    certs_keeper_close(w->keeper);
    webhook_free(w->webhook);
    ev_timer_stop(w->s->loop, &w->look);
    buf_done(&w->cert_path);
    buf_done(&w->key_path);
    free(w);
}

/* ---- what is shown ---- */

const char *controller_webhook_address(const struct controller_webhook *w)
{
    return w ? webhook_address(w->webhook) : NULL;
}

const char *controller_webhook_why_not(const struct controller_webhook *w)
{
    return w && w->keeper ? certs_keeper_why_not(w->keeper) : NULL;
}

static int write_reads(const struct controller_webhook *w, struct buf *out, struct err *e)
{
    static const char reads[] = "certwatcher_read_certificate_total",
                      errors[] = "certwatcher_read_certificate_errors_total";

    return metric_head(out, reads, "counter", "Times the certificate's files were read.", e) < 0 ||
                   metric_u64(out, reads, "", w->reads, e) < 0 ||
                   metric_head(out, errors, "counter", "Times they could not be used.", e) < 0 ||
                   metric_u64(out, errors, "", w->read_errors, e) < 0
               ? -1
               : 0;
}

int controller_webhook_metrics(const struct controller_webhook *w, struct buf *out, struct err *e)
{
    if (!w)
        return 0;
    if (webhook_metrics_write(w->webhook, out, e) < 0)
        return -1;
    if (w->keeper)
        return certs_keeper_metrics_write(w->keeper, out, e);
    return w->o->manages_certs ? 0 : write_reads(w, out, e);
}
