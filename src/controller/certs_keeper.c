#include "controller/certs_keeper.h"

#include "base/log.h"
#include "base/metric.h"
#include "base/str.h"
#include "ev/timer.h"
#include "kube/backoff.h"
#include "kube/client.h"

#include <stdio.h>

#define SECRET_NAME    "agent-sandbox-webhook-certs" /* the public controller's */
#define MANAGER        "silica-controller"
#define DEFINITIONS    4
#define HOST_MAX_BYTES 254
#define BODY_MAX_BYTES (1024u * 1024)
#define RETRY_FIRST_MS 500
#define NOT_YET        "the webhook's certificate is not known to the API server yet\n"
/* A staged pair waits so many rounds: the other replicas and all API servers then know its authority. */
#define STAGE_ROUNDS(ms) ((ms) + (ms) / 2)

static const char *const definition_names[DEFINITIONS] = {
    "sandboxes.agents.x-k8s.io",
    "sandboxtemplates.extensions.agents.x-k8s.io",
    "sandboxclaims.extensions.agents.x-k8s.io",
    "sandboxwarmpools.extensions.agents.x-k8s.io",
};

/* What a definition says of the way to us. */
struct definition {
    bool is_webhook, is_url;
    bool is_service; /* ours, with our path */
    char host[HOST_MAX_BYTES];
    struct buf bundle; /* caBundle, as it is written */
};

enum phase { READING_DEFINITIONS, READING_SECRET, WRITING_SECRET, WRITING_DEFINITIONS, RESTING };

struct certs_keeper {
    struct kube_client *client;
    struct ev_loop *loop;
    struct certs_keeper_config config;
    struct webhook *webhook;
    const struct kind *secret_kind, *definition_kind;
    struct certs certs;
    struct certs_names names;
    struct buf bundle; /* our ca.crt as definitions have it */
    struct buf served; /* the certificate that the webhook shows */
    struct definition definitions[DEFINITIONS];
    enum phase phase;
    size_t at; /* the definition that is looked at */
    struct kube_call *call;
    struct ev_timer timer;
    struct backoff backoff;
    int failed_code; /* of the refusal that was said last; INT_MIN: all is well */
    uint64_t renewals, failures;
    bool is_settled, is_known, is_closing; /* is_known: there was a Secret that could be used */
};

static void step_on(struct certs_keeper *k);
static void begin(void *ctx);

/* ---- names ---- */

static int add_name(struct certs_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->at[i], name) == 0)
            return 0;
    if (names->n == CERTS_NAMES_MAX)
        return -1;
    names->at[names->n++] = name;
    names->at[names->n] = NULL;
    return 0;
}

/* The Service's, and hosts of URLs in definitions. */
static int collect_names(struct certs_keeper *k, struct err *e)
{
    const struct certs_keeper_config *c = &k->config;
    size_t at[4];

    k->names.n = 0;
    buf_clear(&k->names.texts);
    at[0] = 0;
    if (buf_addf(&k->names.texts, e, "%s.%s.svc", c->service, c->namespace) < 0 ||
        buf_addc(&k->names.texts, 0, e) < 0)
        return -1;
    at[1] = k->names.texts.n;
    if (buf_addf(&k->names.texts, e, "%s.%s.svc.%s", c->service, c->namespace, c->cluster_domain) <
            0 ||
        buf_addc(&k->names.texts, 0, e) < 0)
        return -1;
    at[2] = k->names.texts.n;
    if (buf_addf(&k->names.texts, e, "%s.%s", c->service, c->namespace) < 0)
        return -1;
    for (size_t i = 0; i < 3; i++)
        (void)add_name(&k->names, (const char *)k->names.texts.p + at[i]);
    (void)add_name(&k->names, c->service);
    for (size_t i = 0; i < DEFINITIONS; i++)
        if (k->definitions[i].is_url && *k->definitions[i].host)
            (void)add_name(&k->names, k->definitions[i].host);
    return 0;
}

/* ---- what is said ---- */

static void rest(struct certs_keeper *k, uint64_t ms)
{
    k->phase = RESTING;
    ev_timer_start(k->loop, &k->timer, ms, begin, k);
}

/* Once per reason: what goes on for hours is one line. */
static void say_failure(struct certs_keeper *k, const char *what, int code, const char *why)
{
    uint64_t ms =
        MIN(backoff_next_ms(&k->backoff), MAX(k->config.check_ms, (uint64_t)RETRY_FIRST_MS));

    k->failures++;
    if (k->failed_code != code)
        log_warn("webhook.certs", KV("what", what), KV("code", code), KV("err", why),
                 KV("retry_ms", ms));
    k->failed_code = code;
    rest(k, ms);
}

static void end_round(struct certs_keeper *k)
{
    if (k->failed_code != INT32_MIN)
        log_info("webhook.certs", KV("what", "well again"));
    k->failed_code = INT32_MIN;
    k->is_settled = true;
    backoff_reset(&k->backoff);
    rest(k, backoff_jitter_ms(k->config.check_ms, 0.1));
}

/* ---- calls ---- */

static void ask(struct certs_keeper *k, enum kube_verb verb, const char *name, struct span patch,
                kube_done_fn done)
{
    bool is_secret = k->phase == READING_SECRET || k->phase == WRITING_SECRET;

    k->call = kube_call_start(k->client,
                              &(struct kube_request){
                                  .verb = verb,
                                  .kind = is_secret ? k->secret_kind : k->definition_kind,
                                  .namespace = is_secret ? k->config.namespace : NULL,
                                  .name = name,
                                  .body = patch,
                                  .patch = KUBE_PATCH_MERGE,
                                  .manager = verb == KUBE_GET ? NULL : MANAGER,
                              },
                              done, k);
}

static void free_keeper(void *ctx)
{
    struct certs_keeper *k = ctx;

    certs_done(&k->certs);
    buf_done(&k->names.texts);
    buf_done(&k->bundle);
    buf_done(&k->served);
    for (size_t i = 0; i < DEFINITIONS; i++)
        buf_done(&k->definitions[i].bundle);
    free(k);
}

/* The call has ended. False: so has the keeper. */
static bool is_on(struct certs_keeper *k)
{
    k->call = NULL;
    if (k->is_closing)
        ev_free_later(k->loop, k, free_keeper);
    return !k->is_closing;
}

/* ---- definitions ---- */

/* "https://[::1]:9443/convert": what stands between the slashes, without brackets and port. */
static void read_host(struct span url, char host[HOST_MAX_BYTES])
{
    size_t n;

    *host = '\0';
    if (!span_starts(url, "https://"))
        return;
    url = span_skip(url, strlen("https://"));
    n = span_find(url, '/');
    url = span_slice(url, 0, MIN(n, url.n));
    if (url.n && url.p[0] == '[') {
        n = span_find(url, ']');
        url = span_slice(url, 1, MIN(n, url.n));
    } else {
        n = span_find(url, ':');
        url = span_slice(url, 0, MIN(n, url.n));
    }
    if (url.n < HOST_MAX_BYTES)
        (void)snprintf(host, HOST_MAX_BYTES, "%.*s", SPAN_ARG(url));
}

static void read_definition(const struct certs_keeper *k, const struct object *o,
                            struct definition *d)
{
    const struct json *conversion = json_get(object_member(o, "spec"), "conversion"),
                      *client = json_get(json_get(conversion, "webhook"), "clientConfig"),
                      *service = json_get(client, "service");

    buf_clear(&d->bundle);
    d->is_webhook = span_is(json_str(json_get(conversion, "strategy")), "Webhook");
    d->is_url = json_str(json_get(client, "url")).n > 0;
    read_host(json_str(json_get(client, "url")), d->host);
    d->is_service = span_is(json_str(json_get(service, "name")), k->config.service) &&
                    span_is(json_str(json_get(service, "namespace")), k->config.namespace) &&
                    span_is(json_str(json_get(service, "path")), "/convert");
    (void)buf_add_capped(&d->bundle, json_str(json_get(client, "caBundle")));
}

static void on_definition(void *ctx, const struct kube_answer *answer)
{
    struct certs_keeper *k = ctx;
    struct definition *d = &k->definitions[k->at];

    if (!is_on(k))
        return;
    d->is_webhook = d->is_url = false;
    if (answer->refusal && answer->refusal->code != 404) {
        say_failure(k, "read a definition", answer->refusal->code,
                    buf_cstr(&answer->refusal->message));
        return;
    }
    if (!answer->refusal)
        read_definition(k, answer->object, d);
    k->at++;
    step_on(k);
}

static bool has_our_way(const struct certs_keeper *k, const struct definition *d)
{
    return span_eq(buf_span(&d->bundle), buf_span(&k->bundle)) && (d->is_url || d->is_service);
}

static bool is_believed(const struct certs_keeper *k)
{
    for (size_t i = 0; i < DEFINITIONS; i++)
        if (k->definitions[i].is_webhook && !has_our_way(k, &k->definitions[i]))
            return false;
    return true;
}

static bool has_webhook(const struct certs_keeper *k)
{
    for (size_t i = 0; i < DEFINITIONS; i++)
        if (k->definitions[i].is_webhook)
            return true;
    return false;
}

static int definition_patch(const struct certs_keeper *k, const struct definition *d,
                            struct buf *out, struct err *e)
{
    struct json_out o;

    json_out_init(&o, out, 0);
    json_out_object_begin(&o);
    json_out_key(&o, "spec"), json_out_object_begin(&o);
    json_out_key(&o, "conversion"), json_out_object_begin(&o);
    json_out_key(&o, "webhook"), json_out_object_begin(&o);
    json_out_key(&o, "clientConfig"), json_out_object_begin(&o);
    json_out_key(&o, "caBundle"), json_out_str(&o, buf_span(&k->bundle));
    if (!d->is_url) {
        json_out_key(&o, "service"), json_out_object_begin(&o);
        json_out_key(&o, "name"), json_out_cstr(&o, k->config.service);
        json_out_key(&o, "namespace"), json_out_cstr(&o, k->config.namespace);
        json_out_key(&o, "path"), json_out_cstr(&o, "/convert");
        json_out_object_end(&o);
    }
    for (int i = 0; i < 5; i++)
        json_out_object_end(&o);
    return json_out_end(&o, e);
}

static void on_patched(void *ctx, const struct kube_answer *answer)
{
    struct certs_keeper *k = ctx;

    if (!is_on(k))
        return;
    if (answer->refusal && answer->refusal->code != 404) {
        say_failure(k, "write a definition", answer->refusal->code,
                    buf_cstr(&answer->refusal->message));
        return;
    }
    log_info("webhook.definition", KV("name", definition_names[k->at]));
    k->at++;
    step_on(k);
}

static void patch_definitions(struct certs_keeper *k)
{
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES);
    struct err e;

    while (k->at < DEFINITIONS &&
           (!k->definitions[k->at].is_webhook || has_our_way(k, &k->definitions[k->at])))
        k->at++;
    if (k->at == DEFINITIONS) {
        end_round(k);
        return;
    }
    if (definition_patch(k, &k->definitions[k->at], &body, &e) < 0) {
        say_failure(k, "write a definition", -1, e.msg);
        return;
    }
    ask(k, KUBE_PATCH, definition_names[k->at], buf_span(&body), on_patched);
}

/* ---- the Secret ---- */

static int bundle(struct certs_keeper *k, struct err *e)
{
    buf_clear(&k->bundle);
    return str_base64_encode(buf_span(&k->certs.ca), &k->bundle, e);
}

static int show_pair(struct certs_keeper *k, struct err *e)
{
    const struct webhook_pair pair = certs_pair(&k->certs);

    if (span_eq(buf_span(&k->served), pair.cert))
        return 0;
    if (webhook_renew(k->webhook, &pair, e) < 0)
        return -1;
    buf_clear(&k->served);
    return buf_add(&k->served, pair.cert, e);
}

/* Serves what the Secret holds, then the definitions. */
static void settle_secret(struct certs_keeper *k, const char *how)
{
    struct err e;

    if (bundle(k, &e) < 0 || show_pair(k, &e) < 0) {
        say_failure(k, "serve the certificate", -1, e.msg);
        return;
    }
    if (how) {
        k->renewals++;
        log_info("webhook.certificate", KV("how", how), KV("names", k->names.n));
    }
    k->phase = WRITING_DEFINITIONS;
    k->at = 0;
    step_on(k);
}

static void on_secret(void *ctx, const struct kube_answer *answer);

static void on_secret_written(void *ctx, const struct kube_answer *answer)
{
    struct certs_keeper *k = ctx;
    struct err e;

    if (!is_on(k))
        return;
    if (answer->refusal && answer->refusal->code == 409) { /* another replica was first */
        k->phase = READING_SECRET;
        ask(k, KUBE_GET, SECRET_NAME, SPAN_NONE, on_secret);
    } else if (answer->refusal) {
        say_failure(k, "write the Secret", answer->refusal->code,
                    buf_cstr(&answer->refusal->message));
    } else if (certs_read(&k->certs, answer->object, &e) < 0) {
        say_failure(k, "read the Secret", -1, e.msg);
    } else {
        k->is_known = true;
        settle_secret(k, "written");
    }
}

static void create_secret(struct certs_keeper *k)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(object_done) struct object *o = NULL;
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES);
    struct err e;

    k->phase = WRITING_SECRET;
    if (certs_make(&k->certs, &k->names, &e) < 0 ||
        certs_write(&k->certs, SECRET_NAME, false, &body, &e) < 0 ||
        json_parse(buf_span(&body), NULL, &doc, &e) < 0 ||
        object_parse(k->secret_kind, json_doc_root(doc), &o, &e) < 0) {
        say_failure(k, "make a certificate", -1, e.msg);
        return;
    }
    k->call = kube_call_start(k->client,
                              &(struct kube_request){ .verb = KUBE_CREATE,
                                                      .kind = k->secret_kind,
                                                      .namespace = k->config.namespace,
                                                      .object = o,
                                                      .manager = MANAGER },
                              on_secret_written, k);
}

static void patch_secret(struct certs_keeper *k, enum certs_step step)
{
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES);
    time_t from = time(NULL) + (time_t)((STAGE_ROUNDS(k->config.check_ms) + 999) / 1000);
    struct err e;

    k->phase = WRITING_SECRET;
    log_info("webhook.renewal", KV("step", step == CERTS_STAGE    ? "stage"
                                           : step == CERTS_SWITCH ? "switch"
                                                                  : "replace"));
    if (certs_apply(&k->certs, step, &k->names, from, &e) < 0 ||
        certs_write(&k->certs, SECRET_NAME, true, &body, &e) < 0)
        say_failure(k, "make a certificate", -1, e.msg);
    else
        ask(k, KUBE_PATCH, SECRET_NAME, buf_span(&body), on_secret_written);
}

/* Nobody can be served with it, and to write over what is not ours would be worse. */
static void say_broken(struct certs_keeper *k, struct err *e)
{
    (void)err_wrap(e, "Secret '%s/" SECRET_NAME "'", k->config.namespace);
    err_hint(e, "delete it, and a new one is made");
    if (!k->is_known && k->config.broken)
        k->config.broken(k->config.ctx, e);
    say_failure(k, "read the Secret", -1, e->msg);
}

static void on_secret(void *ctx, const struct kube_answer *answer)
{
    struct certs_keeper *k = ctx;
    enum certs_step step;
    struct err e;

    if (!is_on(k))
        return;
    if (answer->refusal && answer->refusal->code == 404) {
        create_secret(k);
        return;
    }
    if (answer->refusal) {
        say_failure(k, "read the Secret", answer->refusal->code,
                    buf_cstr(&answer->refusal->message));
        return;
    }
    if (object_version(answer->object) != k->certs.version || !k->is_known) {
        if (certs_read(&k->certs, answer->object, &e) < 0) {
            say_broken(k, &e);
            return;
        }
        k->is_known = true;
    }
    if (bundle(k, &e) < 0) {
        say_failure(k, "read the Secret", -1, e.msg);
        return;
    }
    step = certs_next(&k->certs, &k->names, is_believed(k), time(NULL));
    if (step != CERTS_STAY)
        patch_secret(k, step);
    else
        settle_secret(k, NULL);
}

/* ---- rounds ---- */

static void step_on(struct certs_keeper *k)
{
    struct err e;

    if (k->phase == WRITING_DEFINITIONS) {
        patch_definitions(k);
    } else if (k->at < DEFINITIONS) {
        ask(k, KUBE_GET, definition_names[k->at], SPAN_NONE, on_definition);
    } else if (!has_webhook(k)) {
        end_round(k); /* nobody will come: nothing to be kept */
    } else if (collect_names(k, &e) < 0) {
        say_failure(k, "name the server", -1, e.msg);
    } else {
        k->phase = READING_SECRET;
        ask(k, KUBE_GET, SECRET_NAME, SPAN_NONE, on_secret);
    }
}

static void begin(void *ctx)
{
    struct certs_keeper *k = ctx;

    k->phase = READING_DEFINITIONS;
    k->at = 0;
    step_on(k);
}

int certs_keeper_new(struct kube_client *client, const struct certs_keeper_config *config,
                     struct certs_keeper **ret, struct err *e)
{
    struct certs_keeper *k = NEW(struct certs_keeper);

    *k = (struct certs_keeper){ .client = client,
                                .loop = kube_client_loop(client),
                                .config = *config,
                                .secret_kind = kind_find("", "v1", "secrets"),
                                .definition_kind = kind_find("apiextensions.k8s.io", "v1",
                                                             "customresourcedefinitions"),
                                .certs = CERTS_INIT,
                                .names.texts = BUF_INIT(2048),
                                .bundle = BUF_INIT(2 * CERTS_MAX_BYTES),
                                .served = BUF_INIT(CERTS_MAX_BYTES),
                                .backoff = { RETRY_FIRST_MS, 60 * 1000, 0.5, 0 },
                                .failed_code = INT32_MIN };
    for (size_t i = 0; i < DEFINITIONS; i++)
        k->definitions[i].bundle.max = 2 * CERTS_MAX_BYTES;
    if (collect_names(k, e) < 0 || certs_make(&k->certs, &k->names, e) < 0) {
        free_keeper(k);
        return err_wrap(e, "cannot make the webhook's certificate");
    }
    *ret = k;
    return 0;
}

struct webhook_pair certs_keeper_pair(const struct certs_keeper *k)
{
    return certs_pair(&k->certs);
}

void certs_keeper_start(struct certs_keeper *k, struct webhook *webhook)
{
    k->webhook = webhook;
    begin(k);
}

const char *certs_keeper_why_not(const struct certs_keeper *k)
{
    return k->is_settled ? NULL : NOT_YET;
}

int certs_keeper_metrics_write(const struct certs_keeper *k, struct buf *out, struct err *e)
{
    static const char ends[] = "silica_webhook_certificate_not_after_seconds",
                      renewals[] = "silica_webhook_certificate_renewals_total",
                      failures[] = "silica_webhook_certificate_failures_total";

    return metric_head(out, ends, "gauge", "When the webhook's certificate ends.", e) < 0 ||
                   metric_u64(out, ends, "", (uint64_t)MAX(certs_end(&k->certs, time(NULL)), 0),
                              e) < 0 ||
                   metric_head(out, renewals, "counter", "Certificates written by this process.",
                               e) < 0 ||
                   metric_u64(out, renewals, "", k->renewals, e) < 0 ||
                   metric_head(out, failures, "counter", "Rounds that ended early.", e) < 0 ||
                   metric_u64(out, failures, "", k->failures, e) < 0
               ? -1
               : 0;
}

void certs_keeper_close(struct certs_keeper *k)
{
    if (!k)
        return;
    k->is_closing = true;
    ev_timer_stop(k->loop, &k->timer);
    if (k->call)
        kube_call_cancel(k->call);
    else
        ev_free_later(k->loop, k, free_keeper);
}
