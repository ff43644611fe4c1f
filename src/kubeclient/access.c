#include "kubeclient/access.h"

#include "base/str.h"
#include "base/time.h"
#include "ev/loop.h"
#include "kubeclient/file.h"
#include "kubeclient/limits.h"
#include "kubeclient/plugin.h"
#include "net/tls.h"

#include <string.h>

struct access {
    struct ev_loop *loop;
    struct kubeconfig config;
    struct ev_children *children;
    bool is_attended;
    struct http_client *http;
    struct tls *tls;
    struct buf token; /* of the file */
    uint64_t looked_ms;
    struct file_stamp token_stamp, ca_stamp, cert_stamp, key_stamp;
    unsigned generation;
    struct plugin_run *run;
    struct credential credential;
    bool has_credential;
    int64_t renew_ms; /* wall clock; 0: never */
    struct access_waiter *waiters;
    uint64_t failed_ms;   /* the loop's clock; 0: it did not */
    struct ev_task again; /* the same failure, for those who came too soon */
    struct err failure;
};

/* Credentials travel on TLS only, as kubectl has it. */
static bool has_plugin(const struct access *a)
{
    return a->config.plugin.argv && a->config.is_tls && !a->config.token && !a->config.token_file;
}

static struct tls_config tls_config(const struct access *a)
{
    const struct kubeconfig *k = &a->config;
    bool is_given = a->has_credential && a->credential.cert_pem.n;

    return (struct tls_config){
        .role = TLS_CLIENT,
        .ca_file = k->ca_file,
        .ca_pem = buf_span(&k->ca_pem),
        .cert_file = is_given ? NULL : k->cert_file,
        .key_file = is_given ? NULL : k->key_file,
        .cert_pem = buf_span(is_given ? &a->credential.cert_pem : &k->cert_pem),
        .key_pem = buf_span(is_given ? &a->credential.key_pem : &k->key_pem),
        .is_insecure = k->is_insecure,
        .alpn = "h2,http/1.1",
    };
}

static bool has_changed(const char *path, struct file_stamp *stamp)
{
    return path && file_has_changed(path, stamp);
}

static int reload_tls(struct access *a, struct err *e)
{
    struct tls_config config = tls_config(a);

    if (tls_reload(a->tls, &config, e) < 0)
        return -1;
    a->generation++;
    if (a->http)
        http_client_forget_idle(a->http);
    return 0;
}

static int read_token(struct access *a, struct err *e)
{
    OWN(file_wipe) struct buf text = BUF_INIT(TOKEN_MAX_BYTES);
    struct span token;

    if (file_read(a->config.token_file, &text, e) < 0)
        return err_wrap(e, "cannot read the token");
    token = buf_span(&text);
    while (token.n && token.p[token.n - 1] <= ' ')
        token.n--;
    while (token.n && token.p[0] <= ' ')
        token = span_skip(token, 1);
    if (!token.n || !http_value_is_valid(token))
        return err_set(e, ERR_INVALID, "'%s' holds no token", a->config.token_file);
    if (!span_eq(token, buf_span(&a->token))) {
        buf_clear(&a->token);
        a->generation++;
        (void)buf_add_capped(&a->token, token);
    }
    return 0;
}

/* What others may have rotated meanwhile. */
static void look_at_files(struct access *a, bool is_now)
{
    uint64_t now = ev_now_ms(a->loop);
    struct err e;
    bool is_new;

    if (!a->config.is_tls || (!is_now && now - a->looked_ms < FILES_LOOK_MS))
        return;
    a->looked_ms = now;
    if (has_changed(a->config.token_file, &a->token_stamp))
        (void)read_token(a, &e); /* the last one that could be read holds */
    is_new = has_changed(a->config.ca_file, &a->ca_stamp);
    is_new = has_changed(a->config.cert_file, &a->cert_stamp) || is_new;
    is_new = has_changed(a->config.key_file, &a->key_stamp) || is_new;
    /* Files that are halfway through being replaced do not fit together: the old ones hold until they do. */
    if (is_new && reload_tls(a, &e) < 0)
        a->cert_stamp = a->key_stamp = a->ca_stamp = (struct file_stamp){ 0 };
}

int access_new(struct ev_loop *loop, const struct access_config *config, struct access **ret,
               struct err *e)
{
    struct access *a = NEW(struct access);
    struct tls_config tls;

    a->loop = loop;
    a->config = *config->kubeconfig;
    *config->kubeconfig = (struct kubeconfig){ 0 };
    a->children = config->children;
    a->is_attended = config->is_attended;
    a->token.max = TOKEN_MAX_BYTES;
    a->generation = 1;
    a->looked_ms = ev_now_ms(loop);
    (void)has_changed(a->config.ca_file, &a->ca_stamp);
    (void)has_changed(a->config.cert_file, &a->cert_stamp);
    (void)has_changed(a->config.key_file, &a->key_stamp);
    (void)has_changed(a->config.token_file, &a->token_stamp);
    tls = tls_config(a);
    if ((a->config.is_tls && tls_new(&tls, &a->tls, e) < 0) ||
        (a->config.is_tls && a->config.token_file && !a->config.token && read_token(a, e) < 0)) {
        (void)err_wrap(e, "context '%s'", a->config.context);
        access_free(a);
        return -1;
    }
    if (a->config.token_file && a->config.token)
        (void)read_token(a, e); /* the text beside it will do */
    *ret = a;
    return 0;
}

void access_free(struct access *a)
{
    if (!a)
        return;
    assert(!a->waiters);
    plugin_cancel(a->run);
    ev_post_cancel(&a->again);
    tls_free(a->tls);
    credential_done(&a->credential);
    file_wipe(&a->token);
    kubeconfig_done(&a->config);
    ev_free_later(a->loop, a, free); /* a task taken back may still be in the loop's list */
}

void access_set_http(struct access *a, struct http_client *http)
{
    a->http = http;
}

const struct kubeconfig *access_kubeconfig(const struct access *a)
{
    return &a->config;
}

struct http_target access_target(const struct access *a)
{
    return (struct http_target){
        .host = a->config.host,
        .port = a->config.port,
        .maker = a->tls ? tls_maker(a->tls) : NULL,
        .peer_name = a->config.tls_name,
        .version = a->tls ? HTTP_BY_ALPN : HTTP_V1,
    };
}

/* ---- plugins ---- */

static int64_t wall_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool access_is_ready(struct access *a)
{
    if (!has_plugin(a))
        return true;
    return !a->run && a->has_credential && (!a->renew_ms || wall_ms() < a->renew_ms);
}

/* Those who came meanwhile wait for the next time. */
static void tell(struct access *a, const struct err *e)
{
    struct access_waiter *first = take_ptr(&a->waiters), *w;

    if (first)
        first->at = &first;
    while ((w = first)) {
        access_leave(w); /* the next one is first then */
        w->fn(w->ctx, e);
    }
}

static void fail(struct access *a, const struct err *e)
{
    a->failure = *e;
    a->failed_ms = ev_now_ms(a->loop);
    tell(a, e);
}

/* Takes what is in *c. */
static int take_credential(struct access *a, struct credential *c, struct err *e)
{
    int64_t now = wall_ms(), life_ms = c->until_ms - now;

    credential_done(&a->credential);
    a->credential = *c;
    *c = (struct credential){ 0 };
    a->has_credential = true;
    a->generation++;
    a->failed_ms = 0;
    a->renew_ms = a->credential.until_ms;
    if (a->renew_ms && life_ms <= 0)
        a->renew_ms = now + PLUGIN_PAUSE_MS; /* over already: the server will say what it thinks */
    else if (a->renew_ms)
        a->renew_ms -= MIN(life_ms / 10, PLUGIN_EARLY_MAX_MS);
    return a->credential.cert_pem.n ? reload_tls(a, e) : 0;
}

static void on_plugin(void *ctx, struct credential *c, const struct err *e)
{
    struct access *a = ctx;
    struct err why;

    a->run = NULL;
    if (e) {
        fail(a, e);
    } else if (take_credential(a, c, &why) < 0) {
        a->has_credential = false;
        (void)err_wrap(&why, "the credential plugin '%s'", a->config.plugin.argv[0]);
        fail(a, &why);
    } else {
        tell(a, NULL);
    }
}

static void tell_failure(void *ctx)
{
    struct access *a = ctx;
    struct err e = a->failure;

    tell(a, &e);
}

void access_wait(struct access *a, struct access_waiter *w)
{
    w->next = a->waiters;
    w->at = &a->waiters;
    if (w->next)
        w->next->at = &w->next;
    a->waiters = w;
    if (a->run || a->again.is_queued)
        return;
    if (a->failed_ms && ev_now_ms(a->loop) - a->failed_ms < PLUGIN_PAUSE_MS)
        ev_post(a->loop, &a->again, tell_failure, a);
    else
        a->run = plugin_start(a->loop, a->children, &a->config, a->is_attended, on_plugin, a);
}

void access_leave(struct access_waiter *w)
{
    if (!w->at)
        return;
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    w->at = NULL;
    w->next = NULL;
}

/* ---- heads ---- */

static int add_bearer(struct http_head *head, struct span token, struct err *e)
{
    return http_head_addf(head, "authorization", e, "Bearer %.*s", SPAN_ARG(token));
}

static int add_basic(const struct kubeconfig *k, struct http_head *head, struct err *e)
{
    OWN(file_wipe)
    struct buf pair = BUF_INIT(TOKEN_MAX_BYTES), text = BUF_INIT(2 * TOKEN_MAX_BYTES);

    if (buf_addf(&pair, e, "%s:%s", k->username, k->password ? k->password : "") < 0 ||
        str_base64_encode(buf_span(&pair), &text, e) < 0)
        return -1;
    return http_head_addf(head, "authorization", e, "Basic %s", buf_cstr(&text));
}

/* The credential on the strength of which the rest is asked for. */
static int add_authorization(struct access *a, struct http_head *head, struct err *e)
{
    const struct kubeconfig *k = &a->config;

    if (a->token.n)
        return add_bearer(head, buf_span(&a->token), e);
    if (k->token)
        return add_bearer(head, span_cstr(k->token), e);
    if (k->username)
        return add_basic(k, head, e);
    if (a->has_credential && a->credential.token.n)
        return add_bearer(head, buf_span(&a->credential.token), e);
    return 0;
}

static int add_impersonation(const struct kubeconfig *k, struct http_head *head, struct err *e)
{
    if (k->as && http_head_add(head, SPAN("impersonate-user"), span_cstr(k->as), e) < 0)
        return -1;
    if (k->as_uid && http_head_add(head, SPAN("impersonate-uid"), span_cstr(k->as_uid), e) < 0)
        return -1;
    for (char **g = k->as_groups; g && *g; g++) {
        if (http_head_add(head, SPAN("impersonate-group"), span_cstr(*g), e) < 0)
            return -1;
    }
    for (char **x = k->as_extra; x && x[0] && x[1]; x += 2) {
        OWN(buf_done) struct buf name = BUF_INIT(4096);

        if (buf_addf(&name, e, "impersonate-extra-") < 0 ||
            str_percent_encode(span_cstr(x[0]), "!#$&'*+^`|", &name, e) < 0 ||
            http_head_add(head, buf_span(&name), span_cstr(x[1]), e) < 0)
            return -1;
    }
    return 0;
}

int access_sign(struct access *a, struct http_head *head, struct err *e)
{
    if (!a->config.is_tls)
        return 0;
    look_at_files(a, false);
    if (add_authorization(a, head, e) < 0 || add_impersonation(&a->config, head, e) < 0)
        return err_wrap(e, "context '%s'", a->config.context);
    return 0;
}

unsigned access_generation(const struct access *a)
{
    return a->generation;
}

bool access_renew(struct access *a, unsigned generation)
{
    if (a->generation != generation)
        return true;
    look_at_files(a, true);
    if (a->generation != generation)
        return true;
    if (!has_plugin(a) || !a->has_credential)
        return false;
    a->has_credential = false;
    return true;
}
