#include "http/h2_impl.h"

#include "base/str.h"

/* Takes a token. The clock is read only when none is left: frames usually cost a subtraction. */
static bool bucket_take(const struct h2 *h, struct h2_bucket *b, uint32_t burst, uint32_t per_s)
{
    uint64_t now, earned;

    if (b->left == 0) {
        now = h2_now_ms(h);
        earned = (now - b->at_ms) * per_s / 1000;
        if (earned == 0)
            return false;
        b->left = (uint32_t)MIN(earned, (uint64_t)burst);
        b->at_ms = now;
    }
    b->left--;
    return true;
}

static void count_reset(struct h2 *h)
{
    if (!bucket_take(h, &h->resets, h->config.reset_burst, h->config.reset_per_s))
        h2_lose(h, ERR_LIMIT, H2_ENHANCE_YOUR_CALM, "the peer resets streams too fast");
}

static void count_idle_frame(struct h2 *h)
{
    if (!bucket_take(h, &h->idle_frames, h->config.idle_frame_burst, h->config.idle_frame_per_s))
        h2_lose(h, ERR_LIMIT, H2_ENHANCE_YOUR_CALM,
                "the peer sends too many frames that do nothing");
}

static struct h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
    return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

/* Whether its events still interest anyone. */
static bool is_heard(const struct h2_stream *s)
{
    return s && s->is_announced && !s->is_reset && s->h->lost == ERR_NONE;
}

/* Heads. */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);

    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    if (!s && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        s = h2_stream_new(h, frame->hd.stream_id);
        (void)nghttp2_session_set_stream_user_data(session, s->id, s);
    } else if (s && s->has_head && !s->trailers_in) {
        s->trailers_in = NEW(struct http_head);
        http_head_init(s->trailers_in, h->config.head_max_bytes, h->config.head_max_fields);
    }
    return 0;
}

static int set_part(struct http_head *head, struct http_piece *part, struct span value,
                    struct err *e)
{
    struct http_piece piece = { (uint32_t)head->text.n, (uint32_t)value.n };

    if (buf_add(&head->text, value, e) < 0)
        return -1;
    *part = piece;
    return 0;
}

/* nghttp2 judged the pseudo fields already: known, once, before the others. */
static int add_pseudo(struct http_head *head, struct span name, struct span value, struct err *e)
{
    uint64_t status;

    if (span_is(name, ":method"))
        return set_part(head, &head->method, value, e);
    if (span_is(name, ":path"))
        return set_part(head, &head->target, value, e);
    if (span_is(name, ":authority"))
        return set_part(head, &head->authority, value, e);
    if (span_is(name, ":scheme"))
        return set_part(head, &head->scheme, value, e);
    if (span_is(name, ":protocol"))
        return set_part(head, &head->protocol, value, e);
    if (span_is(name, ":status") && str_u64(value, 999, &status) && status >= 100)
        http_head_set_status(head, (int)status);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_p,
                     size_t name_n, const uint8_t *value_p, size_t value_n, uint8_t flags,
                     void *ctx)
{
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);
    struct span name = { name_p, name_n }, value = { value_p, value_n };
    struct http_head *head;
    struct err e;

    if (!s || s->is_head_big || s->is_reset)
        return 0;
    head = s->trailers_in ? s->trailers_in : &s->head;
    if (name.n > 0 && name.p[0] == ':' ? add_pseudo(head, name, value, &e)
                                       : http_head_add(head, name, value, &e))
        s->is_head_big = true; /* the rest must still be inflated, or HPACK loses its state */
    return 0;
}

static void on_first_head(struct h2_stream *s, bool is_end)
{
    struct h2 *h = s->h;
    struct span host = http_head_get(&s->head, "host");
    struct err e;

    if (s->head.authority.n == 0 && host.n > 0) {
        OWN_MEM char *copy = span_dup(host); /* a span into the head must not be added to it */

        if (http_head_set_authority(&s->head, span_of(copy, host.n), &e) < 0)
            s->is_head_big = true;
    }
    if (s->is_head_big) {
        if (h->config.role == H2_SERVER && h2_answer_431(s) == 0)
            return;
        h2_reset(s, H2_ENHANCE_YOUR_CALM);
        return;
    }
    s->has_head = true;
    h2_stream_announce(s);
    h->events->on_head(h->ctx, s, &s->head, is_end);
}

static void on_head_frame(struct h2_stream *s, bool is_end)
{
    struct h2 *h = s->h;

    if (s->is_reset)
        return;
    if (s->trailers_in) {
        if (s->is_head_big)
            h2_reset(s, H2_ENHANCE_YOUR_CALM);
        else if (is_heard(s) && h->events->on_trailers)
            h->events->on_trailers(h->ctx, s, s->trailers_in);
        http_head_done(s->trailers_in);
        free(take_ptr(&s->trailers_in));
    } else if (h->config.role == H2_CLIENT && s->head.status < 200 && !s->is_head_big) {
        http_head_clear(&s->head); /* 1xx: the real one follows */
    } else {
        on_first_head(s, is_end);
    }
}

/* Frames. */

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
                         size_t n, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_stream *s = stream_of(session, id);

    if (s && s->is_lingering && n > s->linger)
        h2_reset(s, H2_NO_ERROR); /* RFC 9113 8.1: answered in full, the rest is not needed */
    else if (s && s->is_lingering)
        s->linger -= n;
    if (!is_heard(s) || !h->events->on_data) {
        (void)nghttp2_session_consume(session, id, n);
        return 0;
    }
    s->unconsumed += n;
    h->events->on_data(h->ctx, s, span_of(p, n));
    return 0;
}

static uint64_t opaque_of(const nghttp2_ping *ping)
{
    uint64_t opaque;

    memcpy(&opaque, ping->opaque_data, sizeof opaque);
    return opaque;
}

static void on_ping(struct h2 *h, const nghttp2_frame *frame)
{
    if (!(frame->hd.flags & NGHTTP2_FLAG_ACK)) {
        count_idle_frame(h);
    } else if (opaque_of(&frame->ping) == H2_SHUTDOWN_PING && h->is_shut) {
        /* A round trip has passed: what the peer opened before it knew is here. */
        (void)nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
                                    nghttp2_session_get_last_proc_stream_id(h->session),
                                    H2_NO_ERROR, NULL, 0);
    } else if (h->events->on_pong) {
        h->events->on_pong(h->ctx, opaque_of(&frame->ping));
    }
}

/* Once the connection is lost nothing more is looked at, not even what came with the same bytes. */
static int verdict(const struct h2 *h)
{
    return h->lost == ERR_NONE ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);
    bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (s)
            on_head_frame(s, is_end);
        break;
    case NGHTTP2_DATA:
        if (frame->hd.length == 0 && !is_end)
            count_idle_frame(h);
        break;
    case NGHTTP2_RST_STREAM:
        count_reset(h);
        return verdict(h);
    case NGHTTP2_PING:
        on_ping(h, frame);
        return verdict(h);
    case NGHTTP2_GOAWAY:
        if (h->events->on_goaway)
            h->events->on_goaway(h->ctx, (uint32_t)frame->goaway.last_stream_id,
                                 frame->goaway.error_code);
        return 0;
    case NGHTTP2_WINDOW_UPDATE: /* moves data, and costs us nothing */
        return 0;
    default:
        count_idle_frame(h);
        return verdict(h);
    }
    if (!s || !is_end || s->is_peer_done)
        return verdict(h);
    s->is_peer_done = true;
    if (is_heard(s) && h->events->on_end)
        h->events->on_end(h->ctx, s);
    return 0;
}

static void tell_close(struct h2_stream *s, uint32_t code)
{
    struct h2 *h = s->h;

    if (!s->is_announced)
        return;
    s->is_announced = false;
    h->count--;
    h->events->on_close(h->ctx, s, code);
}

/* We ended and the peer still sends. A reset would be right (RFC 9113 8.1), but clients lose the
 * answer over it: curl 7.88 does. So the rest is dropped for a while, and the user is done with
 * the stream. */
static void linger(struct h2_stream *s)
{
    if (s->is_reset)
        return;
    s->is_lingering = true;
    s->linger = s->h->config.stream_window;
    h2_consume(s, s->unconsumed);
    tell_close(s, H2_NO_ERROR);
    s->user = NULL;
    http_head_done(&s->head);
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h = ctx;
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);
    uint8_t type = frame->hd.type;

    if (type == NGHTTP2_GOAWAY && frame->goaway.error_code != H2_NO_ERROR && h->lost == ERR_NONE)
        h->lost = ERR_PROTOCOL; /* nghttp2's verdict, or h2_goaway's */
    /* An error of the peer made nghttp2 reset the stream: as cheap to cause as a reset of its
     * own. */
    if (type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != H2_NO_ERROR &&
        !(s && s->is_reset))
        count_reset(h);
    if (!s || (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA))
        return 0;
    if (s->was_full && s->queued <= h->config.send_low) {
        s->was_full = false;
        if (is_heard(s) && h->events->on_drain)
            h->events->on_drain(h->ctx, s);
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) && h->config.role == H2_SERVER &&
        !s->is_peer_done)
        linger(s);
    return 0;
}

static int on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int code,
                             void *ctx)
{
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);

    if (s && frame->hd.type == NGHTTP2_HEADERS && code == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED)
        s->is_refused = true;
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *ctx)
{
    struct h2_stream *s = stream_of(session, id);

    if (!s)
        return 0;
    if (s->unconsumed > 0)
        (void)nghttp2_session_consume_connection(session, s->unconsumed);
    tell_close(s, s->is_refused ? H2_REFUSED_STREAM : code);
    (void)nghttp2_session_set_stream_user_data(session, id, NULL);
    h2_stream_free(s);
    return 0;
}

static int on_error(nghttp2_session *session, int code, const char *text, size_t n, void *ctx)
{
    struct h2 *h = ctx;

    if (h->lost == ERR_NONE)
        (void)snprintf(h->why, sizeof h->why, "%.*s", (int)MIN(n, sizeof h->why - 1), text);
    return 0;
}

nghttp2_session_callbacks *h2_callbacks(void)
{
    nghttp2_session_callbacks *c = NULL;

    if (nghttp2_session_callbacks_new(&c) != 0)
        abort();
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(c, on_frame_not_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(c, h2_on_write);
    nghttp2_session_callbacks_set_error_callback2(c, on_error);
    return c;
}
