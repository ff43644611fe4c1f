/* One HTTP/1.1 connection: requests one after the other, answers in the same order.
 *
 * Bytes go into feed(), which stops where nobody can take them: a body without a reader, an answer that is not ended, a
 * peer that does not take its answers. What is left then waits in `pending` with reading off, and resume() goes on
 * from there. The end of the peer's side is an event in the same stream: it counts once everything before it is used.
 */
#include "http/serve_conn.h"

#include "base/log.h"
#include "ev/limits.h"
#include "http/limits.h"

#define DISCARD_MAX_BYTES (64 * 1024) /* of a body nobody reads; more is not worth the connection */
/* Of an answer: one allocation for nearly all, with its terminator a round one */
#define HEAD_GUESS_BYTES 511

static const struct http_carrier_ops h1_ops;
static void feed(struct http_conn *hc, struct span in);
static void stall_check(void *ctx);

static const struct http_server_config *config_of(const struct http_conn *hc)
{
    return http_server_config(hc->server);
}

/* Sends what is queued and closes; nothing more is read. */
static void finish(struct http_conn *hc)
{
    if (hc->is_finished)
        return;
    hc->is_finished = true;
    http_conn_clear_deadline(hc);
    conn_finish(hc->conn);
}

static void drop(struct http_conn *hc)
{
    hc->is_finished = true;
    conn_close(hc->conn);
}

/* ---- deadlines ---- */

static void idle_over(void *ctx)
{
    struct http_conn *hc = ctx;
    uint64_t past_ms = ev_now_ms(http_server_loop(hc->server)) - hc->idle_ms;

    if (past_ms >= config_of(hc)->idle_timeout_ms) {
        drop(hc);
        return;
    }
    http1_release(
        &hc->h1); /* it rests: only now, as most that are in use have the next request at once */
    http_conn_set_deadline(hc, config_of(hc)->idle_timeout_ms - past_ms, idle_over);
}

static void wait_idle(struct http_conn *hc)
{
    hc->idle_ms = ev_now_ms(http_server_loop(hc->server));
    http_conn_set_deadline(hc, MIN(config_of(hc)->idle_timeout_ms, (uint64_t)HTTP_REST_MS),
                           idle_over);
}

static void head_over(void *ctx)
{
    http_conn_refuse(ctx, 408, "the request's head did not arrive in time");
}

static bool waits_for_peer(const struct http_conn *hc)
{
    const struct http_exchange *x = hc->one;

    if (conn_is_sending(hc->conn))
        return true;
    return x && x->body == HTTP_BODY_COMING && http_exchange_takes_body(x) && !x->may_rest;
}

/* Looks now and then while something should move. Two looks without a difference are a standstill. */
static void stall_check(void *ctx)
{
    struct http_conn *hc = ctx;
    struct http_exchange *x = hc->one;
    uint64_t moved = hc->received + conn_moved(hc->conn);
    struct err e;

    if (!x && !conn_is_sending(hc->conn)) {
        wait_idle(hc);
        return;
    }
    if (waits_for_peer(hc) && moved == hc->moved) {
        if (!x || x->is_over || x->has_begun || x->body != HTTP_BODY_COMING) {
            log_debug("http.stalled", KV("sending", conn_is_sending(hc->conn)));
            drop(hc);
            return;
        }
        (void)err_set(&e, ERR_TIMEOUT, "the request's body stopped arriving");
        x->keep_alive = false;
        http_exchange_body_end(x, &e); /* may answer */
        if (hc->is_finished)
            return;
    }
    hc->moved = moved;
    http_conn_set_deadline(hc, config_of(hc)->stall_timeout_ms, stall_check);
}

static void watch_for_stalls(struct http_conn *hc)
{
    if (http_conn_has_deadline(hc) || hc->is_finished)
        return;
    hc->moved = hc->received + conn_moved(hc->conn);
    http_conn_set_deadline(hc, config_of(hc)->stall_timeout_ms, stall_check);
}

/* ---- what no handler sees ---- */

static int write_refusal(struct http_conn *hc, int status, const char *type, struct span body,
                         struct buf *out, struct err *e)
{
    const char *server = config_of(hc)->server_name;

    if (http1_write_status(out, status, e) < 0 ||
        http1_write_field(out, SPAN("date"), http_server_date(hc->server), e) < 0)
        return -1;
    if (server && http1_write_field(out, SPAN("server"), span_cstr(server), e) < 0)
        return -1;
    if (http1_write_field(out, SPAN("content-type"), span_cstr(type), e) < 0 ||
        http1_write_field_u64(out, "content-length", body.n, e) < 0 ||
        http1_write_field(out, SPAN("connection"), SPAN("close"), e) < 0 ||
        http1_write_head_end(out, e) < 0)
        return -1;
    return buf_add(out, body, e);
}

void http_conn_refuse(struct http_conn *hc, int status, const char *message)
{
    const struct http_server_config *config = config_of(hc);
    OWN(buf_done) struct buf body = BUF_INIT(8 * 1024), out = BUF_INIT(16 * 1024);
    const char *type = "application/json";
    struct err e;

    if (config->error_body)
        config->error_body(config->ctx, status, message, &body, &type);
    else
        http_write_detail(&body, message);
    if (write_refusal(hc, status, type, buf_span(&body), &out, &e) == 0)
        conn_write(hc->conn, buf_span(&out));
    log_debug("http.refused", KV("status", status), KV("why", message));
    finish(hc);
}

/* ---- bytes in ---- */

void http_h1_open(struct http_conn *hc)
{
    http1_init(&hc->h1, HTTP1_REQUEST, http_server_h1_limits(hc->server));
}

static void keep(struct http_conn *hc, struct span in)
{
    struct err e;

    if (in.n == 0)
        return;
    conn_want_read(hc->conn, false);
    if (buf_add(&hc->pending, in, &e) < 0)
        drop(hc); /* not by reading: that is off */
}

void http_h1_read(struct http_conn *hc, struct span in)
{
    if (hc->pending.n)
        keep(hc, in);
    else
        feed(hc, in);
}

static void begin_request(struct http_conn *hc)
{
    struct http_exchange *x = http_exchange_new(hc, &h1_ops, &hc->h1.head);

    http_conn_clear_deadline(hc);
    hc->is_head_timed = false;
    hc->one = x;
    x->body_length = hc->h1.content_length;
    x->keep_alive = hc->h1.keep_alive && !http_server_is_draining(hc->server);
    if (x->body_length == 0)
        x->body = HTTP_BODY_ENDED; /* the handler may ask at once; END only confirms it */
    http_exchange_start(x);
}

/* The request under way is complete and answered: on to the next, or the end. */
static void next_request(struct http_conn *hc)
{
    struct http_exchange *x = take_ptr(&hc->one);

    ev_free_later(http_server_loop(hc->server), x, http_exchange_free);
    if (!x->keep_alive || http_server_is_draining(hc->server)) {
        finish(hc);
        return;
    }
    http1_next(&hc->h1);
    if (conn_is_sending(hc->conn)) /* the answer is on its way; the idle time begins behind it */
        watch_for_stalls(hc);
    else
        wait_idle(hc);
}

/* Whether a byte more could be used. A peer that does not take its answers gets no more of them. */
static bool can_take(const struct http_conn *hc)
{
    if (!hc->one)
        return !conn_is_full(hc->conn);
    return hc->h1.content_length == 0 || http_exchange_takes_body(hc->one);
}

static void bad(struct http_conn *hc, const struct err *e)
{
    struct http_exchange *x = hc->one;

    if (!x) {
        http_conn_refuse(hc, hc->h1.bad_status, e->msg);
        return;
    }
    x->keep_alive = false;
    if (x->is_over)
        finish(hc);
    else
        http_exchange_body_end(x, e);
}

/* One event of the parser. False when the loop must stop: what is left of the input waits. */
static bool one_event(struct http_conn *hc, struct span *in)
{
    struct span data = SPAN_NONE;
    size_t used = 0;
    struct err e;
    enum http1_event ev = http1_feed(&hc->h1, *in, &used, &data, &e);

    *in = span_skip(*in, used);
    switch (ev) {
    case HTTP1_MORE:
        return false;
    case HTTP1_HEAD:
        begin_request(hc);
        return true;
    case HTTP1_DATA:
        http_exchange_body(hc->one, data);
        return true;
    case HTTP1_END:
        http_exchange_body_end(hc->one, NULL);
        if (!hc->one->is_over || hc->is_finished)
            return false;
        next_request(hc);
        return true;
    case HTTP1_BAD:
        bad(hc, &e);
        *in = SPAN_NONE;
        return false;
    }
    return false;
}

/* Everything before it is used. */
static void peer_ended(struct http_conn *hc)
{
    struct http_exchange *x = hc->one;
    struct err e;

    if (!x)
        finish(hc); /* between requests, or within a head that nobody will complete */
    else if (x->is_eof_gone && !x->is_over)
        drop(hc);
    else if (x->body == HTTP_BODY_COMING && http1_eof(&hc->h1, &e) == HTTP1_BAD)
        bad(hc, &e);
}

static void feed(struct http_conn *hc, struct span in)
{
    struct http_exchange *x;

    hc->is_feeding = true;
    while (!hc->is_finished && !hc->switched && can_take(hc) && one_event(hc, &in))
        ;
    hc->is_feeding = false;
    if (hc->is_finished)
        return;
    keep(hc, in);
    if (hc->switched)
        return;
    if (hc->has_peer_eof && hc->pending.n == 0)
        peer_ended(hc);
    x = hc->one;
    if (hc->is_finished || (x && x->body != HTTP_BODY_COMING))
        return;
    if (x) {
        watch_for_stalls(hc);
    } else if (hc->h1.state != HTTP1_AT_START && !hc->is_head_timed) {
        hc->is_head_timed = true; /* a head has begun: from now on it has the head's time */
        http_conn_set_deadline(hc, config_of(hc)->head_timeout_ms, head_over);
    }
}

static void resume(void *ctx)
{
    struct http_conn *hc = ctx;
    OWN(buf_done) struct buf in = BUF_INIT(hc->pending.max);

    if (hc->is_finished)
        return;
    buf_move(&in, &hc->pending);
    conn_want_read(hc->conn, true);
    feed(hc, buf_span(&in));
}

/* The last piece of a body was taken, and its taker paused: no byte more will come that brings its end. */
static bool is_end_due(const struct http_conn *hc)
{
    return hc->one && hc->one->body == HTTP_BODY_COMING && hc->h1.state == HTTP1_AT_LENGTH &&
           hc->h1.left == 0;
}

/* Something changed: the answer was ended, the body has a reader, the peer took its answers. */
static void advance(struct http_conn *hc)
{
    if (hc->is_feeding || hc->is_finished || hc->switched)
        return; /* feed() looks for itself */
    if (hc->one && hc->one->is_over && hc->h1.state == HTTP1_AT_END)
        next_request(hc);
    if (hc->is_finished || !can_take(hc))
        return;
    if (hc->pending.n == 0 && !hc->has_peer_eof && !is_end_due(hc))
        conn_want_read(hc->conn, true);
    else if (!hc->resume.is_queued)
        ev_post(http_server_loop(hc->server), &hc->resume, resume, hc);
}

void http_h1_eof(struct http_conn *hc)
{
    if (!hc->is_finished && hc->pending.n == 0 && !hc->switched)
        peer_ended(hc);
}

void http_h1_drain(struct http_conn *hc)
{
    struct http_exchange *x = hc->one;

    if (x && !x->is_over && x->on_drain)
        x->on_drain(x->drain_ctx);
    advance(hc);
}

void http_h1_shutdown(struct http_conn *hc)
{
    if (hc->one) /* its last, or the connection is about to change hands */
        hc->one->keep_alive = false;
    else
        finish(hc);
}

void http_h1_close(struct http_conn *hc)
{
    struct http_exchange *x = take_ptr(&hc->one);

    hc->is_finished = true;
    if (x) {
        http_exchange_gone(x);
        ev_free_later(http_server_loop(hc->server), x, http_exchange_free);
    }
    http1_done(&hc->h1);
    if (hc->switched)
        hc->switched(hc->switched_ctx, NULL, SPAN_NONE);
}

/* ---- what an exchange asks for ---- */

static void h1_continue(struct http_exchange *x)
{
    const struct http1 *h1 = &x->hc->h1;

    if (!h1->expects_continue || h1->body_bytes || x->hc->pending.n || x->has_begun)
        return;
    x->has_continued = true;
    conn_write(x->hc->conn, SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
}

static void h1_body_paused(struct http_exchange *x)
{
    if (x->is_paused)
        conn_want_read(x->hc->conn, false);
    else if (x->hc->is_feeding)
        conn_want_read(x->hc->conn, true);
    else
        advance(x->hc);
}

static void h1_body_used(struct http_exchange *x, size_t n)
{
    (void)n;
    if (x->is_over && x->discarded > DISCARD_MAX_BYTES)
        finish(x->hc);
}

/* May the next request come on this connection, although the body of this one was not read whole? Its rest must be
 * read over first: not when it is known to be long, nor when the client may or may not send it. */
static bool is_rest_short(const struct http_exchange *x)
{
    const struct http1 *h1 = &x->hc->h1;

    switch (x->body) {
    case HTTP_BODY_ENDED:
        return true;
    case HTTP_BODY_FAILED:
        return false;
    case HTTP_BODY_COMING:
        break;
    }
    if (h1->expects_continue && !x->has_continued && h1->body_bytes == 0)
        return false;
    return h1->is_chunked || h1->left <= DISCARD_MAX_BYTES;
}

static int stamp_h1(void *ctx, struct span name, struct span value, struct err *e)
{
    return http1_write_ours(ctx, name, value, e);
}

static int write_head(struct http_exchange *x, struct buf *out, struct err *e)
{
    const struct http_head *h = &x->answer;

    if (!x->reader && !is_rest_short(x))
        x->keep_alive = false;
    x->is_chunked = x->left == UINT64_MAX && x->req->minor >= 1;
    if (x->left == UINT64_MAX && !x->is_chunked)
        x->keep_alive = false; /* HTTP/1.0: the end of the connection ends the body */
    if (http1_write_status(out, h->status, e) < 0 || http_exchange_stamp(x, stamp_h1, out, e) < 0)
        return -1;
    if (http1_write_fields(out, h, e) < 0)
        return -1;
    if (x->is_chunked && http1_write_field(out, SPAN("transfer-encoding"), SPAN("chunked"), e) < 0)
        return -1;
    if (!x->keep_alive && http1_write_field(out, SPAN("connection"), SPAN("close"), e) < 0)
        return -1;
    if (x->keep_alive && x->req->minor == 0 &&
        http1_write_field(out, SPAN("connection"), SPAN("keep-alive"), e) < 0)
        return -1;
    return http1_write_head_end(out, e);
}

static void ended(struct http_exchange *x)
{
    struct http_conn *hc = x->hc;

    if (x->body != HTTP_BODY_ENDED && (!x->keep_alive || !is_rest_short(x))) {
        finish(hc);
        return;
    }
    if (conn_is_sending(hc->conn))
        watch_for_stalls(hc);
    advance(hc);
}

/* Only our own mistakes come here: a field that may not stand on the wire. */
static void unsayable(struct http_exchange *x, const struct err *e)
{
    log_error("http.answer", KV("err", e));
    drop(x->hc);
}

static void h1_head(struct http_exchange *x)
{
    OWN(buf_done) struct buf out = BUF_INIT(2 * HTTP_SERVER_HEAD_MAX_BYTES);
    struct err e;

    if (buf_reserve(&out, HEAD_GUESS_BYTES, &e) < 0 || write_head(x, &out, &e) < 0) {
        unsayable(x, &e);
        return;
    }
    conn_write_buf(x->hc->conn, &out);
}

static void h1_whole(struct http_exchange *x, struct span body)
{
    OWN(buf_done) struct buf out = BUF_INIT(2 * HTTP_SERVER_HEAD_MAX_BYTES + body.n);
    struct http_conn *hc = x->hc;
    struct err e;

    ev_text_take(http_server_loop(hc->server), &out);
    if (buf_reserve(&out, HEAD_GUESS_BYTES + body.n, &e) < 0 || write_head(x, &out, &e) < 0 ||
        buf_add(&out, body, &e) < 0) {
        unsayable(x, &e);
        return;
    }
    http_server_keep_head(hc->server, &x->answer); /* said; its memory is the next one's */
    if (out.cap > EV_TEXT_KEPT_BYTES) {
        conn_write_buf(hc->conn, &out);
    } else {
        conn_write(hc->conn, buf_span(&out));
        ev_text_give(http_server_loop(hc->server), &out);
    }
    ended(x);
}

static void h1_write(struct http_exchange *x, struct span bytes)
{
    OWN(buf_done) struct buf out = BUF_INIT(bytes.n + 64);
    struct err e;

    if (!x->is_chunked)
        conn_write(x->hc->conn, bytes);
    else if (http1_write_chunk(&out, bytes, &e) == 0) /* fits by construction */
        conn_write_buf(x->hc->conn, &out);
    if (conn_is_sending(x->hc->conn))
        watch_for_stalls(x->hc);
}

static void h1_file(struct http_exchange *x, int file_fd, uint64_t offset, uint64_t n)
{
    conn_write_file(x->hc->conn, config_of(x->hc)->file_pool, file_fd, offset, n);
    watch_for_stalls(x->hc);
}

static bool h1_is_full(const struct http_exchange *x)
{
    return conn_is_full(x->hc->conn);
}

static void h1_end(struct http_exchange *x, const struct http_head *trailers)
{
    OWN(buf_done) struct buf out = BUF_INIT(HTTP_SERVER_HEAD_MAX_BYTES);
    struct err e;

    if (x->is_chunked) {
        if (http1_write_last_chunk(&out, trailers, &e) < 0) {
            unsayable(x, &e);
            return;
        }
        conn_write_buf(x->hc->conn, &out);
    }
    ended(x);
}

static void h1_abort(struct http_exchange *x)
{
    const struct linger at_once = { .l_onoff = 1 };

    /* A body that lasts until the end of the connection would look whole, were it not for a reset. */
    if (x->has_begun && x->left == UINT64_MAX && !x->is_chunked)
        (void)setsockopt(conn_fd(x->hc->conn), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    drop(x->hc);
}

/* ---- another protocol takes over ---- */

static void h1_switch_to(struct http_exchange *x, http_switch_fn done, void *ctx)
{
    struct http_conn *hc = x->hc;

    hc->switched = done;
    hc->switched_ctx = ctx;
    http_conn_clear_deadline(hc);
    conn_want_read(hc->conn, false);
    x->keep_alive = true; /* no "connection: close" */
    h1_head(x);
    if (!hc->is_finished)
        ev_post(http_server_loop(hc->server), &hc->hand_over, http_conn_hand_over, hc);
}

static const struct http_carrier_ops h1_ops = {
    h1_continue, h1_body_paused, h1_body_used, h1_head,  h1_whole,     h1_write,
    h1_file,     h1_is_full,     h1_end,       h1_abort, h1_switch_to,
};
