#include "sandbox/rpc.h"

#include "base/str.h"
#include "http/grpc.h"
#include "http/grpc_frame.h"
#include "http/h2.h"
#include "net/conn.h"
#include "sandbox/limits.h"

#define PULL_BYTES (64 * 1024) /* of frames at a time, then the socket decides */

struct rpc {
    struct ev_loop *loop;
    struct conn *conn; /* NULL once it is gone */
    struct h2 *h2;     /* NULL once the session is over */
    struct ev_task flush, close;
    bool is_inside; /* the engine is on the stack: it flushes when it returns */
    bool is_closing;
    bool is_orphan;           /* nobody has it any more: it goes with its connection */
    struct rpc_call *dropped; /* to be reset with the next flush, unless they end before */
    struct err why;           /* the session ended so */
    ev_fn gone;
    void *ctx;
};

struct rpc_call {
    struct rpc *rpc;
    struct h2_stream *stream; /* NULL once it is over */
    struct rpc_call *next_dropped;
    struct grpc_frame frame;
    size_t owed; /* bytes the peer has no credit for yet */
    bool is_paused;
    bool is_dropped; /* between rpc_call_drop and on_close */
    bool has_verdict;
    struct err verdict; /* code ERR_NONE: OK */
    const struct rpc_events *events;
    void *ctx;
};

void rpc_clean_text(struct span text, struct buf *out)
{
    while (text.n) {
        size_t need, n = str_utf8_len(text, &need);
        bool is_control = n == 1 && (text.p[0] < 0x20 || text.p[0] == 0x7f);
        bool is_c1 = n == 2 && text.p[0] == 0xc2 && text.p[1] < 0xa0;

        if (n == 0 || is_control || is_c1)
            (void)buf_add_capped(out, SPAN("?"));
        else
            (void)buf_add_capped(out, span_slice(text, 0, n));
        text = span_skip(text, n ? n : need);
    }
}

/* ---- the session ---- */

static void flush_now(struct rpc *r);

static void flush_later(void *ctx)
{
    flush_now(ctx);
}

static void flush_soon(struct rpc *r)
{
    if (r->h2 && !r->is_inside && !r->flush.is_queued)
        ev_post(r->loop, &r->flush, flush_later, r);
}

static void rpc_free(void *obj)
{
    free(obj);
}

/* The session is over: calls are told, then the connection goes. From events only. */
static void break_off(struct rpc *r, const struct err *e)
{
    struct h2 *h = take_ptr(&r->h2);

    if (!h)
        return;
    ev_post_cancel(&r->flush);
    if (e)
        r->why = *e;
    h2_free(h); /* on_stream_close for each */
    if (r->conn)
        conn_close(r->conn);
}

/* A call whose answer is complete is dropped with its end, which stands behind it in the same bytes: most need no reset, and
 * PID 1 is not woken for it. */
static void reset_dropped(struct rpc *r)
{
    while (r->dropped) {
        struct rpc_call *c = r->dropped;

        r->dropped = c->next_dropped;
        h2_reset(c->stream, H2_CANCEL);
    }
}

static void undrop(struct rpc_call *c)
{
    struct rpc_call **at = &c->rpc->dropped;

    while (*at && *at != c)
        at = &(*at)->next_dropped;
    if (*at)
        *at = c->next_dropped;
}

static void flush_now(struct rpc *r)
{
    struct err e;
    int more = 1;

    if (!r->h2)
        return;
    r->is_inside = true;
    reset_dropped(r);
    while (more > 0 && h2_wants_write(r->h2) && !conn_is_full(r->conn)) {
        OWN(buf_done) struct buf out = BUF_INIT(4 * PULL_BYTES);

        more = h2_pull(r->h2, &out, PULL_BYTES, &e);
        if (out.n)
            conn_write_buf(r->conn, &out);
    }
    r->is_inside = false;
    if (r->dropped)
        flush_soon(r);
    if (more < 0)
        break_off(r, &e);
    else if (!h2_wants_read(r->h2) && !h2_wants_write(r->h2))
        break_off(r, h2_feed(r->h2, SPAN_NONE, &e) < 0 ? &e : NULL);
}

/* ---- events of the connection ---- */

static void on_read(void *ctx, struct span in)
{
    struct rpc *r = ctx;
    struct err e;
    int fed;

    if (!r->h2)
        return;
    r->is_inside = true;
    fed = h2_feed(r->h2, in, &e);
    r->is_inside = false;
    if (fed < 0)
        break_off(r, &e);
    else
        flush_now(r);
}

static void on_eof(void *ctx)
{
    break_off(ctx, NULL);
}

static void on_conn_drain(void *ctx)
{
    flush_now(ctx);
}

static void on_conn_close(void *ctx, const struct err *e)
{
    struct rpc *r = ctx;

    r->conn = NULL;
    break_off(r, e);
    if (r->is_orphan)
        ev_free_later(r->loop, r, rpc_free);
    else if (r->gone && !r->is_closing)
        r->gone(r->ctx);
}

static const struct conn_events conn_events = { on_read, on_eof, on_conn_drain, on_conn_close };

/* ---- events of the engine ---- */

static void call_free(void *obj)
{
    struct rpc_call *c = obj;

    grpc_frame_done(&c->frame);
    free(c);
}

/* The end of a call as its trailers tell it; the text is the peer's. */
static void judge(struct rpc_call *c, const struct http_head *trailers)
{
    OWN(buf_done) struct buf text = BUF_INIT(GRPC_MESSAGE_TEXT_BYTES);
    OWN(buf_done) struct buf clean = BUF_INIT(sizeof c->verdict.msg - 1);
    enum grpc_status status = grpc_status_read(trailers, &text);

    c->has_verdict = true;
    c->verdict = (struct err){ 0 };
    if (status == GRPC_OK)
        return;
    rpc_clean_text(buf_span(&text), &clean);
    (void)err_set(&c->verdict, grpc_err_code(status), "%s",
                  clean.n ? buf_cstr(&clean) : grpc_status_name(status));
}

static void fail(struct rpc_call *c, const struct err *e)
{
    c->has_verdict = true;
    c->verdict = *e;
    h2_reset(c->stream, H2_CANCEL); /* on_stream_close tells */
}

static void on_head(void *ctx, struct h2_stream *s, const struct http_head *head, bool is_end)
{
    struct rpc_call *c = h2_user(s);
    struct err e;

    (void)ctx;
    if (c->is_dropped)
        return;
    if (is_end || http_head_get(head, "grpc-status").p) {
        judge(c, head); /* all of the answer in one head */
    } else if (head->status != 200) {
        (void)err_set(&e, ERR_PROTOCOL, "PID 1 answered with HTTP status %d", head->status);
        fail(c, &e);
    }
}

static void on_data(void *ctx, struct h2_stream *s, struct span bytes)
{
    struct rpc_call *c = h2_user(s);
    enum feed r = FEED_MORE;
    size_t used;
    struct err e;

    (void)ctx;
    c->owed += bytes.n;
    while (bytes.n && !c->is_dropped && !c->has_verdict) {
        r = grpc_frame_feed(&c->frame, bytes, &used, &e);
        if (r == FEED_BAD) {
            (void)err_wrap(&e, "PID 1 sent no proper message");
            fail(c, &e);
            return;
        }
        bytes = span_skip(bytes, used);
        if (r == FEED_DONE && c->events->on_message)
            c->events->on_message(c->ctx, buf_span(&c->frame.msg));
    }
    if (!c->is_paused) {
        h2_consume(s, c->owed);
        c->owed = 0;
    }
}

static void on_trailers(void *ctx, struct h2_stream *s, const struct http_head *trailers)
{
    struct rpc_call *c = h2_user(s);

    (void)ctx;
    if (!c->has_verdict && !c->is_dropped)
        judge(c, trailers);
}

static void on_stream_close(void *ctx, struct h2_stream *s, uint32_t code)
{
    struct rpc *r = ctx;
    struct rpc_call *c = h2_user(s);

    c->stream = NULL;
    undrop(c);
    if (!c->has_verdict && !c->is_dropped) {
        c->verdict = r->why;
        if (r->h2)
            (void)err_set(&c->verdict, ERR_PROTOCOL, "PID 1 ended the call: HTTP/2 error %u", code);
        else if (r->is_closing)
            (void)err_set(&c->verdict, ERR_CANCELED, "the sandbox is being closed");
        else if (!r->why.code)
            (void)err_set(&c->verdict, ERR_CLOSED, "the sandbox ended");
    }
    if (!c->is_dropped)
        c->events->on_done(c->ctx, c->verdict.code ? &c->verdict : NULL);
    ev_free_later(r->loop, c, call_free); /* on_done may be below us in somebody's stack */
}

static const struct h2_events h2_events = {
    .on_head = on_head,
    .on_data = on_data,
    .on_trailers = on_trailers,
    .on_close = on_stream_close,
};

/* ---- verbs ---- */

int rpc_open(struct ev_loop *loop, int fd, ev_fn gone, void *ctx, struct rpc **ret, struct err *e)
{
    struct h2_config config = H2_CONFIG_INIT(H2_CLIENT);
    struct rpc *r = NEW(struct rpc);

    config.stream_window = SANDBOX_WINDOW_BYTES;
    config.head_max_bytes = SANDBOX_HEAD_MAX_BYTES;
    r->loop = loop;
    r->gone = gone;
    r->ctx = ctx;
    if (conn_new(loop, fd, NULL, &conn_events, r, &r->conn, e) < 0) {
        free(r);
        return -1;
    }
    r->h2 = h2_new(&config, &h2_events, r);
    flush_soon(r);
    *ret = r;
    return 0;
}

static void close_now(void *ctx)
{
    struct rpc *r = ctx;

    r->is_orphan = true;
    if (r->conn)
        break_off(r, NULL); /* on_conn_close frees us */
    else
        ev_free_later(r->loop, r, rpc_free);
}

void rpc_close(struct rpc *r)
{
    if (!r || r->is_closing)
        return;
    r->is_closing = true;
    ev_post(r->loop, &r->close, close_now, r);
}

int rpc_call(struct rpc *r, const char *path, struct buf *framed, const struct rpc_events *events,
             void *ctx, struct rpc_call **ret, struct err *e)
{
    struct http_head head;
    struct rpc_call *c;
    int done;

    if (!r->h2 || r->is_closing)
        return err_set(e, ERR_CLOSED, "the sandbox has ended");
    if (h2_stream_count(r->h2) >= SANDBOX_CALLS_MAX)
        return err_set(e, ERR_BUSY, "PID 1 has not answered %d calls", SANDBOX_CALLS_MAX);
    c = NEW(struct rpc_call);
    c->rpc = r;
    c->events = events;
    c->ctx = ctx;
    grpc_frame_init(&c->frame, SANDBOX_MESSAGE_MAX_BYTES);
    http_head_init(&head, 4096, 16);
    done = grpc_request_head(&head, SPAN("sandbox"), span_cstr(path), 0, e);
    if (done == 0)
        done = h2_request(r->h2, &head, false, c, &c->stream, e);
    http_head_done(&head);
    if (done < 0) {
        call_free(c);
        return -1;
    }
    (void)h2_send_buf(c->stream, framed);
    (void)h2_finish(c->stream, NULL, e); /* no trailers, so none can be bad */
    flush_soon(r);
    *ret = c;
    return 0;
}

void rpc_call_pause(struct rpc_call *c, bool is_paused)
{
    c->is_paused = is_paused;
    if (is_paused || !c->owed || !c->stream)
        return;
    h2_consume(c->stream, c->owed);
    c->owed = 0;
    flush_soon(c->rpc);
}

void rpc_call_drop(struct rpc_call *c)
{
    if (c->is_dropped)
        return;
    c->is_dropped = true;
    c->is_paused = false;
    if (!c->stream)
        return;
    c->next_dropped = c->rpc->dropped;
    c->rpc->dropped = c;
    flush_soon(c->rpc); /* inside the engine it follows anyway */
}
