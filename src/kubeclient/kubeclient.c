#include "kubeclient/kubeclient.h"

#include "kubeclient/impl.h"

#include <string.h>

#define REFUSAL_TEXT_BYTES 200 /* of a body that is no Status: enough to recognise a proxy's page */

static void client_free(void *obj)
{
    struct kubeclient *c = obj;

    access_free(c->access);
    free(c);
}

void rest_let_go(struct kubeclient *c)
{
    if (!c->is_closing || c->calls || c->watches)
        return;
    c->is_closing = false;
    http_client_free(c->http);
    access_set_http(c->access, NULL);
    ev_free_later(c->base.loop, c, client_free);
}

static void end(struct kube_client *base)
{
    struct kubeclient *c = CONTAINER(base, struct kubeclient, base);

    c->is_closing = true;
    rest_calls_end(c);
    rest_watches_end(c);
    rest_let_go(c);
}

static const struct kube_client_ops ops = { rest_call_start, rest_call_cancel, rest_watch_start,
                                            rest_watch_stop, end };

int kubeclient_new(struct ev_loop *loop, const struct kubeclient_config *config,
                   struct kube_client **ret, struct err *e)
{
    const struct access_config access = { config->kubeconfig, config->children,
                                          config->is_attended };
    struct kubeclient *c = NEW(struct kubeclient);

    c->base = (struct kube_client){ &ops, loop };
    if (access_new(loop, &access, &c->access, e) < 0) {
        free(c);
        return -1;
    }
    c->timeout_ms = config->timeout_ms ? config->timeout_ms : REST_TIMEOUT_MS;
    c->counts = config->counts ? config->counts : &c->own_counts;
    c->reached = config->reached;
    c->ctx = config->ctx;
    c->page_items = config->page_items ? config->page_items : REST_PAGE_ITEMS;
    bucket_init(&c->bucket, config->qps, MAX(config->burst, 1u), ev_now_ms(loop));
    c->http = http_client_new(
        loop, &(struct http_client_config){
                  .resolver = config->resolver,
                  .request_max_bytes = REST_HEAD_MAX_BYTES,
                  .ping_idle_ms = config->ping_idle_ms ? config->ping_idle_ms : REST_PING_IDLE_MS,
                  .ping_wait_ms = config->ping_wait_ms ? config->ping_wait_ms : REST_PING_WAIT_MS,
              });
    access_set_http(c->access, c->http);
    *ret = &c->base;
    return 0;
}

/* ---- what calls and watches share ---- */

static int make_head(struct kubeclient *c, const struct rest_request *r, struct span target,
                     struct http_head *head, struct err *e)
{
    const struct kubeconfig *k = access_kubeconfig(c->access);
    OWN(buf_done) struct buf whole = BUF_INIT(2 * REST_TARGET_MAX_BYTES);

    if (buf_addf(&whole, e, "%s", k->path) < 0 || buf_add(&whole, target, e) < 0 ||
        http_head_set_request(head, span_cstr(r->method), buf_span(&whole), e) < 0 ||
        http_head_add(head, SPAN("accept"), SPAN("application/json"), e) < 0 ||
        http_head_add(head, SPAN("user-agent"), SPAN("silica/" SILICA_VERSION), e) < 0)
        return -1;
    if (r->content_type &&
        http_head_add(head, SPAN("content-type"), span_cstr(r->content_type), e) < 0)
        return -1;
    return access_sign(c->access, head, e);
}

int rest_send(struct kubeclient *c, const struct rest_request *r, struct span target,
              const struct http_call_spec *how, struct http_call **ret, struct err *e)
{
    struct http_call_spec spec = *how;
    struct http_head head;
    int failed;

    http_head_init(&head, REST_HEAD_MAX_BYTES, 1024);
    failed = make_head(c, r, target, &head, e);
    if (!failed) {
        spec.to = access_target(c->access);
        spec.head = &head;
        spec.body = buf_span(&r->body);
        spec.connect_ms = REST_CONNECT_MS;
        *ret = http_call_start(c->http, &spec);
    }
    http_head_done(&head);
    return failed;
}

void rest_verdict_read(const struct http_head *head, struct rest_verdict *ret)
{
    struct span after = http_head_get(head, "retry-after");

    *ret = (struct rest_verdict){ .status = head->status };
    ret->has_retry =
        after.p && retry_after_ms(after, time(NULL), REST_RETRY_AFTER_MAX_S, &ret->retry_ms);
}

static const char *reason_of(int http_status)
{
    static const struct {
        int status;
        const char *reason;
    } rows[] = {
        { 400, "BadRequest" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "NotFound" },
        { 405, "MethodNotAllowed" },
        { 406, "NotAcceptable" },
        { 409, "Conflict" },
        { 410, "Gone" },
        { 413, "RequestEntityTooLarge" },
        { 415, "UnsupportedMediaType" },
        { 429, "TooManyRequests" },
        { 500, "InternalError" },
        { 503, "ServiceUnavailable" },
        { 504, "Timeout" },
    };

    EACH(r, rows) {
        if (r->status == http_status)
            return r->reason;
    }
    return NULL;
}

void rest_refusal(struct status *st, int http_status, struct span body)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    char text[REFUSAL_TEXT_BYTES];
    struct err e;
    size_t n = 0;

    if (json_parse(body, NULL, &doc, &e) == 0 && status_read(json_doc_root(doc), st)) {
        st->code = http_status;
        return;
    }
    status_clear(st);
    st->code = http_status;
    st->reason = reason_of(http_status);
    for (size_t i = 0; i < body.n && n + 1 < sizeof text; i++) /* it may end up on a terminal */
        text[n++] = body.p[i] >= ' ' && body.p[i] < 0x7f ? (char)body.p[i] : ' ';
    text[n] = '\0';
    buf_addf_capped(&st->message, "the server answered %d: %s", http_status, text);
}

void rest_no_answer(struct status *st, const struct err *e)
{
    status_clear(st);
    (void)buf_add_capped(&st->message, span_cstr(e->msg));
}

bool rest_is_passing(const struct http_call *call, const struct err *e)
{
    if (http_call_has_left(call))
        return e->code != ERR_CANCELED && e->code != ERR_LIMIT;
    return e->code == ERR_UNAVAILABLE || e->code == ERR_CLOSED || e->code == ERR_TIMEOUT ||
           e->code == ERR_BUSY;
}

void rest_note_reach(struct kubeclient *c, const struct err *e)
{
    bool is_lost = e && e->code != ERR_CANCELED && e->code != ERR_LIMIT;

    if (is_lost == c->is_lost || (e && !is_lost) || c->is_closing)
        return;
    c->is_lost = is_lost;
    if (c->reached)
        c->reached(c->ctx, e);
}

int kubeclient_metrics_write(const struct kube_client *client, struct buf *out, struct err *e)
{
    return counts_write(CONTAINER(client, const struct kubeclient, base)->counts, out, e);
}
