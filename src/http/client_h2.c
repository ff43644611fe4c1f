/* HTTP/2 on a link: many calls at once, each on its stream. */
#include "http/client_impl.h"

#include "http/h2.h"

#define PULL_BYTES (64 * 1024) /* of frames at a time, then the socket decides */

static const struct http_link_ops http_link_h2;
static void flush_now(struct http_link *l);

static void flush(void *ctx)
{
    flush_now(ctx);
}

/* Verbs come from anywhere; frames leave in a turn of their own, several calls' together. */
static void flush_soon(struct http_link *l)
{
    if (l->h2 && !l->is_feeding && !l->task.is_queued)
        ev_post(l->client->loop, &l->task, flush, l);
}

static void idle_too_long(void *ctx)
{
    struct http_link *l = ctx;

    l->state = LINK_LEAVING;
    h2_goaway(l->h2, H2_NO_ERROR);
    flush_now(l);
}

/* The session is over: its calls are told, the last frames go out, then the connection. */
static void break_off(struct http_link *l, const struct err *e)
{
    struct h2 *h = take_ptr(&l->h2);

    l->state = LINK_LEAVING;
    ev_timer_stop(l->client->loop, &l->idle);
    ev_timer_stop(l->client->loop, &l->ping);
    if (e && !l->why.code)
        l->why = *e;
    h2_free(h); /* on_stream_close for each */
    if (l->conn)
        conn_finish(l->conn);
}

static void flush_now(struct http_link *l)
{
    struct err e;
    int r = 1;

    if (!l->h2)
        return;
    l->is_feeding = true; /* events of a pull call verbs too */
    while (r > 0 && h2_wants_write(l->h2) && !conn_is_full(l->conn)) {
        OWN(buf_done) struct buf out = BUF_INIT(4 * PULL_BYTES);

        r = h2_pull(l->h2, &out, PULL_BYTES, &e);
        if (out.n)
            conn_write_buf(l->conn, &out);
    }
    l->is_feeding = false;
    if (r < 0) {
        break_off(l, &e);
    } else if (!h2_wants_read(l->h2) && !h2_wants_write(l->h2)) {
        break_off(l, h2_feed(l->h2, SPAN_NONE, &e) < 0
                         ? &e
                         : NULL); /* asks whether it was lost, and why */
    } else if (h2_stream_count(l->h2) == 0 && l->state == LINK_MANY &&
               !ev_timer_is_running(&l->idle)) {
        ev_timer_start(l->client->loop, &l->idle, l->client->config.idle_ms, idle_too_long, l);
    }
}

void http_link_h2_retire(struct http_link *l)
{
    l->state = LINK_LEAVING;
    ev_timer_stop(l->client->loop, &l->idle);
    h2_shutdown(l->h2);
    flush_soon(l);
}

/* ---- is anybody there? ---- */

static void ask_alive(void *ctx)
{
    struct http_link *l = ctx;
    const struct http_client_config *config = &l->client->config;
    uint64_t now = ev_now_ms(l->client->loop), silent_ms = now - l->heard_ms, wait_ms;
    struct err e;

    if (!l->h2 || h2_stream_count(l->h2) == 0)
        return; /* the next call starts it again */
    if (l->is_pinged && now - l->pinged_ms >= config->ping_wait_ms) {
        (void)err_set(&e, ERR_TIMEOUT, "it was silent for %llu ms and did not answer a ping",
                      (unsigned long long)silent_ms);
        break_off(l, &e);
        if (l->conn)
            conn_close(l->conn); /* nobody takes our last bytes */
        return;
    }
    if (!l->is_pinged && silent_ms >= config->ping_idle_ms) {
        l->is_pinged = true;
        l->pinged_ms = now;
        h2_ping(l->h2, now);
        flush_soon(l);
    }
    wait_ms =
        l->is_pinged ? l->pinged_ms + config->ping_wait_ms - now : config->ping_idle_ms - silent_ms;
    ev_timer_start(l->client->loop, &l->ping, wait_ms, ask_alive, l);
}

static void start_asking(struct http_link *l)
{
    if (!l->client->config.ping_idle_ms || ev_timer_is_running(&l->ping))
        return;
    l->heard_ms = ev_now_ms(l->client->loop);
    l->is_pinged = false;
    ev_timer_start(l->client->loop, &l->ping, l->client->config.ping_idle_ms, ask_alive, l);
}

/* ---- what a call asks for ---- */

static void h2_begin(struct http_call *x)
{
    struct http_link *l = x->link;
    bool is_bare = x->is_ended && !x->body.n && !x->trailers;
    struct err e;

    ev_timer_stop(l->client->loop, &l->idle);
    if (h2_request(l->h2, &x->head, is_bare, x, &x->stream, &e) < 0) {
        x->link = NULL;
        x->has_left = false;
        if (e.code == ERR_UNAVAILABLE) { /* it takes no more; another will */
            l->state = LINK_LEAVING;
            x->state = CALL_WAITING;
            http_call_connect(x);
            return;
        }
        (void)err_wrap(&e, "cannot call '%s'", x->site->label);
        http_call_fail(x, &e);
        return;
    }
    flush_soon(l);
    start_asking(l);
    if (x->body.n)
        (void)h2_send(x->stream, buf_span(&x->body));
    if (x->is_streamed)
        buf_done(&x->body); /* a whole body stays, for a retry */
    if (!is_bare && x->is_ended)
        (void)h2_finish(x->stream, x->trailers,
                        &e); /* bad trailers reset the stream, and that is told */
    else if (!x->is_ended && !h2_is_full(x->stream) && x->events->on_drain)
        x->events->on_drain(x->ctx); /* there is a connection now */
}

static void h2_call_write(struct http_call *x, struct span bytes)
{
    (void)h2_send(x->stream, bytes);
    flush_soon(x->link);
}

static void h2_call_end(struct http_call *x)
{
    struct err e;

    (void)h2_finish(x->stream, x->trailers, &e);
    flush_soon(x->link);
}

static bool h2_call_is_full(const struct http_call *x)
{
    return h2_is_full(x->stream);
}

static uint64_t h2_progress(const struct http_call *x)
{
    return h2_queued(x->stream);
}

static bool h2_is_sending(const struct http_call *x)
{
    return h2_queued(x->stream) > 0;
}

static void h2_drop(struct http_call *x)
{
    struct h2_stream *s = take_ptr(&x->stream);

    h2_set_user(s, NULL);
    h2_reset(s, H2_CANCEL);
    flush_soon(x->link);
}

/* What came while the caller had paused. */
void http_call_h2_go_on(void *ctx)
{
    struct http_call *x = ctx;
    struct buf in = BUF_INIT(0);

    if (x->is_paused || x->state > CALL_ANSWERED)
        return;
    buf_move(&in, &x->stash);
    if (in.n && x->events->on_data)
        x->events->on_data(x->ctx, buf_span(&in));
    if (x->stream && in.n) {
        h2_consume(x->stream, in.n);
        flush_soon(x->link);
    }
    buf_done(&in);
    if (x->state == CALL_ANSWERED && !x->is_paused)
        http_call_succeed(x, x->in_trailers);
}

static void h2_pause(struct http_call *x, bool is_paused)
{
    if (!is_paused && x->stash.n && !x->task.is_queued)
        ev_post(x->client->loop, &x->task, http_call_h2_go_on, x);
}

static const struct http_link_ops http_link_h2 = { h2_begin,        h2_call_write, h2_call_end,
                                                   h2_call_is_full, h2_progress,   h2_is_sending,
                                                   h2_pause,        h2_drop };

/* ---- events of the engine ---- */

static void on_head(void *ctx, struct h2_stream *s, const struct http_head *head, bool is_end)
{
    struct http_call *x = h2_user(s);

    (void)ctx, (void)is_end;
    if (!x)
        return;
    x->has_bytes = x->has_head = true;
    x->link->was_used = true;
    http_call_watch(x);
    x->events->on_head(x->ctx, head);
}

static void on_data(void *ctx, struct h2_stream *s, struct span bytes)
{
    struct http_call *x = h2_user(s);
    struct err e;

    (void)ctx;
    if (!x) {
        h2_consume(s, bytes.n);
        return;
    }
    if (x->is_paused || x->stash.n) { /* unconsumed, so a window's worth at most */
        x->stash.max = 2 * H2_STREAM_WINDOW_BYTES;
        if (buf_add(&x->stash, bytes, &e) < 0)
            http_call_fail(x, &e);
        return;
    }
    http_call_watch(x);
    if (x->events->on_data)
        x->events->on_data(x->ctx, bytes);
    if (h2_user(s) == x)
        h2_consume(s, bytes.n);
}

static void on_trailers(void *ctx, struct h2_stream *s, const struct http_head *trailers)
{
    struct http_call *x = h2_user(s);
    struct err e;

    (void)ctx;
    if (!x)
        return;
    x->in_trailers = NEW(struct http_head);
    http_head_init(x->in_trailers, trailers->text.max, trailers->field_max);
    (void)http_head_copy(x->in_trailers, trailers, &e); /* the same ceilings */
}

/* The answer is complete. A request that is still being sent is not needed any more. */
static void on_end(void *ctx, struct h2_stream *s)
{
    struct http_call *x = h2_user(s);

    (void)ctx;
    if (!x)
        return;
    h2_set_user(s, NULL);
    h2_consume(s, x->stash.n);
    if (!x->is_ended || h2_queued(s))
        h2_reset(s, H2_CANCEL);
    x->stream = NULL;
    x->link = NULL;
    if (!x->is_paused && !x->stash.n) {
        http_call_succeed(x, x->in_trailers);
        return;
    }
    x->state = CALL_ANSWERED; /* told when the caller goes on */
    ev_timer_stop(x->client->loop, &x->wait);
    if (!x->is_paused && !x->task.is_queued)
        ev_post(x->client->loop, &x->task, http_call_h2_go_on, x);
}

static void on_stream_drain(void *ctx, struct h2_stream *s)
{
    struct http_call *x = h2_user(s);

    (void)ctx;
    if (x && x->is_streamed && !x->is_ended && x->events->on_drain)
        x->events->on_drain(x->ctx);
}

static void on_stream_close(void *ctx, struct h2_stream *s, uint32_t code)
{
    struct http_link *l = ctx;
    struct http_call *x = h2_user(s);
    bool is_unheard = code == H2_REFUSED_STREAM;
    struct err e;

    if (!x)
        return;
    h2_set_user(s, NULL);
    x->stream = NULL;
    x->has_left = !is_unheard;
    if (is_unheard)
        (void)err_set(&e, ERR_UNAVAILABLE, "'%s' refused the call before it began", x->site->label);
    else if (!l->h2 && l->why.code) {
        e = l->why;
        (void)err_wrap(&e, "no whole answer from '%s'", x->site->label);
    } else if (!l->h2 || code == H2_NO_ERROR)
        (void)err_set(&e, ERR_CLOSED, "'%s' closed the connection without an answer",
                      x->site->label);
    else
        (void)err_set(&e, ERR_CLOSED, "'%s' ended the call: HTTP/2 error %u", x->site->label, code);
    /* As with HTTP/1.1: a kept connection that went before a word was said. */
    if (!l->h2 && l->was_used && x->is_idempotent)
        is_unheard = true;
    http_call_lost(x, is_unheard, &e);
}

static void on_goaway(void *ctx, uint32_t last_id, uint32_t code)
{
    struct http_link *l = ctx;

    (void)last_id, (void)code;
    if (l->state == LINK_MANY)
        l->state = LINK_LEAVING; /* streams it still serves go on */
}

static const struct h2_events h2_events = {
    .on_head = on_head,
    .on_data = on_data,
    .on_trailers = on_trailers,
    .on_end = on_end,
    .on_drain = on_stream_drain,
    .on_close = on_stream_close,
    .on_goaway = on_goaway,
};

/* ---- events of the connection ---- */

static void on_read(void *ctx, struct span in)
{
    struct http_link *l = ctx;
    struct err e;
    int r;

    if (!l->h2)
        return;
    l->heard_ms = ev_now_ms(l->client->loop);
    l->is_pinged = false;
    l->is_feeding = true;
    r = h2_feed(l->h2, in, &e);
    l->is_feeding = false;
    if (r < 0)
        l->why = e; /* the first reason counts */
    flush_now(l);
    if (r < 0 && l->h2)
        break_off(l, &e);
}

static void on_eof(void *ctx)
{
    struct http_link *l = ctx;

    if (l->h2)
        break_off(l, NULL);
}

static void on_drain(void *ctx)
{
    flush_now(ctx);
}

static void on_close(void *ctx, const struct err *e)
{
    struct http_link *l = ctx;

    l->conn = NULL;
    if (l->h2)
        break_off(l, e);
    http_link_free(l);
}

static const struct conn_events link_events = { on_read, on_eof, on_drain, on_close };

void http_link_h2_open(struct http_link *l)
{
    struct h2_config config = H2_CONFIG_INIT(H2_CLIENT);

    config.head_max_bytes = l->client->config.head_max_bytes;
    l->ops = &http_link_h2;
    l->h2 = h2_new(&config, &h2_events, l);
    l->state = LINK_MANY;
    conn_set_events(l->conn, &link_events, l);
    flush_soon(l);
}
