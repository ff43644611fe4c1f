/* One HTTP/1.1 connection: requests one after the other, answers in the same order. */
#include "http/serve_conn.h"

#include "base/log.h"

#define DISCARD_MAX_BYTES (64 * 1024) /* of a body nobody reads; more is not worth the connection */

static const struct http_carrier_ops h1_ops;
static void feed(struct http_conn *hc, struct span in);
static void advance(struct http_conn *hc);
static void stall_check(void *ctx);

static void idle_over(void *ctx)
{
    struct http_conn *hc = ctx;

    if (conn_is_sending(hc->conn))
        stall_check(hc); /* the last answer is still on its way to a slow reader */
    else
        conn_close(hc->conn);
}

static void head_over(void *ctx)
{
    struct http_conn *hc = ctx;

    http_conn_refuse(hc, 408, "the request's head did not arrive in time");
}

static bool waits_for_peer(const struct http_conn *hc)
{
    const struct http_exchange *x = hc->one;

    return (x && x->body == HTTP_BODY_COMING && http_exchange_takes_body(x)) || conn_is_sending(hc->conn);
}

/* Nothing moved between two looks while the peer should have sent or taken something. */
static void stall_check(void *ctx)
{
    struct http_conn *hc = ctx;
    uint64_t moved = hc->received + conn_sent(hc->conn);
    struct http_exchange *x = hc->one;
    struct err e;

    if (!x && !conn_is_sending(hc->conn)) {
        http_conn_set_deadline(hc, http_server_config(hc->server)->idle_timeout_ms, idle_over);
        return;
    }
    if (waits_for_peer(hc) && moved == hc->moved) {
        if (x && !x->is_over && !x->has_begun && x->body == HTTP_BODY_COMING) {
            (void)err_set(&e, ERR_TIMEOUT, "the request's body stopped arriving");
            x->keep_alive = false;
            http_exchange_body_end(x, &e); /* the handler answers 408; if it does not, the next look closes */
        } else {
            conn_close(hc->conn);
            return;
        }
    }
    hc->moved = moved;
    http_conn_set_deadline(hc, http_server_config(hc->server)->stall_timeout_ms, stall_check);
}

static void watch_for_stalls(struct http_conn *hc)
{
    if (ev_timer_is_running(&hc->deadline))
        return;
    hc->moved = hc->received + conn_sent(hc->conn);
    http_conn_set_deadline(hc, http_server_config(hc->server)->stall_timeout_ms, stall_check);
}

void http_conn_refuse(struct http_conn *hc, int status, const char *message)
{
    const struct http_server_config *config = http_server_config(hc->server);
    OWN(buf_done) struct buf body = BUF_INIT(4096), out = BUF_INIT(8192);
    const char *type = "application/json";
    struct err e;

    if (config->error_body)
        config->error_body(config->ctx, status, message, &body, &type);
    else
        (void)buf_addf(&body, &e, "{\"detail\":\"%s\"}", message);
    if (http1_write_status(&out, status, &e) == 0 && http1_write_field(&out, SPAN("date"), span_cstr(http_server_date(hc->server)), &e) == 0 &&
        http1_write_field(&out, SPAN("content-type"), span_cstr(type), &e) == 0 &&
        http1_write_field_u64(&out, "content-length", body.n, &e) == 0 && http1_write_field(&out, SPAN("connection"), SPAN("close"), &e) == 0 &&
        http1_write_head_end(&out, &e) == 0 && buf_add(&out, buf_span(&body), &e) == 0)
        conn_write(hc->conn, buf_span(&out));
    log_debug("http.refused", KV("status", status), KV("why", message));
    ev_timer_stop(http_server_loop(hc->server), &hc->deadline);
    hc->is_finished = true;
    conn_finish(hc->conn);
}

void http_h1_open(struct http_conn *hc)
{
    http1_init(&hc->h1, HTTP1_REQUEST, NULL);
}

static void keep(struct http_conn *hc, struct span in)
{
    struct err e;

    if (in.n && buf_add(&hc->pending, in, &e) < 0)
        conn_close(hc->conn);
    else if (in.n)
        conn_want_read(hc->conn, false);
}

void http_h1_read(struct http_conn *hc, struct span in)
{
    if (hc->is_finished)
        return;
    if (hc->pending.n || hc->is_feeding)
        keep(hc, in);
    else
        feed(hc, in);
}

static void begin_request(struct http_conn *hc)
{
    struct http_exchange *x = http_exchange_new(hc, &h1_ops, &hc->h1.head);

    ev_timer_stop(http_server_loop(hc->server), &hc->deadline);
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
    bool goes_on = x->keep_alive && !hc->has_peer_eof && !http_server_is_draining(hc->server);

    ev_free_later(http_server_loop(hc->server), x, http_exchange_free);
    ev_timer_stop(http_server_loop(hc->server), &hc->deadline);
    if (hc->has_peer_eof && hc->pending.n && x->keep_alive)
        goes_on = true; /* requests sent before the peer ended its side */
    if (!goes_on) {
        hc->is_finished = true;
        conn_finish(hc->conn);
        return;
    }
    http1_next(&hc->h1);
    if (conn_is_sending(hc->conn))
        watch_for_stalls(hc); /* the answer is still on its way; the idle time begins behind it */
    else
        http_conn_set_deadline(hc, http_server_config(hc->server)->idle_timeout_ms, idle_over);
}

static bool can_take(const struct http_conn *hc)
{
    return !hc->one || hc->h1.content_length == 0 || http_exchange_takes_body(hc->one);
}

static void bad(struct http_conn *hc, const struct err *e)
{
    struct http_exchange *x = hc->one;

    if (!x) {
        http_conn_refuse(hc, hc->h1.bad_status, e->msg);
        return;
    }
    x->keep_alive = false;
    if (x->is_over) {
        hc->is_finished = true;
        conn_finish(hc->conn);
    } else {
        http_exchange_body_end(x, e);
    }
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
        hc->one->body = hc->one->body == HTTP_BODY_COMING ? HTTP_BODY_ENDED : hc->one->body;
        if (!hc->one->is_over)
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

static void feed(struct http_conn *hc, struct span in)
{
    struct http_exchange *x;

    hc->is_feeding = true;
    while (!hc->is_finished && can_take(hc) && one_event(hc, &in))
        ;
    hc->is_feeding = false;
    if (hc->is_finished)
        return;
    x = hc->one;
    keep(hc, in);
    if (!x && hc->h1.state == HTTP1_AT_START)
        http1_release(&hc->h1);
    else if (!x && !hc->is_head_timed) {
        hc->is_head_timed = true; /* a head has begun: from now on it has the head's time */
        http_conn_set_deadline(hc, http_server_config(hc->server)->head_timeout_ms, head_over);
    }
    if (x && x->body == HTTP_BODY_COMING)
        watch_for_stalls(hc);
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
    if (hc->has_peer_eof && !hc->is_finished && !hc->one)
        http_h1_eof(hc);
}

static void resume_soon(struct http_conn *hc)
{
    if (!hc->resume.is_queued && !hc->is_feeding)
        ev_post(http_server_loop(hc->server), &hc->resume, resume, hc);
}

/* The answer was ended outside feed(), or the body may flow again. */
static void advance(struct http_conn *hc)
{
    if (hc->is_feeding || hc->is_finished)
        return;
    if (hc->one && hc->one->is_over && hc->h1.state == HTTP1_AT_END)
        next_request(hc);
    if (!hc->is_finished && (hc->pending.n || hc->has_peer_eof) && can_take(hc))
        resume_soon(hc);
}

void http_h1_eof(struct http_conn *hc)
{
    struct err e;

    if (hc->is_finished)
        return;
    if (!hc->one && hc->pending.n == 0) {
        hc->is_finished = true;
        conn_finish(hc->conn);
        return;
    }
    if (hc->one && hc->one->is_eof_gone && !hc->one->is_over) {
        conn_close(hc->conn);
        return;
    }
    if (hc->one && hc->one->body == HTTP_BODY_COMING && hc->pending.n == 0 && http1_eof(&hc->h1, &e) == HTTP1_BAD)
        bad(hc, &e);
}

void http_h1_drain(struct http_conn *hc)
{
    struct http_exchange *x = hc->one;

    if (x && !x->is_over && x->on_drain)
        x->on_drain(x->drain_ctx);
}

void http_h1_shutdown(struct http_conn *hc)
{
    if (hc->one) {
        hc->one->keep_alive = false;
    } else if (!hc->is_finished) {
        hc->is_finished = true;
        conn_finish(hc->conn);
    }
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
}

/* ---- what an exchange asks for ---- */

static void h1_continue(struct http_exchange *x)
{
    if (x->hc->h1.expects_continue && x->hc->h1.body_bytes == 0 && x->hc->pending.n == 0 && !x->has_begun)
        conn_write(x->hc->conn, SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
}

static void h1_body_paused(struct http_exchange *x)
{
    if (x->is_paused)
        conn_want_read(x->hc->conn, false);
    else if (x->hc->pending.n)
        resume_soon(x->hc);
    else
        conn_want_read(x->hc->conn, true);
}

static void h1_body_used(struct http_exchange *x, size_t n)
{
    (void)x;
    (void)n;
}

/* A body that nobody will read, and that is long or of unknown length, costs more than a new connection. */
static void judge_keep_alive(struct http_exchange *x)
{
    const struct http1 *h1 = &x->hc->h1;

    if (x->body == HTTP_BODY_ENDED || (x->hc->is_feeding && x->reader))
        return;
    if (x->body == HTTP_BODY_FAILED || h1->is_chunked || h1->expects_continue || h1->left > DISCARD_MAX_BYTES)
        x->keep_alive = false;
}

static int write_head(struct http_exchange *x, struct buf *out, struct err *e)
{
    const struct http_head *h = &x->answer;

    judge_keep_alive(x);
    x->is_chunked = x->left == UINT64_MAX && x->req->minor >= 1;
    if (x->left == UINT64_MAX && !x->is_chunked)
        x->keep_alive = false; /* HTTP/1.0: the end of the connection ends the body */
    if (http1_write_status(out, h->status, e) < 0)
        return -1;
    for (size_t i = 0; i < http_head_count(h); i++) {
        struct span name, value;

        http_head_field(h, i, &name, &value);
        if (http1_write_field(out, name, value, e) < 0)
            return -1;
    }
    if (x->is_chunked && http1_write_field(out, SPAN("transfer-encoding"), SPAN("chunked"), e) < 0)
        return -1;
    if (!x->keep_alive && http1_write_field(out, SPAN("connection"), SPAN("close"), e) < 0)
        return -1;
    if (x->keep_alive && x->req->minor == 0 && http1_write_field(out, SPAN("connection"), SPAN("keep-alive"), e) < 0)
        return -1;
    return http1_write_head_end(out, e);
}

static void ended(struct http_exchange *x)
{
    struct http_conn *hc = x->hc;

    if (conn_is_sending(hc->conn))
        watch_for_stalls(hc);
    if (!x->keep_alive && x->body != HTTP_BODY_ENDED && !hc->is_finished) {
        hc->is_finished = true;
        conn_finish(hc->conn);
        return;
    }
    advance(hc);
}

static void h1_head(struct http_exchange *x, bool is_end)
{
    OWN(buf_done) struct buf out = BUF_INIT(2 * HTTP_SERVER_HEAD_MAX_BYTES);
    struct err e;

    (void)is_end;
    if (write_head(x, &out, &e) < 0) {
        log_error("http.answer", KV("err", &e));
        conn_close(x->hc->conn);
        return;
    }
    conn_write_buf(x->hc->conn, &out);
}

static void h1_whole(struct http_exchange *x, struct span body)
{
    OWN(buf_done) struct buf out = BUF_INIT(2 * HTTP_SERVER_HEAD_MAX_BYTES + body.n);
    struct err e;

    if (write_head(x, &out, &e) < 0 || buf_add(&out, body, &e) < 0) {
        log_error("http.answer", KV("err", &e));
        conn_close(x->hc->conn);
        return;
    }
    conn_write_buf(x->hc->conn, &out);
    ended(x);
}

static void h1_write(struct http_exchange *x, struct span bytes)
{
    OWN(buf_done) struct buf out = BUF_INIT(bytes.n + 64);
    struct err e;

    if (!x->is_chunked) {
        conn_write(x->hc->conn, bytes);
    } else if (http1_write_chunk(&out, bytes, &e) == 0) {
        conn_write_buf(x->hc->conn, &out);
    }
    if (conn_is_full(x->hc->conn))
        watch_for_stalls(x->hc);
}

static void h1_file(struct http_exchange *x, int file_fd, uint64_t offset, uint64_t n)
{
    conn_write_file(x->hc->conn, http_server_config(x->hc->server)->file_pool, file_fd, offset, n);
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

    if (x->is_chunked && !x->is_head_method) {
        if (http1_write_last_chunk(&out, trailers, &e) < 0) {
            conn_close(x->hc->conn);
            return;
        }
        conn_write_buf(x->hc->conn, &out);
    }
    ended(x);
}

static void h1_abort(struct http_exchange *x)
{
    conn_close(x->hc->conn);
}

static const struct http_carrier_ops h1_ops = {
    h1_continue, h1_body_paused, h1_body_used, h1_head, h1_whole, h1_write, h1_file, h1_is_full, h1_end, h1_abort,
};
