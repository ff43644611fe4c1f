/* Longer than a file should be: the way there, both bodies, the answer and the end are one state, and two files would share
 * all of its fields. */
#include "router/hop.h"

#include "base/log.h"
#include "base/time.h"
#include "http/grpc_serve.h"
#include "http/guard.h"
#include "http/join.h"
#include "http/limits.h"
#include "router/account.h"
#include "router/fields.h"
#include "router/overview.h"

#include <errno.h>
#include <string.h>

#define GONE_STATUS 499 /* in logs and figures: the client left before its answer began */

struct hop {
    struct hop *next, **link;
    struct hops *hops;
    struct http_exchange *x; /* NULL once answered or gone */
    struct http_call *call;  /* NULL while there is none */
    struct http_join *join;  /* it switched protocols */
    struct review_wait review;
    struct overview_wait page;
    struct pick pick;
    struct http_head head;      /* as it goes on; the call's while there is one */
    struct key_limit_row *seat; /* of a WebSocket that counts; else NULL */
    struct ev_timer wait;       /* between tries */
    unsigned tries;
    uint64_t began_us;
    uint64_t in_bytes, out_bytes;
    int status;
    uint64_t length; /* of the answer; UINT64_MAX: not said */
    struct ev_task begin;
    bool is_held;    /* the answer's head waits for its body, to leave with it */
    bool is_reading; /* the client's body */
    struct account account;
    /* Written before they are read, or empty where their first is: large, and not cleared for each. */
    struct target target;
    struct refusal bad; /* status 0: the target is right */
    struct picked at;
};

static void dial(struct hop *h);

/* ---- the end ---- */

static void hop_free(void *obj)
{
    struct hop *h = obj;
    struct hops *hops = h->hops;

    if (hops->spare_count >= HOP_SPARES_MAX || h->head.text.cap > HOP_SPARE_HEAD_BYTES) {
        http_head_done(&h->head);
        free(h);
        return;
    }
    h->next = hops->spares;
    hops->spares = h;
    hops->spare_count++;
}

/* They are too large for the allocator's quick bins. The memory of a head stays with its hop. */
static struct hop *hop_alloc(struct hops *hops)
{
    struct hop *h = hops->spares;
    struct http_head head;

    if (!h) {
        h = NEW(struct hop);
        http_head_init(&h->head, ROUTER_HEAD_MAX_BYTES, HTTP_HEAD_MAX_FIELDS);
        return h;
    }
    hops->spares = h->next;
    hops->spare_count--;
    head = h->head;
    memset(h, 0, offsetof(struct hop, target));
    h->head = head;
    h->target.namespace[0] = '\0';
    h->bad.status = 0;
    return h;
}

/* Nothing of it is left. */
static void over(struct hop *h)
{
    uint64_t took_us = time_mono_us() - h->began_us;

    assert(!h->x && !h->call && !h->join);
    key_limit_leave(&h->hops->websockets, take_ptr(&h->seat));
    tally_end(h->hops->tally, span_cstr(h->account.method), h->status, h->target.namespace,
              (double)took_us / 1e6);
    account_close(&h->account, h->hops->tracer, h->status, h->out_bytes, took_us);
    *h->link = h->next;
    if (h->next)
        h->next->link = h->link;
    ev_free_later(h->hops->loop, h, hop_free);
}

static enum grpc_status grpc_status_for(int status)
{
    return status == 404   ? GRPC_NOT_FOUND
           : status == 504 ? GRPC_DEADLINE_EXCEEDED
                           : grpc_status_of_http(status);
}

/* Our own answer instead of the sandbox's. */
static void refuse(struct hop *h, int status, const char *detail)
{
    struct http_exchange *x = take_ptr(&h->x);

    h->status = status;
    if (grpc_is_call(http_req(x)))
        grpc_refuse(x, grpc_status_for(status), detail);
    else
        http_answer_detail(x, status, detail);
    over(h);
}

static void on_gone(void *ctx)
{
    struct hop *h = ctx;

    h->x = NULL;
    if (!h->status)
        h->status = GONE_STATUS;
    ev_post_cancel(&h->begin);
    review_cancel(&h->review);
    overview_cancel(&h->page);
    pick_cancel(&h->pick);
    ev_timer_stop(h->hops->loop, &h->wait);
    if (h->call)
        http_call_cancel(h->call); /* on_done follows */
    else
        over(h);
}

/* ---- the answer ---- */

static void on_answer_drain(void *ctx)
{
    struct hop *h = ctx;

    if (h->call)
        http_call_pause(h->call, false);
}

static void begin_answer(void *ctx)
{
    struct hop *h = ctx;

    if (!h->is_held)
        return;
    h->is_held = false;
    ev_post_cancel(&h->begin);
    http_on_drain(h->x, on_answer_drain, h);
    http_answer_begin(h->x, h->status, h->length);
}

static void on_head(void *ctx, const struct http_head *head)
{
    struct hop *h = ctx;

    h->status = head->status;
    if (!h->x)
        return;
    fields_answer(h->x, head, &h->length);
    /* gRPC's answer that is only a head must end with it: its status is not looked for there otherwise. */
    if (http_is_h2(h->x) && http_head_get(head, "grpc-status").p) {
        http_answer_head(take_ptr(&h->x), head->status);
        return;
    }
    /* Most bodies come right behind: both then leave in one segment. One that does not is not waited for. */
    h->is_held = true;
    ev_post(h->hops->loop, &h->begin, begin_answer, h);
}

static void on_data(void *ctx, struct span bytes)
{
    struct hop *h = ctx;

    h->out_bytes += bytes.n;
    if (!h->x)
        return;
    if (h->is_held && bytes.n == h->length) {
        h->is_held = false;
        ev_post_cancel(&h->begin);
        http_answer(take_ptr(&h->x), h->status, NULL, bytes);
        return;
    }
    begin_answer(h);
    http_answer_write(h->x, bytes);
    if (http_answer_is_full(h->x))
        http_call_pause(h->call, true);
}

/* ---- what goes wrong on the way ---- */

static const char *reason_of(const struct err *e, bool has_left)
{
    if (e->code == ERR_TIMEOUT)
        return "timeout";
    if (!has_left)
        return "dial";
    return e->code == ERR_CLOSED ? "eof" : "other";
}

/* Nobody is at that address, not even somebody who refuses: the cache is wrong. */
static bool is_dead_host(const struct err *e)
{
    return e->code == ERR_TIMEOUT || e->sys == EHOSTUNREACH || e->sys == ENETUNREACH ||
           e->sys == ETIMEDOUT;
}

static void try_again(void *ctx)
{
    dial(ctx);
}

/* True: it is tried again in a moment. */
static bool retry(struct hop *h, const struct err *e)
{
    const struct router_config *c = h->hops->config;
    uint64_t wait_ms = c->retry_first_ms << MIN(h->tries, 20u), past_ms;

    wait_ms = MIN(wait_ms, c->retry_most_ms);
    past_ms = (time_mono_us() - h->began_us) / 1000;
    if (h->tries >= c->retries || past_ms + wait_ms >= h->target.timeout_ms ||
        (e->code != ERR_UNAVAILABLE && e->code != ERR_TIMEOUT && e->code != ERR_NOT_FOUND))
        return false;
    h->tries++;
    tally_add(h->hops->tally, TALLY_RETRIES, h->target.namespace, NULL);
    ev_timer_start(h->hops->loop, &h->wait, wait_ms, try_again, h);
    return true;
}

static void failed(struct hop *h, const struct err *e, bool has_left)
{
    struct picker *picker = h->hops->config->picker;
    const char *id = h->target.id;
    bool is_inside = h->hops->config->sockets != NULL; /* there is no host to be dead */
    struct refusal why;

    log_warn("router.upstream", KV("sandbox", id),
             KV("namespace", (const char *)h->target.namespace), KV("source", h->at.source),
             KV("tries", h->tries), KV("err", e));
    if (!has_left && !is_inside && is_dead_host(e) &&
        picker->ops->unreachable(picker, &h->target, &h->at))
        tally_add(h->hops->tally, TALLY_INVALIDATIONS, h->target.namespace, NULL);
    if (!has_left && retry(h, e))
        return;
    tally_add(h->hops->tally, TALLY_UPSTREAM_ERRORS, h->target.namespace, reason_of(e, has_left));
    if (e->code == ERR_TIMEOUT)
        refusal_set(&why, 504, "Timed out waiting for the backend sandbox: %s", id);
    else if (e->code == ERR_LIMIT && !has_left)
        refusal_set(&why, 431, "The request has too many header fields to be passed on.");
    else
        refusal_set(&why, 502, "Could not connect to the backend sandbox: %s", id);
    refuse(h, why.status, why.detail);
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct hop *h = ctx;
    bool has_left = http_call_has_left(h->call);

    h->call = NULL;
    if (h->x)
        begin_answer(h); /* a body without a byte, or a head that is all there will be */
    if (h->x && e && !http_answer_has_begun(h->x)) {
        failed(h, e, has_left);
        return;
    }
    if (h->x && e) {
        tally_add(h->hops->tally, TALLY_UPSTREAM_ERRORS, h->target.namespace,
                  reason_of(e, has_left));
        http_answer_abort(take_ptr(&h->x));
    } else if (h->x) {
        http_answer_end(take_ptr(&h->x), trailers);
    }
    over(h);
}

/* ---- another protocol ---- */

static void joined(void *ctx)
{
    struct hop *h = ctx;

    h->join = NULL;
    over(h);
}

static bool is_websocket(const struct http_exchange *x)
{
    return span_is_nocase(http_upgrade(x), "websocket");
}

/* Each limit costs a look at every frame: without any there is none. */
static void limit(struct hop *h)
{
    const struct http_join_limits *w = &h->hops->config->websocket;

    if (w->idle_ms || w->lifetime_ms || w->message_max)
        http_join_limit(h->join, w);
}

static bool is_asked_for(const struct http_exchange *x, const struct http_head *head)
{
    OWN_MEM char *protocol = span_dup(http_head_get(head, "upgrade"));

    return http_upgrade(x).p && span_is_nocase(http_upgrade(x), protocol);
}

static void on_upgrade(void *ctx, const struct http_head *head, struct conn *conn, struct span rest)
{
    struct hop *h = ctx;
    bool has_limits = h->x && is_websocket(h->x);
    struct err e;

    h->call = NULL;
    if (h->x && is_asked_for(h->x, head)) {
        h->join = http_join_start(h->x, head, conn, rest, joined, h, &e);
        if (h->join) {
            if (has_limits)
                limit(h);
            h->status = 101;
            h->x = NULL;
            return;
        }
    }
    conn_close(conn);
    if (!h->x)
        over(h);
    else
        refuse(h, 502,
               "Backend attempted a WebSocket upgrade over HTTP. Connect using the WebSocket "
               "protocol instead.");
}

/* ---- the client's body ---- */

static void give_up(struct hop *h, int status, const char *detail)
{
    struct http_exchange *x = take_ptr(&h->x);

    h->status = status;
    if (h->call)
        http_call_cancel(h->call); /* on_done follows, and ends the hop */
    if (http_answer_has_begun(x))
        http_answer_abort(x);
    else
        http_answer_detail(x, status, detail);
}

static void on_body_data(void *ctx, struct span bytes)
{
    struct hop *h = ctx;
    uint64_t max = h->hops->config->max_body_bytes;

    h->in_bytes += bytes.n;
    if (!h->call)
        return; /* answered already; the rest is read over */
    if (max && h->in_bytes > max) {
        give_up(h, 413, "The request body is too large.");
        return;
    }
    http_call_write(h->call, bytes);
    if (http_call_is_full(h->call))
        http_body_pause(h->x, true);
}

static void on_body_end(void *ctx, const struct err *e)
{
    struct hop *h = ctx;

    if (!h->call)
        return;
    if (!e)
        http_call_end(h->call, NULL);
    else
        give_up(h, e->code == ERR_TIMEOUT ? 408 : 400, "The request body did not arrive whole.");
}

static const struct http_body_events body_events = { on_body_data, on_body_end };

/* The sandbox takes more; the first time: it is there. */
static void on_call_drain(void *ctx)
{
    struct hop *h = ctx;

    if (!h->x)
        return;
    if (!h->is_reading) {
        h->is_reading = true;
        http_body_read(h->x, &body_events, h);
    } else {
        http_body_pause(h->x, false);
    }
}

/* ---- the way there ---- */

static const struct http_call_events call_events = { .on_head = on_head,
                                                     .on_data = on_data,
                                                     .on_drain = on_call_drain,
                                                     .on_done = on_done,
                                                     .on_upgrade = on_upgrade };

static void dial(struct hop *h)
{
    uint64_t length = http_body_length(h->x), timeout_ms = h->target.timeout_ms;
    uint64_t head_ms = h->hops->config->head_ms;
    struct http_call_spec spec = { .to = { .host = h->at.host, .port = h->target.port },
                                   .lent_head = &h->head,
                                   .is_streamed = length != 0,
                                   .stream_length = length,
                                   .connect_ms = MIN(timeout_ms, (uint64_t)DIAL_CONNECT_MS),
                                   .head_ms = head_ms ? MIN(head_ms, timeout_ms) : timeout_ms,
                                   .idle_ms = timeout_ms,
                                   .events = &call_events,
                                   .ctx = h };
    struct err e;

    if (h->hops->config->sockets && !h->at.uid[0]) {
        refuse(h, 502, "The sandbox has no Pod on this machine.");
        return;
    }
    if (h->hops->config->sockets) {
        spec.to.plug = h->hops->config->sockets;
        spec.to.place = h->at.uid;
    }
    http_head_clear(&h->head);
    if (fields_request(h->x, trust_has(&h->hops->config->proxies, http_peer(h->x)), &h->head, &e) <
            0 ||
        account_pass(&h->account, &h->head, &e) < 0) {
        refuse(h, 431, "The request has too many header fields to be passed on.");
        return;
    }
    /* gRPC is HTTP/2 or nothing; everything else every server speaks in HTTP/1.1. */
    spec.to.version = http_is_h2(h->x) && grpc_is_call(http_req(h->x)) ? HTTP_V2 : HTTP_V1;
    h->call = http_call_start(h->hops->client, &spec);
}

static void on_picked(void *ctx, enum pick_verdict verdict, const struct picked *at,
                      const struct refusal *why)
{
    struct hop *h = ctx;

    if (verdict != PICK_FOUND) {
        refuse(h, why->status, why->detail);
        return;
    }
    h->at = *at;
    dial(h);
}

static void find(struct hop *h)
{
    struct refusal why = { 0 };
    enum pick_verdict verdict =
        pick_start(&h->pick, h->hops->config->picker, &h->target, &h->at, &why, on_picked, h);

    if (verdict == PICK_FOUND)
        dial(h);
    else if (verdict == PICK_REFUSED)
        refuse(h, why.status, why.detail);
}

/* ---- the beginning ---- */

static const struct caller *caller_of(const struct http_exchange *x)
{
    struct http_owner *owner = http_owner(x);

    return owner ? CONTAINER(owner, struct caller, base) : NULL;
}

static struct hop *hop_new(struct hops *hops, struct http_exchange *x)
{
    struct hop *h = hop_alloc(hops);

    h->hops = hops;
    h->x = x;
    h->link = &hops->first;
    h->next = hops->first;
    if (h->next)
        h->next->link = &h->next;
    hops->first = h;
    h->began_us = time_mono_us();
    account_begin(&h->account, x);
    tally_begin(hops->tally);
    return h;
}

/* False: it has as many WebSockets as it may, and is told so. */
static bool find_seat(struct hop *h)
{
    struct hops *hops = h->hops;
    char client[NET_ADDR_TEXT_BYTES];
    struct refusal why;

    if (!hops->websockets.max || !is_websocket(h->x))
        return true;
    crowd_name(http_req(h->x), http_peer(h->x), &hops->config->proxies, client);
    if (key_limit_enter(&hops->websockets, client, &h->seat))
        return true;
    refusal_set(&why, 403, "Too many concurrent WebSocket connections (limit: %llu).",
                (unsigned long long)hops->websockets.max);
    refuse(h, why.status, why.detail);
    return false;
}

/* Who asks is known, and may. Now what is wrong with the request can be told. */
static void go_on(struct hop *h)
{
    uint64_t max = h->hops->config->max_body_bytes, length = http_body_length(h->x);

    if (h->bad.status)
        refuse(h, h->bad.status, h->bad.detail);
    else if (http_method_is(h->x, "CONNECT"))
        refuse(h, 405, "Method Not Allowed");
    else if (max && length != UINT64_MAX && length > max)
        refuse(h, 413, "The request body is too large.");
    else if (find_seat(h))
        find(h);
}

static void on_verdict(struct hop *h, enum authorize_verdict verdict, const struct refusal *why)
{
    const char *namespace = h->target.namespace;

    if (h->bad.status && verdict == AUTHORIZE_DENIED && why->status == 403)
        verdict = AUTHORIZE_ALLOWED; /* to hear that its names are wrong */
    tally_add(h->hops->tally, TALLY_DECISIONS, namespace,
              verdict == AUTHORIZE_ALLOWED ? "allow" : "deny");
    if (verdict == AUTHORIZE_ALLOWED) {
        go_on(h);
        return;
    }
    log_info("router.denied", KV("sandbox", (const char *)h->target.id), KV("namespace", namespace),
             KV("status", why->status), KV("why", (const char *)why->detail));
    refuse(h, why->status, why->detail);
}

static void on_reviewed(void *ctx, const struct refusal *why)
{
    on_verdict(ctx, why->status ? AUTHORIZE_DENIED : AUTHORIZE_ALLOWED, why);
}

static void judge(struct hop *h)
{
    struct authorizer *a = h->hops->config->authorizer;
    const struct caller *caller = caller_of(h->x);
    enum authorize_verdict verdict;
    struct refusal why = { 0 };

    h->review.done = on_reviewed;
    h->review.ctx = h;
    if (caller && h->bad.status)
        verdict = AUTHORIZE_ALLOWED; /* to hear what is wrong: nothing can be asked for */
    else if (caller)
        verdict = authorize_caller(a, caller, &h->target, &h->review, &why);
    else
        verdict = authorize_start(a, http_req(h->x), &h->target, &h->review, &why);
    if (verdict != AUTHORIZE_WAITING)
        on_verdict(h, verdict, &why);
}

static void on_page(void *ctx, int status, struct span text)
{
    struct hop *h = ctx;
    struct http_exchange *x = take_ptr(&h->x);

    h->status = status;
    if (status == 200) {
        h->out_bytes = text.n;
        overview_answer(x, text);
    } else {
        OWN_MEM char *why = span_dup(text);

        http_answer_detail(x, status, why);
    }
    over(h);
}

void hop_start(struct hops *hops, struct http_exchange *x)
{
    struct hop *h = hop_new(hops, x);
    const struct router_config *c = hops->config;
    const struct guard_names names = { ROUTER_SERVICE, c->cluster_domain, &c->allow_host };
    const struct router_door *door = http_filter(x)  ? &c->tls
                                     : http_owner(x) ? &c->tunnel
                                                     : &c->plain;

    if (c->has_access_log || hops->tracer)
        account_open(&h->account, x, caller_of(x), hops->tracer);
    if (span_is(http_path(x), "/healthz")) {
        h->status = 200;
        http_answer(take_ptr(&h->x), 200, "application/json", SPAN("{\"status\":\"ok\"}"));
        over(h);
        return;
    }
    h->account.is_logged = c->has_access_log;
    http_on_gone(x, on_gone, h);
    if (door->is_guarded && !guard_is_own_origin(http_req(x), &c->allow_origin)) {
        refuse(h, 403, "a foreign Origin is not allowed; see --allow-origin");
        return;
    }
    if (door->is_guarded && !guard_is_local_host(http_req(x), &names)) {
        refuse(h, 403, "this Host is not allowed; see --allow-host");
        return;
    }
    if (c->overview && door == &c->plain && door->is_owner_only && overview_is_asked_for(x)) {
        h->page.done = on_page;
        h->page.ctx = h;
        overview_start(c->overview, &h->page);
        return;
    }
    if (grpc_is_call(http_req(x)))
        http_body_may_rest(x); /* one side of a conversation */
    if (!http_upgrade(x).p)
        http_eof_is_gone(x); /* nobody reads what the sandbox would say */
    (void)match_read(http_req(x), &c->rules, &h->target, &h->bad);
    judge(h);
}

void hops_close(struct hops *hops)
{
    for (struct hop *h = hops->first; h; h = h->next)
        if (h->join)
            http_join_close(h->join);
}

void hops_done(struct hops *hops)
{
    while (hops->first)
        ev_loop_turn(hops->loop);
    ev_loop_turn(hops->loop); /* the last are freed in it */
    key_limit_done(&hops->websockets);
    while (hops->spares) {
        struct hop *h = hop_alloc(hops);

        http_head_done(&h->head);
        free(h);
    }
}
