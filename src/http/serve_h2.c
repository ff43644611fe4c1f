/* One HTTP/2 connection: many exchanges at once, each on its stream. */
#include "http/serve_conn.h"

#include "base/log.h"

#include <errno.h>

#define PULL_BYTES (64 * 1024) /* of frames at a time, then the socket decides */
/* Of a file at a time: two fit under the stream's high mark */
#define FILE_PIECE_BYTES (128 * 1024)

static const struct http_carrier_ops h2_ops;

/* A file on its way into a stream: read by a worker, sent when the stream has room. Outlives its exchange while a
 * worker reads. */
struct http_file_pump {
    struct http_exchange *x; /* NULL when the stream is gone */
    struct ev_work work;
    int fd;
    uint64_t offset, left;
    struct buf piece;
    ssize_t got;
    int sys;
    bool is_busy, ends;
};

static void flush_now(struct http_conn *hc);

static void flush(void *ctx)
{
    flush_now(ctx);
}

static void flush_soon(struct http_conn *hc)
{
    if (!hc->is_feeding && !hc->flush.is_queued)
        ev_post(http_server_loop(hc->server), &hc->flush, flush, hc);
}

/* ---- deadlines ---- */

static bool is_sending(const struct http_exchange *x)
{
    return h2_queued(x->stream) > 0;
}

/* Nothing of the stream moved between two looks, while the socket took all it was given. */
static void end_stalled(struct http_exchange *x)
{
    struct err e;

    if (is_sending(x) || x->has_begun || x->is_over) {
        log_debug("http.stalled", KV("id", x->id));
        h2_reset(x->stream, H2_CANCEL); /* on_close tells the handler */
        return;
    }
    (void)err_set(&e, ERR_TIMEOUT, "the request's body stopped arriving");
    http_exchange_body_end(x, &e); /* may answer */
}

/* A stream that waits for its turn on a slow connection is not stalled; one that waits for the peer's credit, or for
 * its bytes, is. */
static void look_at_streams(struct http_conn *hc)
{
    for (struct http_exchange *x = hc->many, *next; x; x = next) {
        uint64_t moved = x->in_bytes + x->out_bytes - h2_queued(x->stream);
        bool wants_body =
            x->body == HTTP_BODY_COMING && http_exchange_takes_body(x) && !x->may_rest;

        next = x->next;
        if (moved == x->moved && (is_sending(x) || wants_body))
            end_stalled(x);
        x->moved = moved;
    }
}

static void look(void *ctx)
{
    struct http_conn *hc = ctx;
    const struct http_server_config *config = http_server_config(hc->server);
    uint64_t now = ev_now_ms(http_server_loop(hc->server));
    uint64_t moved = hc->received + conn_moved(hc->conn),
             due = hc->active_ms + config->idle_timeout_ms;

    if (hc->is_finished)
        return;
    if (!hc->many && !conn_is_sending(hc->conn) && now < due) {
        http_conn_set_deadline(hc, due - now, look);
        return;
    }
    if (!hc->many && !conn_is_sending(hc->conn)) {
        h2_goaway(
            hc->h2,
            H2_NO_ERROR); /* idle: a request that crosses this may safely be sent again elsewhere */
        flush_now(hc);
        return;
    }
    if (conn_is_sending(hc->conn) && moved == hc->moved) {
        log_debug("http.stalled", KV("streams", h2_stream_count(hc->h2)));
        hc->is_finished = true;
        conn_close(hc->conn);
        return;
    }
    hc->moved = moved;
    if (!conn_is_sending(hc->conn))
        look_at_streams(hc);
    http_conn_set_deadline(hc, config->stall_timeout_ms, look);
    flush_soon(hc);
}

/* ---- events of the engine ---- */

static void on_head(void *ctx, struct h2_stream *s, const struct http_head *head, bool is_end)
{
    struct http_conn *hc = ctx;
    struct http_exchange *x = http_exchange_new(hc, &h2_ops, head);
    struct span length = http_head_get(head, "content-length");
    uint64_t n = UINT64_MAX;

    x->stream = s;
    h2_set_user(s, x);
    x->at = &hc->many;
    x->next = hc->many;
    if (x->next)
        x->next->at = &x->next;
    hc->many = x;
    if (length.p) {
        n = 0;
        for (size_t i = 0; i < length.n && n < UINT64_MAX / 16; i++)
            n = n * 10 +
                (uint64_t)(length.p[i] - '0'); /* nghttp2 has checked that it is a number */
    }
    x->body_length = is_end ? 0 : n;
    if (is_end)
        x->body = HTTP_BODY_ENDED;
    http_exchange_start(x);
}

static void on_data(void *ctx, struct h2_stream *s, struct span bytes)
{
    struct http_exchange *x = h2_user(s);

    (void)ctx;
    if (x)
        http_exchange_body(x, bytes);
    else
        h2_consume(s, bytes.n);
}

static void on_end(void *ctx, struct h2_stream *s)
{
    struct http_exchange *x = h2_user(s);

    (void)ctx;
    if (x)
        http_exchange_body_end(x, NULL);
}

static void file_go_on(struct http_file_pump *f);

static void on_stream_drain(void *ctx, struct h2_stream *s)
{
    struct http_exchange *x = h2_user(s);

    (void)ctx;
    if (x && x->file)
        file_go_on(x->file);
    else if (x && !x->is_over && x->on_drain)
        x->on_drain(x->drain_ctx);
}

static void file_free(struct http_file_pump *f)
{
    own_fd_close(&f->fd);
    buf_done(&f->piece);
    free(f);
}

static void on_stream_close(void *ctx, struct h2_stream *s, uint32_t code)
{
    struct http_conn *hc = ctx;
    struct http_exchange *x = h2_user(s);

    (void)code;
    if (!x)
        return;
    h2_set_user(s, NULL);
    x->stream = NULL;
    if (x->file) {
        x->file->x = NULL;
        if (!x->file->is_busy)
            file_free(x->file);
        x->file = NULL;
    }
    http_exchange_gone(x);
    *x->at = x->next;
    if (x->next)
        x->next->at = x->at;
    hc->active_ms = ev_now_ms(http_server_loop(hc->server));
    ev_free_later(http_server_loop(hc->server), x, http_exchange_free);
}

static const struct h2_events h2_server_events = {
    .on_head = on_head,
    .on_data = on_data,
    .on_end = on_end,
    .on_drain = on_stream_drain,
    .on_close = on_stream_close,
};

/* ---- the connection ---- */

void http_h2_open(struct http_conn *hc)
{
    struct h2_config config = H2_CONFIG_INIT(H2_SERVER);

    config.head_max_bytes = http_server_config(hc->server)->head_max_bytes;
    hc->h2 = h2_new(&config, &h2_server_events, hc);
    hc->active_ms = ev_now_ms(http_server_loop(hc->server));
    http_conn_set_deadline(hc, http_server_config(hc->server)->idle_timeout_ms, look);
}

/* What the engine has to say, as long as the socket takes it. -1: it is broken. */
static int pull(struct http_conn *hc)
{
    struct err e;
    int r = 1;

    hc->is_feeding = true; /* events of a pull call verbs too */
    while (r > 0 && h2_wants_write(hc->h2) && !conn_is_full(hc->conn)) {
        OWN(buf_done) struct buf out = BUF_INIT(4 * PULL_BYTES);

        r = h2_pull(hc->h2, &out, PULL_BYTES, &e);
        if (out.n)
            conn_write_buf(hc->conn, &out);
    }
    hc->is_feeding = false;
    return MIN(r, 0);
}

static void flush_now(struct http_conn *hc)
{
    int r;

    if (hc->is_finished)
        return;
    r = pull(hc);
    if (r == 0 && http_server_is_draining(hc->server) && !hc->many && h2_wants_read(hc->h2)) {
        h2_goaway(hc->h2, H2_NO_ERROR);
        r = pull(hc);
    }
    if (r < 0 || (!h2_wants_read(hc->h2) && !h2_wants_write(hc->h2))) {
        hc->is_finished = true;
        http_conn_clear_deadline(hc);
        conn_finish(hc->conn);
    }
}

void http_h2_read(struct http_conn *hc, struct span in)
{
    struct err e;
    int r;

    hc->active_ms = ev_now_ms(http_server_loop(hc->server));
    hc->is_feeding = true;
    r = h2_feed(hc->h2, in, &e);
    hc->is_feeding = false;
    if (r < 0)
        log_debug("http.h2", KV("err", &e));
    flush_now(hc);
    if (r < 0 && !hc->is_finished) {
        hc->is_finished = true;
        conn_finish(hc->conn);
    }
}

void http_h2_drain(struct http_conn *hc)
{
    flush_now(hc);
}

void http_h2_shutdown(struct http_conn *hc)
{
    if (hc->is_finished)
        return;
    if (hc->many)
        h2_shutdown(hc->h2);
    flush_soon(hc); /* says goodbye when there is no stream */
}

void http_h2_close(struct http_conn *hc)
{
    hc->is_finished = true;
    h2_free(hc->h2);
    hc->h2 = NULL;
}

/* ---- what an exchange asks for ---- */

static void h2x_continue(struct http_exchange *x)
{
    struct http_head head;
    struct err e;

    if (!http_head_has_token(x->req, "expect", "100-continue") || x->stash.n)
        return;
    http_head_init(&head, 256, 4);
    http_head_set_status(&head, 100);
    (void)h2_respond(x->stream, &head, false, &e);
    http_head_done(&head);
    flush_soon(x->hc);
}

/* A paused reader earns its peer no credit: that is all it takes. */
static void h2x_body_paused(struct http_exchange *x)
{
    (void)x;
}

static void h2x_body_used(struct http_exchange *x, size_t n)
{
    if (!x->stream)
        return;
    h2_consume(x->stream, n);
    flush_soon(x->hc);
}

static int stamp_h2(void *ctx, struct span name, struct span value, struct err *e)
{
    return http_head_add(ctx, name, value, e);
}

static void respond(struct http_exchange *x, bool is_end)
{
    struct err e;

    if (http_exchange_stamp(x, stamp_h2, &x->answer, &e) < 0 ||
        h2_respond(x->stream, &x->answer, is_end, &e) < 0) {
        log_error("http.answer", KV("err", &e));
        h2_reset(x->stream, H2_INTERNAL_ERROR);
    }
    flush_soon(x->hc);
}

static void h2x_head(struct http_exchange *x)
{
    respond(x, false);
}

static void h2x_whole(struct http_exchange *x, struct span body)
{
    struct err e;

    respond(x, body.n == 0);
    if (body.n == 0)
        return;
    x->out_bytes += body.n;
    (void)h2_send(x->stream, body);
    (void)h2_finish(x->stream, NULL, &e);
}

static void h2x_write(struct http_exchange *x, struct span bytes)
{
    x->out_bytes += bytes.n;
    (void)h2_send(x->stream, bytes);
    flush_soon(x->hc);
}

/* The stream's queue alone: a full connection is not pulled for, so the queue fills too, and when it falls the stream
 * says so. Nobody would tell this exchange that the connection has room again. */
static bool h2x_is_full(const struct http_exchange *x)
{
    return h2_is_full(x->stream);
}

static void h2x_end(struct http_exchange *x, const struct http_head *trailers)
{
    struct err e;

    if (x->file)
        x->file->ends = true;
    else if (h2_finish(x->stream, trailers, &e) < 0)
        log_error("http.answer", KV("err", &e));
    flush_soon(x->hc);
}

static void h2x_abort(struct http_exchange *x)
{
    if (x->stream)
        h2_reset(x->stream, x->has_begun ? H2_INTERNAL_ERROR : H2_CANCEL);
    flush_soon(x->hc);
}

/* ---- files ---- */

static void file_read(void *ctx)
{
    struct http_file_pump *f = ctx;
    size_t want = (size_t)MIN(f->left, (uint64_t)FILE_PIECE_BYTES);
    struct err e;

    f->piece.max = want;
    f->got = buf_reserve(&f->piece, want, &e) < 0
                 ? -1
                 : pread(f->fd, f->piece.p, want, (off_t)f->offset);
    f->sys = f->got < 0 ? errno : 0;
}

static void file_done(void *ctx)
{
    struct http_file_pump *f = ctx;
    struct http_exchange *x = f->x;
    struct err e;

    f->is_busy = false;
    if (!x) {
        file_free(f);
        return;
    }
    if (f->got <=
        0) { /* shorter than announced, or unreadable: the peer must see that it is not whole */
        log_warn("http.file", KV("missing", f->left), KV("errno", f->sys));
        h2_reset(x->stream, H2_INTERNAL_ERROR);
        flush_soon(x->hc);
        return;
    }
    buf_grown(&f->piece, (size_t)f->got);
    x->out_bytes += (uint64_t)f->got;
    f->offset += (uint64_t)f->got;
    f->left -= (uint64_t)f->got;
    (void)h2_send_buf(x->stream, &f->piece);
    if (f->left) {
        file_go_on(f);
    } else {
        x->file = NULL;
        if (f->ends)
            (void)h2_finish(x->stream, NULL, &e);
        file_free(f);
    }
    flush_soon(x->hc);
}

static void file_go_on(struct http_file_pump *f)
{
    struct http_exchange *x = f->x;

    if (f->is_busy || h2_is_full(x->stream))
        return;
    f->is_busy = true;
    f->got = -1; /* a pool that closes never reads */
    ev_pool_submit(http_server_config(x->hc->server)->file_pool, &f->work, file_read, file_done, f);
}

static void h2x_file(struct http_exchange *x, int file_fd, uint64_t offset, uint64_t n)
{
    struct http_file_pump *f = NEW(struct http_file_pump);

    f->x = x;
    f->fd = file_fd;
    f->offset = offset;
    f->left = n;
    x->file = f;
    file_go_on(f);
}

static const struct http_carrier_ops h2_ops = {
    h2x_continue, h2x_body_paused, h2x_body_used, h2x_head, h2x_whole,
    h2x_write,    h2x_file,        h2x_is_full,   h2x_end,  h2x_abort,
};
