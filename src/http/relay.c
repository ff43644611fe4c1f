#include "http/relay.h"

#include "http/join.h"
#include "http/limits.h"

#define BODY_MAX_BYTES (64 * 1024) /* of a refusal; more is cut off */

struct http_relay {
    struct http_relay_spec spec;
    struct ev_loop *loop;
    struct http_exchange *x; /* NULL once answered or gone */
    struct http_call *call;  /* NULL once over */
    struct http_join *join;  /* it switched protocols */
    struct buf body;
    int status;
    char type[128];
    bool is_flowing; /* its answer has begun, and comes in pieces */
    struct ev_task over;
};

/* ---- the end ---- */

static void relay_free(void *obj)
{
    struct http_relay *r = obj;

    buf_done(&r->body);
    free(r);
}

static void tell_over(void *ctx)
{
    struct http_relay *r = ctx;

    r->spec.on_done(r->spec.ctx);
    ev_free_later(r->loop, r, relay_free);
}

static void over_soon(struct http_relay *r)
{
    if (!r->over.is_queued)
        ev_post(r->loop, &r->over, tell_over, r);
}

int http_relay_status(const struct http_relay *r)
{
    return r->status;
}

void http_relay_close(struct http_relay *r)
{
    if (r->call)
        http_call_cancel(r->call);
    if (r->x && !r->call)
        http_answer_abort(take_ptr(&r->x));
    if (r->join)
        http_join_close(r->join);
}

/* The client left before it was answered. */
static void on_gone(void *ctx)
{
    struct http_relay *r = ctx;

    r->x = NULL;
    if (r->call)
        http_call_cancel(r->call); /* on_done follows */
}

/* ---- the answer ---- */

static void tell_answered(struct http_relay *r)
{
    if (r->spec.on_answered)
        r->spec.on_answered(r->spec.ctx);
}

static void on_drain(void *ctx)
{
    struct http_relay *r = ctx;

    if (r->call)
        http_call_pause(r->call, false);
}

static void on_head(void *ctx, const struct http_head *head)
{
    struct http_relay *r = ctx;
    struct span type = http_head_get(head, "content-type");

    r->status = head->status;
    tell_answered(r);
    if (type.n < sizeof r->type)
        (void)snprintf(r->type, sizeof r->type, "%.*s", SPAN_ARG(type));
    if (!r->x || r->status >= 300)
        return;
    r->is_flowing = true;
    if (r->type[0])
        http_answer_field(r->x, "content-type", span_cstr(r->type));
    http_on_drain(r->x, on_drain, r);
    /* Without a length: one that the other server does not keep is then no promise of ours. */
    http_answer_begin(r->x, r->status, UINT64_MAX);
}

static void on_data(void *ctx, struct span bytes)
{
    struct http_relay *r = ctx;

    if (!r->is_flowing) {
        (void)buf_add_capped(&r->body, bytes);
    } else if (r->x) {
        http_answer_write(r->x, bytes);
        if (http_answer_is_full(r->x))
            http_call_pause(r->call, true);
    }
}

/* Not a 101. */
static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct http_relay *r = ctx;
    struct http_exchange *x = take_ptr(&r->x);

    (void)trailers;
    r->call = NULL;
    if (x && r->is_flowing && e)
        http_answer_abort(x);
    else if (x && r->is_flowing)
        http_answer_end(x, NULL);
    else if (x && e)
        r->spec.on_failed(r->spec.ctx, x, e);
    else if (x)
        http_answer(x, r->status, r->type[0] ? r->type : NULL, buf_span(&r->body));
    over_soon(r);
}

static void joined(void *ctx)
{
    struct http_relay *r = ctx;

    r->join = NULL;
    over_soon(r);
}

static void on_upgrade(void *ctx, const struct http_head *head, struct conn *conn, struct span rest)
{
    struct http_relay *r = ctx;
    struct err e;

    r->call = NULL;
    r->status = 101;
    tell_answered(r);
    if (r->x)
        r->join = http_join_start(r->x, head, conn, rest, joined, r, &e);
    if (r->join) {
        r->x = NULL;
        return;
    }
    conn_close(conn);
    r->status = 0;
    if (r->x)
        r->spec.on_failed(r->spec.ctx, take_ptr(&r->x), &e);
    over_soon(r);
}

static const struct http_call_events call_events = {
    .on_head = on_head, .on_data = on_data, .on_done = on_done, .on_upgrade = on_upgrade
};

/* ---- the request ---- */

/* Who asks was judged here; the other server trusts us, and must not be able to act for the client. */
static bool is_passed(struct span name)
{
    return !span_is(name, "host") && !span_is(name, "authorization") && !span_is(name, "cookie") &&
           !span_is(name, "content-length") && !span_starts(name, "impersonate-") &&
           !span_starts(name, "x-remote-") && !span_starts(name, "proxy-");
}

static int copy_request(struct http_head *to, const struct http_exchange *x, struct span target,
                        struct err *e)
{
    const struct http_head *from = http_req(x);

    if (http_head_set_request(to, http_head_method(from), target, e) < 0)
        return -1;
    /* Fields of a plain request may speak of a body, or of the client's connection. */
    if (!http_upgrade(x).p)
        return 0;
    for (size_t i = 0; i < http_head_count(from); i++) {
        struct span name, value;

        http_head_field(from, i, &name, &value);
        if (is_passed(name) && http_head_add(to, name, value, e) < 0)
            return -1;
    }
    return 0;
}

struct http_relay *http_relay_start(struct http_exchange *x, const struct http_relay_spec *spec)
{
    struct http_relay *r = NEW(struct http_relay);
    OWN(http_head_done) struct http_head head;
    struct http_call_spec call = { .to = spec->to,
                                   .head = &head,
                                   .connect_ms = spec->connect_ms,
                                   .head_ms = spec->head_ms,
                                   .events = &call_events,
                                   .ctx = r };
    struct span target = spec->target.p ? spec->target : http_head_path(http_req(x));
    struct err e;

    r->spec = *spec;
    r->loop = http_loop(x);
    r->x = x;
    r->body.max = BODY_MAX_BYTES;
    http_head_init(&head, http_req(x)->text.max + spec->target.n, HTTP_HEAD_MAX_FIELDS);
    if (copy_request(&head, x, target, &e) < 0) {
        r->spec.on_failed(r->spec.ctx, take_ptr(&r->x), &e);
        over_soon(r);
        return r;
    }
    http_on_gone(x, on_gone, r);
    if (!http_upgrade(x).p)
        http_eof_is_gone(x);
    r->call = http_call_start(spec->client, &call);
    return r;
}
