#include "apiserver/call.h"

#include "apiserver/metrics.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "kube/yaml_write.h"

#include <string.h>

void call_free(struct call *c)
{
    if (c->told)
        metrics_count(c->s->metrics, c->req.verb, c->op.kind, c->op.version, c->op.sub, c->told,
                      time_mono_us() - c->began_us);
    if (c->stream_free)
        c->stream_free(c);
    store_wait_cancel(&c->wait);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    object_unref(c->object);
    selection_done(&c->want);
    status_done(&c->status);
    user_done(&c->user);
    buf_done(&c->op.warnings);
    buf_done(&c->manager);
    buf_done(&c->query);
    buf_done(&c->list_tail);
    ev_free_later(c->s->loop, c, free); /* a task of it may still be queued */
}

const char *call_query(struct call *c, const char *name)
{
    struct span raw = http_query_get(c->x, name);

    return raw.p && request_decode(raw, &c->query) ? buf_cstr(&c->query) : NULL;
}

char *call_query_dup(struct call *c, const char *name)
{
    const char *text = call_query(c, name);

    return text ? own_strdup(text) : NULL;
}

bool call_query_bool(struct call *c, const char *name)
{
    const char *text = call_query(c, name);
    bool is_set = false;

    if (!text)
        return false;
    return !*text || (str_bool(span_cstr(text), &is_set) && is_set);
}

int call_not_a_number(struct call *c, const char *text)
{
    return status_bad_request(&c->status, "strconv.ParseInt: parsing \"%s\": invalid syntax", text);
}

static void log_call(struct call *c, int code)
{
    if (!log_is_on(LOG_DEBUG) && code < 500)
        return;
    LOG_AT(code >= 500 ? LOG_WARN : LOG_DEBUG, "api.request", KV("id", http_id(c->x)),
           KV("verb", request_verb_name(c->req.verb)), KV("path", http_path(c->x)),
           KV("code", code), KV("user", user_name(&c->user)),
           KV("us", time_mono_us() - c->began_us));
}

static void add_warnings(struct call *c)
{
    struct span rest = buf_span(&c->op.warnings), text;
    OWN(buf_done) struct buf field = BUF_INIT(2 * CALL_WARNING_MAX_BYTES + 16); /* each escaped */

    while (span_cut(&rest, '\0', &text)) {
        struct err e;

        buf_clear(&field);
        /* Sized for all of it. */
        (void)buf_add(&field, SPAN("299 - \""), &e);
        for (size_t i = 0; i < text.n; i++) {
            if (text.p[i] == '"' || text.p[i] == '\\')
                (void)buf_addc(&field, '\\', &e);                           /* fits */
            (void)buf_addc(&field, text.p[i] < 0x20 ? ' ' : text.p[i], &e); /* fits */
        }
        (void)buf_addc(&field, '"', &e); /* fits */
        http_answer_field(c->x, "warning", buf_span(&field));
    }
}

/* False: it stays as it is. */
static bool to_yaml(struct span json, struct buf *out)
{
    const struct json_limits limits = { .max_bytes = CALL_ANSWER_MAX_BYTES };
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct err e;

    return json_parse(json, &limits, &doc, &e) == 0 &&
           kube_yaml_write(json_doc_root(doc), out, &e) == 0;
}

void call_answer_bytes(struct call *c, int code, const char *type, struct span body)
{
    OWN(buf_done) struct buf yaml = BUF_INIT(CALL_ANSWER_MAX_BYTES);

    log_call(c, code);
    c->told = code;
    add_warnings(c);
    http_answer_field(c->x, "cache-control", SPAN("no-cache, private"));
    if (c->is_yaml && strcmp(type, "application/json") == 0 && to_yaml(body, &yaml)) {
        type = "application/yaml";
        body = buf_span(&yaml);
    }
    http_answer(c->x, code, type, body);
    call_free(c);
}

void call_refuse(struct call *c)
{
    OWN(buf_done) struct buf body = BUF_INIT(STATUS_TEXT_MAX_BYTES * 4);
    struct err e;

    if (status_write(&c->status, &body, &e) < 0)
        buf_clear(&body);
    if (c->status.retry_after_s)
        http_answer_fieldf(c->x, "retry-after", "%d", c->status.retry_after_s);
    call_answer_bytes(c, c->status.code, "application/json", buf_span(&body));
}

void call_no_page(struct call *c)
{
    call_answer_bytes(c, 404, "text/plain; charset=utf-8", SPAN("404 page not found\n"));
}

static void on_committed(void *ctx, const struct err *e)
{
    struct call *c = ctx;
    OWN(buf_done) struct buf body = BUF_INIT(CALL_ANSWER_MAX_BYTES);

    if (e)
        (void)status_of_err(&c->status, e);
    if (e || !c->object || render_object(c, c->object, &body) < 0)
        call_refuse(c);
    else
        call_answer_bytes(c, c->code, "application/json", buf_span(&body));
}

void call_answer_object(struct call *c, int code, struct object *o)
{
    c->code = code;
    c->object = o;
    store_wait(c->s->store, &c->wait, store_version(c->s->store, STORE_HEAD), on_committed, c);
}

void call_answer_status(struct call *c)
{
    store_wait(c->s->store, &c->wait, store_version(c->s->store, STORE_HEAD), on_committed, c);
}
