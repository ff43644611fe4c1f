#include "podstream/podstream.h"

#include "base/log.h"
#include "http/ws_handshake.h"
#include "podstream/session.h"
#include "podstream/status.h"

struct podstream {
    struct ev_loop *loop;
    struct pod_backend *backend;
    struct session *sessions;
    size_t count; /* of them, and of requests that are about to become one */
};

struct podstream *podstream_new(struct ev_loop *loop, struct pod_backend *backend)
{
    struct podstream *ps = NEW(struct podstream);

    ps->loop = loop;
    ps->backend = backend;
    return ps;
}

void podstream_free(struct podstream *ps)
{
    if (!ps)
        return;
    do { /* one that was about to begin may have begun meanwhile */
        for (struct session *s = ps->sessions; s; s = s->next)
            s->close(s);
        ev_loop_turn(ps->loop);
    } while (ps->count);
    conn_close_orphans(ps->loop); /* last words to clients that do not listen */
    ev_loop_turn(ps->loop);
    free(ps);
}

size_t podstream_sessions(const struct podstream *ps)
{
    return ps->count;
}

void session_init(struct session *s, const struct session_start *start,
                  void (*close)(struct session *s))
{
    struct podstream *ps = start->ps;

    s->ps = ps;
    s->loop = ps->loop;
    s->backend = ps->backend;
    s->req = start->req;
    s->close = close;
    s->at = &ps->sessions;
    s->next = ps->sessions;
    if (s->next)
        s->next->at = &s->next;
    ps->sessions = s;
}

void session_done(struct session *s)
{
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    s->ps->count--;
    pod_request_free(take_ptr(&s->req));
}

/* ---- refusals ---- */

static void refuse(struct http_exchange *x, int status, const char *reason, const char *message)
{
    OWN(buf_done) struct buf body = BUF_INIT(STATUS_MAX_BYTES);

    status_of_refusal(&body, status, reason, message);
    http_answer(x, status, "application/json", buf_span(&body));
}

/* `Invalid` is said of objects, and there is none here. */
static void refuse_err(struct http_exchange *x, const struct err *e)
{
    int status = err_map(e->code)->http;

    refuse(x, status, status == 400 ? "BadRequest" : err_map(e->code)->kube_reason, e->msg);
}

/* ---- which protocol ---- */

struct protocol {
    const char *name;
    enum session_protocol protocol;
};

/* In the order of our preference. */
static const struct protocol ws_remote[] = {
    { "v5.channel.k8s.io", SESSION_CHANNELS_V5 },
    { "v4.channel.k8s.io", SESSION_CHANNELS_V4 },
    { "v4.base64.channel.k8s.io", SESSION_CHANNELS_V4_BASE64 },
    { "channel.k8s.io", SESSION_CHANNELS_TEXT },
    { "base64.channel.k8s.io", SESSION_CHANNELS_TEXT_BASE64 },
    { NULL, SESSION_CHANNELS_TEXT }, /* what a client without a wish gets */
};
static const struct protocol ws_forward[] = {
    { "SPDY/3.1+portforward.k8s.io", SESSION_FORWARD_TUNNEL },
    { "v4.channel.k8s.io", SESSION_FORWARD_CHANNELS },
    { "v4.base64.channel.k8s.io", SESSION_FORWARD_CHANNELS_BASE64 },
    { NULL, SESSION_FORWARD_CHANNELS },
};
static const struct protocol spdy_remote[] = {
    { "v4.channel.k8s.io", SESSION_SPDY_V4 },
    { "v3.channel.k8s.io", SESSION_SPDY_V3 },
    { "v2.channel.k8s.io", SESSION_SPDY_V1 },
    { "channel.k8s.io", SESSION_SPDY_V1 },
    { NULL, SESSION_SPDY_V1 },
};
static const struct protocol spdy_forward[] = {
    { "portforward.k8s.io", SESSION_FORWARD_SPDY },
    { NULL, SESSION_FORWARD_SPDY },
};

/* A list in one field or in several; the first of ours that is in it. NULL: none. */
static const struct protocol *pick(const struct protocol *ours, const struct http_head *req,
                                   const char *field)
{
    if (!http_head_get(req, field).n) {
        while (ours->name)
            ours++;
        return ours;
    }
    while (ours->name && !http_head_has_item(req, field, ours->name))
        ours++;
    return ours->name ? ours : NULL;
}

/* ---- requests ---- */

static void open_session(const struct session_start *start, struct conn *conn, struct span rest)
{
    switch (start->protocol) {
    case SESSION_CHANNELS_TEXT:
    case SESSION_CHANNELS_TEXT_BASE64:
    case SESSION_CHANNELS_V4:
    case SESSION_CHANNELS_V4_BASE64:
    case SESSION_CHANNELS_V5:
        remote_ws_open(start, conn, rest);
        return;
    case SESSION_SPDY_V1:
    case SESSION_SPDY_V3:
    case SESSION_SPDY_V4:
        remote_spdy_open(start, conn, rest);
        return;
    case SESSION_FORWARD_SPDY:
    case SESSION_FORWARD_TUNNEL:
        forward_spdy_open(start, conn, rest);
        return;
    case SESSION_FORWARD_CHANNELS:
    case SESSION_FORWARD_CHANNELS_BASE64:
        forward_ws_open(start, conn, rest);
        return;
    }
}

static void switched(void *ctx, struct conn *conn, struct span rest)
{
    OWN_MEM struct session_start *start = ctx;

    if (conn) {
        open_session(start, conn, rest);
        return;
    }
    start->ps->count--;
    pod_request_free(start->req);
}

static void begin(struct podstream *ps, struct http_exchange *x, struct pod_request *req,
                  const struct protocol *p, const char *upgrade)
{
    struct session_start *start =
        NEW(struct session_start); /* until the connection changes hands */

    *start = (struct session_start){ .ps = ps, .req = req, .protocol = p->protocol };
    ps->count++;
    log_info("podstream.open", KV("id", http_id(x)), KV("namespace", req->ns), KV("pod", req->pod),
             KV("path", http_path(x)), KV("upgrade", upgrade),
             KV("protocol", p->name ? p->name : ""));
    http_answer_switch(x, upgrade, switched, start);
}

/* -1: refused. */
static int serve_ws(struct podstream *ps, struct http_exchange *x, struct pod_request *req)
{
    const struct protocol *p = pick(req->verb == POD_FORWARD ? ws_forward : ws_remote, http_req(x),
                                    "sec-websocket-protocol");
    char accept[WS_ACCEPT_BYTES + 1];
    struct err e;

    if (ws_request_judge(http_req(x), &e) < 0) {
        if (e.code == ERR_UNSUPPORTED) {
            http_answer_field(x, "sec-websocket-version", SPAN("13"));
            refuse(x, 426, "BadRequest", e.msg);
        } else {
            refuse_err(x, &e);
        }
        return -1;
    }
    if (!p) {
        refuse(x, 400, "BadRequest", "none of the offered WebSocket subprotocols is served here");
        return -1;
    }
    if (req->verb == POD_FORWARD && p->protocol != SESSION_FORWARD_TUNNEL && !req->port_count) {
        refuse(x, 400, "BadRequest", "query parameter \"ports\" is required");
        return -1;
    }
    ws_accept(http_field(x, "sec-websocket-key"), accept);
    http_answer_field(x, "sec-websocket-accept", span_cstr(accept));
    if (p->name)
        http_answer_field(x, "sec-websocket-protocol", span_cstr(p->name));
    begin(ps, x, req, p, "websocket");
    return 0;
}

static int serve_spdy(struct podstream *ps, struct http_exchange *x, struct pod_request *req)
{
    const struct protocol *ours = req->verb == POD_FORWARD ? spdy_forward : spdy_remote;
    const struct protocol *p = pick(ours, http_req(x), "x-stream-protocol-version");

    if (!p) {
        for (; ours->name; ours++)
            http_answer_field(x, "x-accepted-stream-protocol-versions", span_cstr(ours->name));
        refuse(x, 403, "Forbidden", "none of the offered stream protocols is served here");
        return -1;
    }
    if (p->name)
        http_answer_field(x, "x-stream-protocol-version", span_cstr(p->name));
    begin(ps, x, req, p, "SPDY/3.1");
    return 0;
}

/* Takes the request. */
static void serve_log(struct podstream *ps, struct http_exchange *x, struct pod_request *req)
{
    const struct session_start start = { .ps = ps, .req = req };
    struct err e;

    if (ps->count >= POD_SESSIONS_MAX)
        (void)err_set(&e, ERR_BUSY, "too many streams at once");
    else if (!ps->backend->ops->log)
        (void)err_set(&e, ERR_UNSUPPORTED, "no logs are kept here");
    else if (ps->backend->ops->admit(ps->backend, req, &e) == 0) {
        ps->count++;
        if (log_session_open(&start, x, &e) < 0)
            refuse_err(x, &e);
        return;
    }
    refuse_err(x, &e);
    pod_request_free(req);
}

/* -1: refused. The request is the session's on success. */
static int serve_request(struct podstream *ps, struct http_exchange *x, struct pod_request *req)
{
    struct span upgrade = http_upgrade(x);
    struct err e;

    if (!upgrade.p) {
        refuse(x, 400, "BadRequest", "Upgrade request required");
        return -1;
    }
    if (ps->count >= POD_SESSIONS_MAX) {
        refuse(x, 429, "TooManyRequests", "too many streams at once");
        return -1;
    }
    if (ps->backend->ops->admit(ps->backend, req, &e) < 0) {
        refuse_err(x, &e);
        return -1;
    }
    if (span_is_nocase(upgrade, "websocket"))
        return serve_ws(ps, x, req);
    if (span_is_nocase(upgrade, "SPDY/3.1"))
        return serve_spdy(ps, x, req);
    refuse(x, 400, "BadRequest", "unable to upgrade: only websocket and SPDY/3.1 are served");
    return -1;
}

bool podstream_serve(struct podstream *ps, struct http_exchange *x)
{
    struct pod_request *req;
    struct err e;

    if (!pod_request_is(http_path(x)))
        return false;
    if (!http_method_is(x, "GET") &&
        (!http_method_is(x, "POST") || span_ends(http_path(x), "/log"))) {
        http_answer_field(x, "allow", SPAN("GET, POST"));
        refuse(x, 405, "MethodNotAllowed", "streams are opened by GET or POST, logs by GET");
    } else if (pod_request_parse(http_path(x), http_query(x), &req, &e) < 0) {
        refuse_err(x, &e);
    } else if (req->verb == POD_LOG) {
        serve_log(ps, x, req);
    } else if (serve_request(ps, x, req) < 0) {
        pod_request_free(req);
    }
    return true;
}
