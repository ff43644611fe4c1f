#include "http/grpc_serve.h"

#include "ev/timer.h"
#include "http/grpc_frame.h"
#include "http/h2.h"

#define TRAILERS_MAX_BYTES (8 * 1024)

struct unary;
static void unary_free(struct unary *u);

struct grpc_stream {
    struct http_exchange *x;
    struct ev_loop *loop;
    struct grpc_frame frame;
    const struct grpc_stream_events *events;
    void *ctx;
    struct ev_timer deadline;
    bool has_head, is_over, is_paused;
    struct buf held; /* came in the same piece as the message that made the handler pause */
    struct ev_task resume;
    struct unary *unary; /* freed with the stream */
};

static void stream_free(void *obj)
{
    struct grpc_stream *s = obj;

    grpc_frame_done(&s->frame);
    buf_done(&s->held);
    unary_free(s->unary);
    free(s);
}

static void end(struct grpc_stream *s)
{
    assert(!s->is_over);
    s->is_over = true;
    ev_timer_stop(s->loop, &s->deadline);
    ev_post_cancel(&s->resume);
    ev_free_later(s->loop, s,
                  stream_free); /* a message may be on the stack, and it lives in the frame */
}

static void copy_fields(struct http_exchange *x, const struct http_head *head)
{
    for (size_t i = 0; i < http_head_count(head); i++) {
        struct span name, value;
        char text[64];

        http_head_field(head, i, &name, &value);
        (void)snprintf(text, sizeof text, "%.*s", SPAN_ARG(name));
        http_answer_field(x, text, value);
    }
}

void grpc_refuse(struct http_exchange *x, enum grpc_status status, const char *message)
{
    struct http_head head;
    struct err e;

    http_head_init(&head, TRAILERS_MAX_BYTES, 16);
    (void)grpc_trailers_only(&head, status, span_cstr(message), &e);
    copy_fields(x, &head);
    http_head_done(&head);
    http_answer_head(
        x,
        200); /* HEADERS that end the stream: clients take nothing else for a status without messages */
}

static void fail(struct grpc_stream *s, enum grpc_status status, const char *message)
{
    const struct grpc_stream_events *events = s->events;
    void *ctx = s->ctx;

    grpc_stream_finish(s, status, message);
    events->on_gone(ctx);
}

/* Messages go out one by one, until the handler has enough of them. */
static void feed(struct grpc_stream *s, struct span bytes)
{
    size_t used = 0;
    struct err e;

    while (!s->is_over && !s->is_paused) {
        enum feed verdict = grpc_frame_feed(&s->frame, bytes, &used, &e);

        bytes = span_skip(bytes, used);
        if (verdict == FEED_MORE)
            return;
        if (verdict == FEED_BAD) {
            fail(s, e.code == ERR_LIMIT ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL, e.msg);
            return;
        }
        s->events->on_message(s->ctx, buf_span(&s->frame.msg));
    }
    if (!s->is_over)
        (void)buf_add(&s->held, bytes, &e); /* a piece is never larger */
}

static void on_data(void *ctx, struct span bytes)
{
    feed(ctx, bytes);
}

static void resume(void *ctx)
{
    struct grpc_stream *s = ctx;
    OWN(buf_done) struct buf held = BUF_INIT(s->held.max);

    buf_move(&held, &s->held);
    feed(s, buf_span(&held));
    if (!s->is_over && !s->is_paused)
        http_body_pause(s->x, false);
}

static void on_end(void *ctx, const struct err *e)
{
    struct grpc_stream *s = ctx;
    struct err cut;

    if (s->is_over)
        return;
    if (e)
        fail(s, grpc_status_of(e->code), e->msg);
    else if (grpc_frame_end(&s->frame, &cut) < 0)
        fail(s, GRPC_INTERNAL, cut.msg);
    else
        s->events->on_half_close(s->ctx);
}

static void on_gone(void *ctx)
{
    struct grpc_stream *s = ctx;

    if (s->is_over)
        return;
    end(s);
    s->events->on_gone(s->ctx);
}

static void on_drain(void *ctx)
{
    struct grpc_stream *s = ctx;

    if (!s->is_over && s->events->on_drain)
        s->events->on_drain(s->ctx);
}

static void deadline_passed(void *ctx)
{
    fail(ctx, GRPC_DEADLINE_EXCEEDED, "the call's deadline passed");
}

struct grpc_stream *grpc_stream_open(struct http_exchange *x, size_t max_bytes,
                                     const struct grpc_stream_events *events, void *ctx)
{
    static const struct http_body_events body = { on_data, on_end };
    struct grpc_stream *s;
    struct grpc_call call;
    struct err e;

    if (grpc_call_read(http_req(x), &call, &e) < 0) {
        grpc_refuse(x, grpc_status_of(e.code), e.msg);
        return NULL;
    }
    s = NEW(struct grpc_stream);
    s->x = x;
    s->loop = http_loop(x);
    s->events = events;
    s->ctx = ctx;
    s->held.max = H2_STREAM_WINDOW_BYTES;
    grpc_frame_init(&s->frame, max_bytes);
    http_on_gone(x, on_gone, s);
    http_on_drain(x, on_drain, s);
    http_body_may_rest(
        x); /* a stream lasts as long as its sides like; a deadline is the client's to set */
    http_body_read(x, &body, s);
    if (call.has_timeout)
        ev_timer_start(s->loop, &s->deadline, call.timeout_ms, deadline_passed, s);
    return s;
}

void grpc_stream_accept(struct grpc_stream *s)
{
    if (s->has_head)
        return;
    s->has_head = true;
    http_answer_field(s->x, "content-type", SPAN("application/grpc"));
    http_answer_begin(s->x, 200, UINT64_MAX);
}

void grpc_stream_send(struct grpc_stream *s, struct span msg)
{
    const uint8_t prefix[GRPC_PREFIX_BYTES] = { 0, (uint8_t)(msg.n >> 24), (uint8_t)(msg.n >> 16),
                                                (uint8_t)(msg.n >> 8), (uint8_t)msg.n };

    assert(msg.n <= UINT32_MAX);
    grpc_stream_accept(s);
    http_answer_write(s->x, span_of(prefix, sizeof prefix)); /* the stream's queue joins them */
    http_answer_write(s->x, msg);
}

bool grpc_stream_is_full(const struct grpc_stream *s)
{
    return http_answer_is_full(s->x);
}

void grpc_stream_pause(struct grpc_stream *s, bool is_paused)
{
    if (s->is_paused == is_paused)
        return;
    s->is_paused = is_paused;
    if (is_paused)
        http_body_pause(s->x, true);
    else if (!s->resume.is_queued || s->resume.is_canceled)
        ev_post(s->loop, &s->resume, resume, s); /* what was held comes first */
}

void grpc_stream_finish(struct grpc_stream *s, enum grpc_status status, const char *message)
{
    struct http_head trailers;
    struct err e;

    end(s);
    if (!s->has_head) {
        grpc_refuse(s->x, status, message);
        return;
    }
    http_head_init(&trailers, TRAILERS_MAX_BYTES, 16);
    (void)grpc_trailers(&trailers, status, span_cstr(message), &e);
    http_answer_end(s->x, &trailers);
    http_head_done(&trailers);
}

uint64_t grpc_stream_left_ms(const struct grpc_stream *s)
{
    uint64_t now = ev_now_ms(s->loop);

    if (!ev_timer_is_running(&s->deadline))
        return UINT64_MAX;
    return s->deadline.due_ms > now ? s->deadline.due_ms - now : 0;
}

/* ---- unary ---- */

struct unary {
    struct grpc_stream *s;
    grpc_unary_fn handle;
    void *ctx;
    ev_fn gone;
    struct buf msg;
    bool has_msg, is_handled;
    void *handled; /* what handle returned */
};

static void unary_free(struct unary *u)
{
    if (!u)
        return;
    buf_done(&u->msg);
    free(u);
}

static void unary_message(void *ctx, struct span msg)
{
    struct unary *u = ctx;

    (void)msg;
    if (u->has_msg) {
        grpc_stream_finish(u->s, GRPC_INTERNAL, "a unary call has one message, and there came two");
        return;
    }
    u->has_msg = true;
    buf_move(&u->msg, &u->s->frame.msg); /* not copied: it may be megabytes */
}

static void unary_half_close(void *ctx)
{
    struct unary *u = ctx;
    struct grpc_stream *s = u->s;

    if (!u->has_msg) {
        grpc_stream_finish(s, GRPC_INTERNAL, "a unary call has one message, and there came none");
        return;
    }
    u->is_handled = true;
    u->handled = u->handle(u->ctx, s, buf_span(&u->msg));
    buf_done(&u->msg);
}

static void unary_gone(void *ctx)
{
    struct unary *u = ctx;

    if (u->is_handled && u->gone)
        u->gone(u->handled);
}

void grpc_unary(struct http_exchange *x, size_t max_bytes, grpc_unary_fn handle, void *ctx,
                ev_fn gone)
{
    static const struct grpc_stream_events events = { unary_message, unary_half_close, NULL,
                                                      unary_gone };
    struct unary *u = NEW(struct unary);

    u->handle = handle;
    u->ctx = ctx;
    u->gone = gone;
    u->msg.max = max_bytes;
    u->s = grpc_stream_open(x, max_bytes, &events, u);
    if (u->s)
        u->s->unary = u;
    else
        unary_free(u);
}
