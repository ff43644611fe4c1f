/* HTTP/1.1 on a link: one call at a time, the connection kept between them. */
#include "http/client_impl.h"

#include "ev/limits.h"
#include "http/limits.h"

#define INTERIM_MAX    32          /* 1xx before an answer; 102 comes every 20 s at most */
#define SMALL_BODY_MAX (16 * 1024) /* goes out with the head, in one segment */
/* Of a request's head beside its text: one allocation for all that have no body */
#define REQUEST_GUESS_BYTES 64

static void feed(struct http_link *l, struct span in);

/* Room for any head: its text is bounded, and each field gains four bytes. */
static size_t request_max(const struct http_link *l)
{
    return 2 * (size_t)l->client->config.request_max_bytes + 8 * HTTP_HEAD_MAX_FIELDS +
           SMALL_BODY_MAX;
}

void http_link_h1_open(struct http_link *l)
{
    l->ops = &http_link_h1;
    l->limits = http1_limits_default;
    l->limits.head_bytes = l->client->config.head_max_bytes;
    l->limits.line_bytes = l->limits.head_bytes;
    l->stash.max = EV_SCRATCH_BYTES;
    http1_init(&l->parser, HTTP1_RESPONSE, &l->limits);
}

void http_link_h1_done(struct http_link *l)
{
    if (l->ops == &http_link_h1)
        http1_done(&l->parser);
    buf_done(&l->stash);
}

/* ---- the request ---- */

static void write_body(struct http_call *x, struct span bytes)
{
    struct buf out = BUF_INIT(bytes.n + 64);
    struct err e;

    if (bytes.n == 0)
        return;
    if (x->stream_left != HTTP_BODY_CHUNKED || !x->is_streamed) {
        conn_write(x->link->conn, bytes);
        return;
    }
    (void)http1_write_chunk(&out, bytes, &e); /* sized for it */
    conn_write_buf(x->link->conn, &out);
}

static void end_body(struct http_call *x)
{
    OWN(buf_done) struct buf out = BUF_INIT(2 * HTTP_TRAILER_MAX_BYTES);
    struct err e;

    if (!x->is_streamed || x->stream_left != HTTP_BODY_CHUNKED)
        return;
    /* Trailers that cannot go on the wire are left out: the body itself is whole. */
    if (http1_write_last_chunk(&out, x->trailers, &e) < 0)
        (void)http1_write_last_chunk(&out, NULL, &e);
    conn_write(x->link->conn, buf_span(&out));
}

static void h1_begin(struct http_call *x)
{
    struct http_link *l = x->link;
    OWN(buf_done) struct buf out = BUF_INIT(request_max(l));
    bool is_small = !x->is_streamed && x->body.n <= SMALL_BODY_MAX;
    struct err e;

    l->call = x;
    l->interims = 0;
    l->sent_before = conn_sent(l->conn);
    ev_text_take(l->client->loop, &out);
    if (buf_reserve(&out, x->head.text.n + 4 * x->head.field_count + REQUEST_GUESS_BYTES, &e) < 0 ||
        http1_write_request(&out, &x->head, &e) < 0) {
        (void)err_wrap(&e, "cannot call '%s'", x->site->label);
        l->call = NULL;
        x->link = NULL;
        if (l->was_used)
            http_link_keep(l);
        else
            http_link_close(l);
        http_call_end_soon(x, &e);
        return;
    }
    http1_set_method(&l->parser, http_head_method(&x->head));
    conn_want_read(l->conn, !x->is_paused);
    if (is_small)
        /* Fits: request_max() counts a small body. */
        (void)buf_add(&out, buf_span(&x->body), &e);
    conn_write(l->conn, buf_span(&out));
    ev_text_give(l->client->loop, &out);
    if (!is_small)
        write_body(x, buf_span(&x->body));
    if (x->is_streamed)
        buf_done(&x->body); /* a whole body stays, for a retry */
    if (x->is_ended)
        end_body(x);
    else if (!conn_is_full(l->conn) && x->events->on_drain)
        x->events->on_drain(x->ctx); /* there is a connection now */
}

static bool h1_is_full(const struct http_call *x)
{
    return conn_is_full(x->link->conn);
}

/* To a slow reader conn_sent() can stand still for long; once all is in the kernel, its acknowledgements are no answer. */
static uint64_t h1_progress(const struct http_call *x)
{
    const struct conn *c = x->link->conn;

    return conn_is_sending(c) ? conn_moved(c) : conn_sent(c);
}

static bool h1_is_sending(const struct http_call *x)
{
    return conn_queued(x->link->conn) > 0;
}

/* The rest of an answer nobody wants cannot be skipped: the connection goes with the call. */
static void h1_drop(struct http_call *x)
{
    struct http_link *l = x->link;

    l->call = NULL;
    http_link_close(l);
}

static void go_on(void *ctx)
{
    struct http_link *l = ctx;
    struct buf in = BUF_INIT(EV_SCRATCH_BYTES);

    if (!l->call || l->call->is_paused)
        return;
    buf_move(&in, &l->stash);
    conn_want_read(l->conn, true);
    feed(l, buf_span(&in));
    buf_done(&in);
}

static void h1_pause(struct http_call *x, bool is_paused)
{
    struct http_link *l = x->link;

    if (is_paused)
        conn_want_read(l->conn, false);
    else if (!l->task
                  .is_queued) /* even with nothing kept: the end may be all that is left to tell */
        ev_post(l->client->loop, &l->task, go_on, l);
}

const struct http_link_ops http_link_h1 = { h1_begin,    write_body,    end_body, h1_is_full,
                                            h1_progress, h1_is_sending, h1_pause, h1_drop };

/* ---- the response ---- */

static void fail_call(struct http_link *l, struct err *e)
{
    struct http_call *x = l->call;

    (void)err_wrap(e, "bad answer from '%s'", x->site->label);
    http_call_fail(x, e); /* drops it, and the connection with it */
}

/* Another protocol from here on: the connection changes hands. */
static void upgrade(struct http_link *l, struct span rest)
{
    struct http_call *x = take_ptr(&l->call);
    struct conn *conn;
    struct err e;

    if (!x->events->on_upgrade) {
        l->call = x;
        (void)err_set(&e, ERR_PROTOCOL, "it switched protocols, which nobody asked for");
        fail_call(l, &e);
        return;
    }
    conn = take_ptr(&l->conn);
    conn_want_read(conn, true);
    conn_set_events(conn, NULL, NULL);
    http_link_free(l); /* in a later turn: the head is still in its parser */
    http_call_forget(x);
    x->events->on_upgrade(x->ctx, &l->parser.head, conn, rest);
}

static void answered(struct http_link *l, struct span rest)
{
    struct http_call *x = take_ptr(&l->call);
    /* An answer to half a request, or bytes behind the answer: nobody could say where the next one begins. */
    bool is_kept = l->parser.keep_alive && x->is_ended && !h1_is_sending(x) && rest.n == 0;
    struct http_head *trailers = l->parser.trailers;

    l->was_used = true;
    x->link = NULL;
    l->state =
        LINK_LEAVING; /* not to be found while the caller is told, who may call again at once */
    http_call_succeed(x, trailers);
    if (!is_kept) {
        conn_close(l->conn);
        return;
    }
    http1_next(&l->parser);
    http_link_keep(l);
}

/* True: the message goes on. */
static bool on_message_end(struct http_link *l, struct span rest)
{
    struct err e;

    if (l->parser.is_switched) {
        upgrade(l, rest);
        return false;
    }
    if (l->parser.head.status >= 200) {
        answered(l, rest);
        return false;
    }
    if (++l->interims > INTERIM_MAX) {
        (void)err_set(&e, ERR_LIMIT, "more than %d interim responses", INTERIM_MAX);
        fail_call(l, &e);
        return false;
    }
    http1_next(&l->parser);
    return true;
}

static void on_head(struct http_call *x)
{
    const struct http_head *head = &x->link->parser.head;

    if (head->status < 200 || x->link->parser.is_switched)
        return;
    x->has_head = true;
    http_call_watch(x);
    x->events->on_head(x->ctx, head);
}

/* Each event may cancel or pause the call: look before going on. */
static void feed(struct http_link *l, struct span in)
{
    struct http_call *x = l->call;
    struct span data;
    struct err e;
    size_t used;

    if (in.n)
        x->has_bytes = true;
    while (l->call == x && !x->is_paused) {
        enum http1_event ev = http1_feed(&l->parser, in, &used, &data, &e);

        in = span_skip(in, used);
        switch (ev) {
        case HTTP1_MORE:
            if (x->has_head) /* a head that trickles in gets no more time */
                http_call_watch(x);
            return;
        case HTTP1_HEAD:
            on_head(x);
            break;
        case HTTP1_DATA:
            if (x->events->on_data)
                x->events->on_data(x->ctx, data);
            break;
        case HTTP1_END:
            if (!on_message_end(l, in))
                return;
            break;
        case HTTP1_BAD:
            fail_call(l, &e);
            return;
        }
    }
    if (l->call == x) /* paused: reading is off, so this is at most one read's worth */
        /* Fits: EV_SCRATCH_BYTES are one read. */
        (void)buf_add(&l->stash, in, &e);
}

/* ---- events of the connection ---- */

static void on_read(void *ctx, struct span in)
{
    struct http_link *l = ctx;

    if (l->call)
        feed(l, in);
    else if (l->state == LINK_IDLE)
        http_link_close(l); /* bytes that answer nothing, a 408 perhaps */
}

static void lost(struct http_link *l, const struct err *e)
{
    struct http_call *x = take_ptr(&l->call);
    bool has_left = conn_sent(l->conn) != l->sent_before;

    http_call_lost(x, l->was_used && (x->is_idempotent || !has_left), e);
}

static void on_eof(void *ctx)
{
    struct http_link *l = ctx;
    struct http_call *x = l->call;
    struct err e;

    if (!x) {
        if (l->state == LINK_IDLE)
            http_link_close(l);
        return;
    }
    switch (http1_eof(&l->parser, &e)) {
    case HTTP1_END:
        l->parser.keep_alive = false;
        answered(l, SPAN_NONE);
        return;
    case HTTP1_BAD:
        fail_call(l, &e);
        return;
    case HTTP1_MORE:
    case HTTP1_HEAD:
    case HTTP1_DATA:
        break;
    }
    (void)err_set(&e, ERR_CLOSED, "'%s' closed the connection without an answer", x->site->label);
    l->state = LINK_LEAVING;
    lost(l, &e);
    conn_close(l->conn);
}

static void on_drain(void *ctx)
{
    struct http_link *l = ctx;
    struct http_call *x = l->call;

    if (x && x->is_streamed && !x->is_ended && x->events->on_drain)
        x->events->on_drain(x->ctx);
}

static void on_close(void *ctx, const struct err *e)
{
    struct http_link *l = ctx;
    struct err why;

    if (l->call) {
        if (e)
            why = *e;
        else
            (void)err_set(&why, ERR_CLOSED, "connection closed");
        (void)err_wrap(&why, "no whole answer from '%s'", l->call->site->label);
        lost(l, &why);
    }
    l->conn = NULL;
    http_link_free(l);
}

const struct conn_events http_link_h1_events = { on_read, on_eof, on_drain, on_close };
