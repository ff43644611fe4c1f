/* Frames in. Data is given on as it comes; control frames are gathered whole, within the ceiling of a head. */
#include "http/spdy_impl.h"

#include <string.h>

#define UNIDIRECTIONAL 2
#define VERSION        3

static int bad(struct spdy *h, struct err *e, const char *what)
{
    (void)err_set(e, ERR_PROTOCOL, "%s", what);
    return spdy_lose(h, SPDY_PROTOCOL_ERROR);
}

/* ---- data ---- */

static void stream_end(struct spdy_stream *s)
{
    struct spdy *h = s->h;

    if (s->is_closed || s->has_in_end)
        return;
    s->has_in_end = true;
    if (h->events->on_end)
        h->events->on_end(h->ctx, s);
    spdy_stream_settle(s);
}

/* Was there ever a stream of this id? */
static bool was_seen(const struct spdy *h, uint32_t id)
{
    bool is_ours = id % 2 == (h->config.role == SPDY_CLIENT ? 1 : 0);

    return id && (is_ours ? id < h->next_id : id <= h->last_peer_id);
}

/* The head of a data frame: may its bytes come? Those of a closed stream were on their way and are dropped. */
static int begin_data(struct spdy *h, struct err *e)
{
    struct spdy_stream *s;

    h->data_id = spdy_be32(h->head);
    s = spdy_find(h, h->data_id);
    if (!s && !was_seen(h, h->data_id))
        spdy_write_rst(h, h->data_id, SPDY_INVALID_STREAM);
    if (s && !s->is_closed && s->has_in_end)
        spdy_reset(s, SPDY_STREAM_ALREADY_CLOSED);
    if (s && !s->is_closed && !s->is_peers && !s->has_reply)
        spdy_reset(s, SPDY_PROTOCOL_ERROR);
    if (h->config.has_windows) {
        if ((int64_t)h->left > h->recv_window)
            return bad(h, e, "more data than the connection's window has room for");
        h->recv_window -= (int64_t)h->left;
        if (s && !s->is_closed && (int64_t)h->left > s->recv_window)
            spdy_reset(s, SPDY_FLOW_CONTROL_ERROR);
        else if (s)
            s->recv_window -= (int64_t)h->left;
    }
    h->state = SPDY_AT_DATA;
    return 0;
}

/* With windows, what nobody reads is credited to the connection at once. */
static void drop_data(struct spdy *h, size_t n)
{
    if (!h->config.has_windows)
        return;
    h->consumed += (uint32_t)n;
    h->recv_window += h->consumed;
    if (h->consumed) {
        const uint32_t values[] = { 0, h->consumed };

        spdy_write_u32s(h, SPDY_WINDOW_UPDATE, values, LEN(values));
        h->consumed = 0;
    }
}

static void take_data(struct spdy *h, struct span *in)
{
    struct span piece = span_slice(*in, 0, h->left);
    struct spdy_stream *s = spdy_find(h, h->data_id);

    *in = span_skip(*in, piece.n);
    h->left -= piece.n;
    if (s && !s->is_closed && piece.n) {
        s->unconsumed += h->config.has_windows ? (uint32_t)piece.n : 0;
        if (h->events->on_data)
            h->events->on_data(h->ctx, s, piece);
        else
            spdy_consume(s, piece.n);
    } else if (piece.n) {
        drop_data(h, piece.n);
    }
    if (h->left)
        return;
    h->state = SPDY_AT_HEAD;
    if (s && h->flags & SPDY_FLAG_FIN)
        stream_end(s);
}

/* ---- control frames ---- */

static bool is_peers_id(const struct spdy *h, uint32_t id)
{
    return id % 2 == (h->config.role == SPDY_SERVER ? 1 : 0);
}

/* 1: read; 0: it is no head, but the connection goes on; -1: it is lost. */
static int unpack(struct spdy *h, struct span block, struct http_head *head, struct err *e)
{
    if (spdy_unpack(h->unpacker, block, h->config.head_max_bytes, head, e) == 0)
        return 1;
    return e->code == ERR_INVALID ? 0 : spdy_lose(h, SPDY_PROTOCOL_ERROR);
}

static int on_syn_stream(struct spdy *h, struct span in, struct http_head *head, struct err *e)
{
    uint32_t id = spdy_be32(in.p) & SPDY_ID_MASK;
    struct spdy_stream *s;
    int got;

    if (!is_peers_id(h, id) || id <= h->last_peer_id)
        return bad(h, e, "stream with an id that is used or not the peer's");
    got = unpack(h, span_skip(in, 10), head, e);
    if (got < 0)
        return -1;
    h->last_peer_id = id;
    if (h->has_goaway)
        return 0;
    if (got == 0 || !h->events->on_stream || h->peers_open >= h->config.max_streams ||
        h->flags & UNIDIRECTIONAL) { /* nobody needs streams that cannot be answered */
        spdy_write_rst(h, id, got ? SPDY_REFUSED_STREAM : SPDY_PROTOCOL_ERROR);
        return 0;
    }
    s = spdy_stream_new(h, id, true);
    h->events->on_stream(h->ctx, s, head);
    if (h->flags & SPDY_FLAG_FIN)
        stream_end(s);
    return 0;
}

static int on_syn_reply(struct spdy *h, struct span in, struct http_head *head, struct err *e)
{
    struct spdy_stream *s = spdy_find(h, spdy_be32(in.p) & SPDY_ID_MASK);
    int got = unpack(h, span_skip(in, 4), head, e);

    if (got < 0)
        return -1;
    if (!s || s->is_closed)
        return 0;
    if (s->is_peers || s->has_reply || got == 0) {
        spdy_reset(s, s->has_reply ? SPDY_STREAM_IN_USE : SPDY_PROTOCOL_ERROR);
        return 0;
    }
    s->has_reply = true;
    if (h->events->on_reply)
        h->events->on_reply(h->ctx, s, head);
    if (h->flags & SPDY_FLAG_FIN)
        stream_end(s);
    return 0;
}

/* More fields, which nobody here looks at; but the zlib stream goes through them. */
static int on_headers(struct spdy *h, struct span in, struct http_head *head, struct err *e)
{
    struct spdy_stream *s = spdy_find(h, spdy_be32(in.p) & SPDY_ID_MASK);
    int got = unpack(h, span_skip(in, 4), head, e);

    if (got < 0)
        return -1;
    if (s && !s->is_closed && got == 0)
        spdy_reset(s, SPDY_PROTOCOL_ERROR);
    else if (s && h->flags & SPDY_FLAG_FIN)
        stream_end(s);
    return 0;
}

static void on_rst(struct spdy *h, struct span in)
{
    struct spdy_stream *s = spdy_find(h, spdy_be32(in.p) & SPDY_ID_MASK);

    if (!s || s->is_closed)
        return;
    s->is_reset = true;
    spdy_stream_close(s, spdy_be32(in.p + 4));
}

static void pump_all(struct spdy *h)
{
    for (size_t i = 0; i < SPDY_BUCKETS && h->send_window > 0; i++) {
        for (struct spdy_stream *s = h->buckets[i]; s; s = s->next)
            spdy_stream_pump(s);
    }
    for (size_t i = 0; i < SPDY_BUCKETS; i++) {
        for (struct spdy_stream *s = h->buckets[i]; s; s = s->next) {
            if (!s->was_full || s->is_closed || s->queue.n > SPDY_SEND_LOW_BYTES)
                continue;
            s->was_full = false;
            if (h->events->on_drain)
                h->events->on_drain(h->ctx, s);
        }
    }
}

static int set_initial_window(struct spdy *h, uint32_t value, struct err *e)
{
    int64_t change = (int64_t)value - h->peer_initial_window;

    if (value > SPDY_WINDOW_MAX)
        return bad(h, e, "initial window beyond the protocol's largest");
    h->peer_initial_window = value;
    for (size_t i = 0; i < SPDY_BUCKETS; i++) {
        for (struct spdy_stream *s = h->buckets[i]; s; s = s->next)
            s->send_window += change;
    }
    pump_all(h);
    return 0;
}

static int on_settings(struct spdy *h, struct span in, struct err *e)
{
    uint32_t count = spdy_be32(in.p);

    in = span_skip(in, 4);
    if (in.n % 8 || in.n / 8 != count)
        return bad(h, e, "settings of another number than announced");
    for (; in.n; in = span_skip(in, 8)) {
        uint32_t id = spdy_be32(in.p) & 0xffffff, value = spdy_be32(in.p + 4);

        if (id == SPDY_SETTING_MAX_STREAMS)
            h->peer_max_streams = value;
        if (id == SPDY_SETTING_WINDOW && h->config.has_windows &&
            set_initial_window(h, value, e) < 0)
            return -1;
    }
    return 0;
}

static int on_window_update(struct spdy *h, struct span in, struct err *e)
{
    uint32_t id = spdy_be32(in.p) & SPDY_ID_MASK, n = spdy_be32(in.p + 4) & SPDY_ID_MASK;
    struct spdy_stream *s = id ? spdy_find(h, id) : NULL;

    if (!h->config.has_windows)
        return 0;
    if (id == 0) {
        if (h->send_window + n > SPDY_WINDOW_MAX)
            return bad(h, e, "the connection's window grew beyond the largest");
        h->send_window += n;
        pump_all(h);
        return 0;
    }
    if (!s || s->is_closed)
        return 0;
    if (s->send_window + n > SPDY_WINDOW_MAX) {
        spdy_reset(s, SPDY_FLOW_CONTROL_ERROR);
        return 0;
    }
    s->send_window += n;
    pump_all(h);
    return 0;
}

static void on_ping(struct spdy *h, struct span in)
{
    uint32_t id = spdy_be32(in.p);

    if (is_peers_id(h, id))
        spdy_write_u32s(h, SPDY_PING, &id, 1);
    else if (h->events->on_pong && id < h->next_ping)
        h->events->on_pong(h->ctx, id);
}

/* Streams of ours that the peer will not serve are over. */
static void on_goaway(struct spdy *h, struct span in)
{
    uint32_t last = spdy_be32(in.p) & SPDY_ID_MASK;

    h->has_peer_goaway = true;
    for (size_t i = 0; i < SPDY_BUCKETS; i++) {
        for (struct spdy_stream *s = h->buckets[i]; s; s = s->next) {
            if (!s->is_peers && s->id > last)
                spdy_stream_close(s, SPDY_REFUSED_STREAM);
        }
    }
    if (h->events->on_goaway)
        h->events->on_goaway(h->ctx, last, spdy_be32(in.p + 4));
}

/* What is known of a type: its shortest payload, and whether it has no longer one. */
static const struct kind {
    uint16_t type;
    uint8_t min;
    bool is_exact;
} kinds[] = {
    { SPDY_SYN_STREAM, 10, false }, { SPDY_SYN_REPLY, 4, false },    { SPDY_RST_STREAM, 8, true },
    { SPDY_SETTINGS, 4, false },    { SPDY_PING, 4, true },          { SPDY_GOAWAY, 8, true },
    { SPDY_HEADERS, 4, false },     { SPDY_WINDOW_UPDATE, 8, true },
};

static int end_control(struct spdy *h, struct err *e)
{
    OWN(http_head_done) struct http_head head;
    struct span in = buf_span(&h->control);

    http_head_init(&head, 2 * (size_t)h->config.head_max_bytes, h->config.head_max_fields);
    switch ((enum spdy_type)h->type) {
    case SPDY_SYN_STREAM:
        return on_syn_stream(h, in, &head, e);
    case SPDY_SYN_REPLY:
        return on_syn_reply(h, in, &head, e);
    case SPDY_HEADERS:
        return on_headers(h, in, &head, e);
    case SPDY_SETTINGS:
        return on_settings(h, in, e);
    case SPDY_WINDOW_UPDATE:
        return on_window_update(h, in, e);
    case SPDY_RST_STREAM:
        on_rst(h, in);
        return 0;
    case SPDY_PING:
        on_ping(h, in);
        return 0;
    case SPDY_GOAWAY:
        on_goaway(h, in);
        return 0;
    }
    return 0;
}

static int begin_control(struct spdy *h, struct err *e)
{
    uint16_t version = (uint16_t)((h->head[0] & 0x7f) << 8 | h->head[1]);

    h->type = (uint16_t)(h->head[2] << 8 | h->head[3]);
    h->state = SPDY_AT_SKIP; /* a type that nobody knows */
    if (version != VERSION)
        return bad(h, e, "frame of another version of SPDY");
    EACH(k, kinds) {
        if (k->type != h->type)
            continue;
        if (h->left < k->min || (k->is_exact && h->left != k->min))
            return bad(h, e, "control frame of a wrong length");
        if (h->left > h->control.max) {
            (void)err_set(e, ERR_LIMIT, "control frame of %zu bytes; at most %zu", h->left,
                          h->control.max);
            return spdy_lose(h, SPDY_PROTOCOL_ERROR);
        }
        buf_clear(&h->control);
        h->state = SPDY_AT_CONTROL;
    }
    return 0;
}

static int take_head(struct spdy *h, struct span *in, struct err *e)
{
    size_t n = MIN(in->n, sizeof h->head - h->head_n);

    if (n == 0)
        return 0;
    memcpy(h->head + h->head_n, in->p, n);
    h->head_n += n;
    *in = span_skip(*in, n);
    if (h->head_n < sizeof h->head)
        return 0;
    h->head_n = 0;
    h->flags = h->head[4];
    h->left = spdy_be32(h->head + 4) & 0xffffff;
    return h->head[0] & 0x80 ? begin_control(h, e) : begin_data(h, e);
}

static int take_control(struct spdy *h, struct span *in, struct err *e)
{
    struct span piece = span_slice(*in, 0, h->left);
    int got;

    if (buf_add(&h->control, piece, e) < 0)
        return spdy_lose(h, SPDY_PROTOCOL_ERROR); /* begin_control saw that it fits */
    *in = span_skip(*in, piece.n);
    h->left -= piece.n;
    if (h->left)
        return 0;
    h->state = SPDY_AT_HEAD;
    got = end_control(h, e);
    if (got == 0 && h->control.cap > 1024)
        buf_done(&h->control); /* a connection may idle for hours */
    return got;
}

/* One step. A frame without bytes behind its head takes two. */
static int step(struct spdy *h, struct span *in, struct err *e)
{
    size_t n;

    switch (h->state) {
    case SPDY_AT_HEAD:
        return take_head(h, in, e);
    case SPDY_AT_CONTROL:
        return take_control(h, in, e);
    case SPDY_AT_DATA:
        take_data(h, in);
        return 0;
    case SPDY_AT_SKIP:
        n = MIN(in->n, h->left);
        *in = span_skip(*in, n);
        h->left -= n;
        if (h->left == 0)
            h->state = SPDY_AT_HEAD;
        return 0;
    case SPDY_AT_LOST:
        break;
    }
    return err_set(e, ERR_PROTOCOL, "the connection is lost");
}

int spdy_feed(struct spdy *h, struct span in, struct err *e)
{
    do {
        if (step(h, &in, e) < 0)
            return -1;
    } while (in.n || (h->state != SPDY_AT_HEAD && h->state != SPDY_AT_LOST && h->left == 0));
    return 0;
}
