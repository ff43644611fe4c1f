#include "http/h2_impl.h"

#include "base/time.h"

#define PREFACE          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define H2_SHUTDOWN_PING 0x73696c6963610001u /* our ping behind the shutdown notice */
/* SETTINGS and PING answers that may wait: a peer that does not read */
#define OUTBOUND_ACK_MAX 1000
/* Frames of one head: 64 KiB need 4, 16 are let pass. nghttp2 1.52 counts each time it looks at the
 * nine bytes of a frame's head, which may come one by one. */
#define CONTINUATIONS_MAX (16 * 9)

enum h2_preface h2_preface_match(struct span first)
{
    struct span want = SPAN(PREFACE);
    size_t n = MIN(first.n, want.n);

    if (n > 0 && memcmp(first.p, want.p, n) != 0)
        return H2_PREFACE_NO;
    return n < want.n ? H2_PREFACE_MORE : H2_PREFACE_YES;
}

void h2_lose(struct h2 *h, enum err_code code, uint32_t h2_code, const char *why)
{
    if (h->lost != ERR_NONE)
        return;
    h->lost = code;
    (void)snprintf(h->why, sizeof h->why, "%s", why);
    (void)nghttp2_session_terminate_session(h->session, h2_code);
}

uint64_t h2_now_ms(const struct h2 *h)
{
    return h->config.now_ms ? h->config.now_ms() : time_mono_ms();
}

/* Streams. */

struct h2_stream *h2_stream_new(struct h2 *h, int32_t id)
{
    struct h2_stream *s = NEW(struct h2_stream);

    s->h = h;
    s->id = id;
    http_head_init(&s->head, h->config.head_max_bytes, h->config.head_max_fields);
    s->next = h->first;
    if (s->next)
        s->next->prev = s;
    h->first = s;
    return s;
}

void h2_stream_announce(struct h2_stream *s)
{
    if (s->is_announced)
        return;
    s->is_announced = true;
    s->h->count++;
}

void h2_stream_free(struct h2_stream *s)
{
    struct h2 *h = s->h;

    if (s->prev)
        s->prev->next = s->next;
    else
        h->first = s->next;
    if (s->next)
        s->next->prev = s->prev;
    if (s->is_announced)
        h->count--;
    h2_queue_drop(s);
    http_head_done(&s->head);
    http_head_done(s->trailers_in);
    free(s->trailers_in);
    free(s);
}

/* Life. */

static void submit_settings(struct h2 *h)
{
    const struct h2_config *c = &h->config;
    bool is_server = c->role == H2_SERVER;
    nghttp2_settings_entry rows[] = {
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, c->stream_window },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, c->head_max_bytes },
        /* A server never pushes, and the priority tree of the first RFC is only memory to a
         * peer's taste. */
        { is_server ? NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES : NGHTTP2_SETTINGS_ENABLE_PUSH,
          is_server ? 1 : 0 },
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, c->max_streams },
    };

    if (nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, rows, is_server ? 4 : 3) != 0)
        abort();
    if (nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0,
                                              (int32_t)c->conn_window) != 0)
        abort();
}

struct h2 *h2_new(const struct h2_config *config, const struct h2_events *events, void *ctx)
{
    struct h2 *h = NEW(struct h2);
    nghttp2_session_callbacks *c = h2_callbacks();
    nghttp2_option *o = NULL;
    int r;

    assert(config->stream_window <= INT32_MAX && config->conn_window <= INT32_MAX);
    h->config = *config;
    h->events = events;
    h->ctx = ctx;
    h->resets = (struct h2_bucket){ config->reset_burst, h2_now_ms(h) };
    h->idle_frames = (struct h2_bucket){ config->idle_frame_burst, h->resets.at_ms };
    if (nghttp2_option_new(&o) != 0)
        abort();
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_max_outbound_ack(o, OUTBOUND_ACK_MAX);
    nghttp2_option_set_max_continuations(o, CONTINUATIONS_MAX);
    /* Ours counts more, and says ENHANCE_YOUR_CALM. */
    nghttp2_option_set_stream_reset_rate_limit(o, UINT64_MAX / 2, UINT64_MAX / 2);
    r = config->role == H2_SERVER ? nghttp2_session_server_new2(&h->session, c, h, o)
                                  : nghttp2_session_client_new2(&h->session, c, h, o);
    if (r != 0)
        abort(); /* out of memory is all it can be */
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(c);
    submit_settings(h);
    return h;
}

void h2_free(struct h2 *h)
{
    if (!h)
        return;
    h->is_shut = true; /* an on_close that wants to try again must do so elsewhere */
    h->lost = h->lost == ERR_NONE ? ERR_CANCELED : h->lost;
    while (h->first) {
        struct h2_stream *s = h->first;

        if (s->is_announced)
            h->events->on_close(h->ctx, s, H2_CANCEL);
        (void)nghttp2_session_set_stream_user_data(h->session, s->id, NULL);
        h2_stream_free(s);
    }
    nghttp2_session_del(h->session);
    free(h);
}

int h2_feed(struct h2 *h, struct span in, struct err *e)
{
    ssize_t n;

    if (h->lost == ERR_NONE && in.n > 0) {
        n = nghttp2_session_mem_recv(h->session, in.p, in.n);
        if (n == NGHTTP2_ERR_FLOODED)
            h2_lose(h, ERR_LIMIT, H2_ENHANCE_YOUR_CALM, "the peer does not read our answers");
        else if (n < 0)
            h2_lose(h, ERR_PROTOCOL, H2_PROTOCOL_ERROR, nghttp2_strerror((int)n));
    }
    if (h->lost == ERR_NONE)
        return 0;
    return err_set(e, h->lost, "the HTTP/2 connection is lost: %s",
                   h->why[0] ? h->why : "it ended");
}

bool h2_wants_write(const struct h2 *h)
{
    return nghttp2_session_want_write(h->session);
}

bool h2_wants_read(const struct h2 *h)
{
    return h->lost == ERR_NONE && nghttp2_session_want_read(h->session);
}

void h2_shutdown(struct h2 *h)
{
    if (h->is_shut)
        return;
    h->is_shut = true;
    if (h->config.role == H2_CLIENT) {
        (void)nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, 0, H2_NO_ERROR, NULL, 0);
        return;
    }
    for (struct h2_stream *s = h->first; s; s = s->next) {
        if (s->is_lingering)
            h2_reset(s, H2_NO_ERROR); /* we said all there is to say */
    }
    (void)nghttp2_submit_shutdown_notice(h->session);
    h2_ping(h, H2_SHUTDOWN_PING);
}

void h2_goaway(struct h2 *h, uint32_t code)
{
    h->is_shut = true;
    (void)nghttp2_session_terminate_session(h->session, code);
}

void h2_ping(struct h2 *h, uint64_t opaque)
{
    uint8_t bytes[sizeof opaque];

    memcpy(bytes, &opaque, sizeof opaque);
    (void)nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, bytes);
}

void *h2_ctx(const struct h2 *h)
{
    return h->ctx;
}

size_t h2_stream_count(const struct h2 *h)
{
    return h->count;
}

size_t h2_request_room(const struct h2 *h)
{
    size_t max;

    if (h->lost != ERR_NONE || h->is_shut || !nghttp2_session_check_request_allowed(h->session))
        return 0;
    max = nghttp2_session_get_remote_settings(h->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    return max > h->count ? max - h->count : 0;
}
