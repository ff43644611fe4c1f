#include "trace/outbox.h"

#include "base/log.h"
#include "ev/timer.h"
#include "http/client.h"
#include "http/grpc.h"
#include "http/grpc_frame.h"
#include "net/tls.h"
#include "proto/pb.h"
#include "proto/trace.pb-c.h"
#include "trace/limits.h"
#include "trace/settings.h"

#include <string.h>

#define METHOD "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

enum outbox_state {
    OUTBOX_EMPTY,
    OUTBOX_GATHERING, /* the timer ends it */
    OUTBOX_CALLING,
    OUTBOX_WAITING, /* to try again: the timer ends it */
    OUTBOX_CLOSED,
};

struct outbox {
    struct ev_loop *loop;
    struct http_client *client;
    struct tls *tls; /* or NULL */
    struct http_target to;
    struct http_head head; /* of each call */
    uint64_t timeout_ms, delay_ms;
    Silica__Trace__Resource resource; /* what we are */
    char *host;

    enum outbox_state state;
    struct ev_timer timer;
    struct buf queue[TRACE_QUEUE_MAX]; /* a ring */
    size_t first, count;
    size_t bytes; /* of all of them */
    size_t sent;  /* of them, with the call under way or to come again */
    struct http_call *call;
    struct grpc_frame answer;
    struct err verdict; /* of the call, as far as it is known */
    bool is_verdict, is_final;
    unsigned tries;
    uint64_t dropped; /* since the collector took something */

    ev_fn flushed; /* NULL: nobody waits */
    void *flushed_ctx;
    struct ev_timer patience;
    struct ev_task tell;
};

static void send_batch(struct outbox *o);

static struct buf *span_at(struct outbox *o, size_t i)
{
    return &o->queue[(o->first + i) % TRACE_QUEUE_MAX];
}

/* ---- who waits for the last ---- */

static void tell_flushed(void *ctx)
{
    struct outbox *o = ctx;
    ev_fn done = take_ptr(&o->flushed);

    done(o->flushed_ctx);
}

static void flush_over(void *ctx)
{
    struct outbox *o = ctx;

    ev_timer_stop(o->loop, &o->patience);
    if (o->flushed && !o->tell.is_queued)
        ev_post(o->loop, &o->tell, tell_flushed, o);
}

void outbox_flush(struct outbox *o, uint64_t ms, ev_fn done, void *ctx)
{
    assert(!o->flushed);
    o->flushed = done;
    o->flushed_ctx = ctx;
    if (o->state == OUTBOX_EMPTY || ms == 0) {
        flush_over(o);
        return;
    }
    ev_timer_start(o->loop, &o->patience, ms, flush_over, o);
    if (o->state != OUTBOX_CALLING)
        send_batch(o);
}

/* ---- a batch ---- */

static void drop(struct outbox *o, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        o->bytes -= span_at(o, i)->n;
        buf_done(span_at(o, i));
    }
    o->first = (o->first + n) % TRACE_QUEUE_MAX;
    o->count -= n;
    o->sent = 0;
    o->tries = 0;
}

static void on_timer(void *ctx)
{
    send_batch(ctx);
}

/* What comes after a call, or after the first span. */
static void go_on(struct outbox *o)
{
    if (o->count == 0) {
        o->state = OUTBOX_EMPTY;
        flush_over(o);
    } else if (o->count >= TRACE_BATCH_MAX || o->flushed) {
        send_batch(o);
    } else {
        o->state = OUTBOX_GATHERING;
        ev_timer_start(o->loop, &o->timer, o->delay_ms, on_timer, o);
    }
}

static void taken(struct outbox *o)
{
    if (o->dropped || o->tries)
        log_info("trace.resumed", KV("collector", (const char *)o->host),
                 KV("dropped", o->dropped));
    o->dropped = 0;
    drop(o, o->sent);
    go_on(o);
}

static void not_taken(struct outbox *o, const struct err *e)
{
    uint64_t wait_ms = MIN((uint64_t)TRACE_RETRY_MIN_MS << o->tries, (uint64_t)TRACE_RETRY_MAX_MS);

    o->tries++;
    if (o->is_final || o->tries >= TRACE_TRIES_MAX) {
        log_warn("trace.lost", KV("collector", (const char *)o->host), KV("spans", o->sent),
                 KV("err", e));
        o->dropped += o->sent;
        drop(o, o->sent);
        go_on(o);
        return;
    }
    if (o->tries == 1)
        log_warn("trace.export", KV("collector", (const char *)o->host), KV("retry_ms", wait_ms),
                 KV("err", e));
    o->state = OUTBOX_WAITING;
    ev_timer_start(o->loop, &o->timer, wait_ms, on_timer, o);
}

/* ---- the call ---- */

/* Those that the protocol names: all others would get the same answer again. */
static bool is_worth_a_retry(enum grpc_status status)
{
    return status == GRPC_CANCELLED || status == GRPC_DEADLINE_EXCEEDED || status == GRPC_ABORTED ||
           status == GRPC_OUT_OF_RANGE || status == GRPC_UNAVAILABLE || status == GRPC_DATA_LOSS;
}

static void judge(struct outbox *o, const struct http_head *last)
{
    OWN(buf_done) struct buf message = BUF_INIT(GRPC_MESSAGE_TEXT_BYTES);
    enum grpc_status status = grpc_status_read(last, &message);

    o->is_verdict = true;
    o->is_final = status != GRPC_OK && !is_worth_a_retry(status);
    if (status != GRPC_OK)
        (void)err_set(&o->verdict, grpc_err_code(status), "%s: %s", grpc_status_name(status),
                      message.n ? buf_cstr(&message) : "no word on why");
}

static void on_head(void *ctx, const struct http_head *head)
{
    struct outbox *o = ctx;

    if (head->status != 200 || http_head_get(head, "grpc-status").p)
        judge(o, head); /* there may be no trailers */
}

/* It took the call, but not all that was in it: nothing of that is said again. */
static void read_answer(struct outbox *o)
{
    OWN(pb_done) ProtobufCMessage *m = NULL;
    const Silica__Trace__PartialSuccess *partial;
    struct err e;

    m = pb_unpack(&silica__trace__export_response__descriptor, buf_span(&o->answer.msg), &e);
    if (!m)
        return;
    partial = ((const Silica__Trace__ExportResponse *)m)->partial_success;
    if (partial && (partial->rejected_spans || *partial->error_message))
        log_warn("trace.partial", KV("collector", (const char *)o->host),
                 KV("rejected", partial->rejected_spans),
                 KV("why", (const char *)partial->error_message));
}

static void on_data(void *ctx, struct span bytes)
{
    struct outbox *o = ctx;
    struct err e;
    size_t used;

    while (bytes.n) {
        enum feed f = grpc_frame_feed(&o->answer, bytes, &used, &e);

        if (f == FEED_BAD)
            return; /* its status says the rest */
        if (f == FEED_DONE)
            read_answer(o);
        bytes = span_skip(bytes, used);
    }
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct outbox *o = ctx;

    o->call = NULL;
    grpc_frame_done(&o->answer);
    if (o->state == OUTBOX_CLOSED)
        return;
    o->state = OUTBOX_WAITING; /* for what is decided here */
    if (!e && trailers)
        judge(o, trailers);
    if (!o->is_verdict && !e)
        (void)err_set(&o->verdict, ERR_PROTOCOL, "the answer of '%s' has no status", o->host);
    else if (!o->is_verdict)
        o->verdict = *e;
    if (o->verdict.code == ERR_NONE)
        taken(o);
    else
        not_taken(o, &o->verdict);
}

static const struct http_call_events events = { .on_head = on_head,
                                                .on_data = on_data,
                                                .on_done = on_done };

/* As many as go into one message. */
static int pack(struct outbox *o, struct buf *out, struct err *e)
{
    ProtobufCBinaryData spans[TRACE_BATCH_MAX];
    Silica__Trace__Scope scope = SILICA__TRACE__SCOPE__INIT;
    Silica__Trace__ScopeSpans of_scope = SILICA__TRACE__SCOPE_SPANS__INIT, *scopes = &of_scope;
    Silica__Trace__ResourceSpans all = SILICA__TRACE__RESOURCE_SPANS__INIT, *resources = &all;
    Silica__Trace__ExportRequest request = SILICA__TRACE__EXPORT_REQUEST__INIT;
    size_t bytes = 0, n = 0;

    while (n < o->count && n < TRACE_BATCH_MAX) {
        struct buf *one = span_at(o, n);

        bytes += one->n + TRACE_SPAN_FRAME_BYTES;
        if (n && bytes > TRACE_BATCH_MAX_BYTES)
            break;
        spans[n++] = (ProtobufCBinaryData){ one->n, one->p };
    }
    o->sent = n;
    scope.name = (char *)"silica";
    scope.version = (char *)SILICA_VERSION;
    of_scope.scope = &scope;
    of_scope.spans = spans;
    of_scope.n_spans = n;
    all.resource = &o->resource;
    all.scope_spans = &scopes;
    all.n_scope_spans = 1;
    request.resource_spans = &resources;
    request.n_resource_spans = 1;
    return pb_pack_framed(&request.base, out, e);
}

static void send_batch(struct outbox *o)
{
    OWN(buf_done) struct buf body = BUF_INIT(GRPC_MESSAGE_MAX_BYTES);
    struct http_call_spec spec = { .to = o->to,
                                   .head = &o->head,
                                   .connect_ms = o->timeout_ms,
                                   .total_ms = o->timeout_ms,
                                   .events = &events,
                                   .ctx = o };
    struct err e;

    assert(o->state != OUTBOX_CALLING && o->count > 0);
    ev_timer_stop(o->loop, &o->timer);
    o->is_verdict = o->is_final = false;
    o->verdict.code = ERR_NONE;
    if (pack(o, &body, &e) < 0) { /* cannot be: its ceilings are below gRPC's */
        o->is_final = true;
        not_taken(o, &e);
        return;
    }
    spec.body = buf_span(&body);
    grpc_frame_init(&o->answer, TRACE_ANSWER_MAX_BYTES);
    o->state = OUTBOX_CALLING;
    o->call = http_call_start(o->client, &spec);
}

void outbox_put(struct outbox *o, struct span packed)
{
    struct buf *to = span_at(o, o->count);
    struct err e;

    if (o->count == TRACE_QUEUE_MAX || o->bytes + packed.n > TRACE_QUEUE_MAX_BYTES) {
        o->dropped++;
        return;
    }
    *to = (struct buf)BUF_INIT(TRACE_SPAN_MAX_BYTES);
    if (buf_add(to, packed, &e) < 0) {
        o->dropped++;
        return;
    }
    o->count++;
    o->bytes += packed.n;
    if (o->state == OUTBOX_EMPTY || (o->state == OUTBOX_GATHERING && o->count >= TRACE_BATCH_MAX))
        go_on(o);
}

/* ---- life ---- */

static void copy_resource(struct outbox *o, const struct trace_pairs *from)
{
    Silica__Trace__Resource *r = &o->resource;

    silica__trace__resource__init(r);
    r->attributes = own_array(from->n, sizeof r->attributes[0]);
    for (size_t i = 0; i < from->n; i++) {
        Silica__Trace__Attribute *a = NEW(Silica__Trace__Attribute);
        Silica__Trace__Value *v = NEW(Silica__Trace__Value);

        silica__trace__attribute__init(a);
        silica__trace__value__init(v);
        v->kind_case = SILICA__TRACE__VALUE__KIND_TEXT;
        v->text = own_strdup(from->v[i].value);
        a->key = own_strdup(from->v[i].name);
        a->value = v;
        r->attributes[r->n_attributes++] = a;
    }
}

static void free_resource(Silica__Trace__Resource *r)
{
    for (size_t i = 0; i < r->n_attributes; i++) {
        free(r->attributes[i]->value->text);
        free(r->attributes[i]->value);
        free(r->attributes[i]->key);
        free(r->attributes[i]);
    }
    free(r->attributes);
}

static int write_head(struct outbox *o, const struct trace_settings *s, struct err *e)
{
    http_head_init(&o->head, 2 * TRACE_PAIRS_MAX_BYTES, 2 * TRACE_PAIRS_MAX);
    if (grpc_request_head(&o->head, span_cstr(s->authority), SPAN(METHOD), s->timeout_ms, e) < 0 ||
        (s->is_tls && http_head_set_scheme(&o->head, SPAN("https"), e) < 0))
        return -1;
    for (size_t i = 0; i < s->headers.n; i++)
        if (http_head_set(&o->head, span_cstr(s->headers.v[i].name),
                          span_cstr(s->headers.v[i].value), e) < 0)
            return -1;
    return 0;
}

int outbox_new(struct ev_loop *loop, struct dial_resolver *resolver,
               const struct trace_settings *settings, struct outbox **ret, struct err *e)
{
    const struct tls_config tls = { .role = TLS_CLIENT,
                                    .ca_file = settings->ca_file,
                                    .cert_file = settings->cert_file,
                                    .key_file = settings->key_file,
                                    .alpn = "h2" };
    const struct http_client_config client = { .resolver = resolver };
    struct outbox *o = NEW(struct outbox);

    o->loop = loop;
    o->timeout_ms = settings->timeout_ms;
    o->delay_ms = settings->delay_ms;
    o->host = own_strdup(settings->host);
    o->to = (struct http_target){ .host = o->host, .port = settings->port, .version = HTTP_V2 };
    copy_resource(o, &settings->attributes);
    if ((settings->is_tls && tls_new(&tls, &o->tls, e) < 0) || write_head(o, settings, e) < 0) {
        outbox_free(o);
        return err_wrap(e, "cannot send traces");
    }
    if (o->tls) {
        o->to.maker = tls_maker(o->tls);
        o->to.version = HTTP_BY_ALPN;
    }
    o->client = http_client_new(loop, &client);
    *ret = o;
    return 0;
}

void outbox_free(struct outbox *o)
{
    if (!o)
        return;
    o->state = OUTBOX_CLOSED;
    ev_timer_stop(o->loop, &o->timer);
    ev_timer_stop(o->loop, &o->patience);
    ev_post_cancel(&o->tell);
    if (o->client) { /* else it is half made, and its maker may be, too */
        http_client_free(o->client);
        while (o->call)
            ev_loop_turn(o->loop);
        ev_loop_turn(o->loop); /* connections are freed in it */
    }
    drop(o, o->count);
    free_resource(&o->resource);
    http_head_done(&o->head);
    tls_free(o->tls);
    free(o->host);
    free(o);
}
