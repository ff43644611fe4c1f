#include "http/spdy_impl.h"

#define OUT_MAX_BYTES                                                                              \
    (16 << 20) /* between two pulls; an owner that pulls after each verb stays far below */
#define FRAME_MAX_BYTES (32 * 1024) /* of data we send: other streams get their turn */
#define CONTROL_BIT     0x80
#define VERSION         3

uint32_t spdy_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- frames out ---- */

/* What does not fit is lost, and with it the sense of the stream: the connection ends. */
static void out_add(struct spdy *h, struct span bytes)
{
    struct err e;

    if (buf_add(&h->out, bytes, &e) < 0)
        h->state = SPDY_AT_LOST;
}

static void put_be(uint8_t *p, size_t n, uint64_t v)
{
    while (n--)
        *p++ = (uint8_t)(v >> (8 * n));
}

static void write_control(struct spdy *h, enum spdy_type type, uint8_t flags, struct span payload)
{
    uint8_t head[SPDY_FRAME_HEAD_BYTES] = { CONTROL_BIT, VERSION, 0, (uint8_t)type, flags };

    put_be(head + 5, 3, payload.n);
    out_add(h, span_of(head, sizeof head));
    out_add(h, payload);
}

void spdy_write_u32s(struct spdy *h, enum spdy_type type, const uint32_t *values, size_t count)
{
    uint8_t payload[3 * 4];

    assert(count <= sizeof payload / 4);
    for (size_t i = 0; i < count; i++)
        put_be(payload + 4 * i, 4, values[i]);
    write_control(h, type, 0, span_of(payload, 4 * count));
}

void spdy_write_rst(struct spdy *h, uint32_t id, uint32_t status)
{
    const uint32_t values[] = { id, status };

    spdy_write_u32s(h, SPDY_RST_STREAM, values, LEN(values));
}

static void write_data(struct spdy_stream *s, struct span bytes, bool is_end)
{
    uint8_t head[SPDY_FRAME_HEAD_BYTES];

    put_be(head, 4, s->id);
    head[4] = is_end ? SPDY_FLAG_FIN : 0;
    put_be(head + 5, 3, bytes.n);
    out_add(s->h, span_of(head, sizeof head));
    out_add(s->h, bytes);
}

/* SYN_STREAM and SYN_REPLY: `fixed` bytes, then the head. Nothing goes out when it cannot be packed. */
static int write_head(struct spdy *h, enum spdy_type type, struct span fixed,
                      const struct http_head *head, bool is_end, struct err *e)
{
    OWN(buf_done) struct buf payload = BUF_INIT(2 * (size_t)h->config.head_max_bytes);

    if (buf_add(&payload, fixed, e) < 0)
        return -1;
    {
        OWN(buf_done) struct buf block = BUF_INIT(2 * (size_t)h->config.head_max_bytes);

        if (spdy_pack(h->packer, head, &block, e) < 0 || buf_add(&payload, buf_span(&block), e) < 0)
            return -1;
    }
    write_control(h, type, is_end ? SPDY_FLAG_FIN : 0, buf_span(&payload));
    return 0;
}

int spdy_lose(struct spdy *h, uint32_t status)
{
    const uint32_t values[] = { h->last_peer_id, status };

    if (h->state != SPDY_AT_LOST)
        spdy_write_u32s(h, SPDY_GOAWAY, values, LEN(values));
    h->state = SPDY_AT_LOST;
    h->has_goaway = true;
    buf_done(&h->control);
    return -1;
}

/* ---- life ---- */

static void begin_windows(struct spdy *h)
{
    const uint32_t grow[] = { 0, h->config.conn_window - SPDY_WINDOW_BYTES };
    uint8_t settings[12] = { 0 };

    h->recv_window = MAX(h->config.conn_window, (uint32_t)SPDY_WINDOW_BYTES);
    put_be(settings, 4, 1);
    settings[7] = SPDY_SETTING_WINDOW;
    put_be(settings + 8, 4, h->config.stream_window);
    write_control(h, SPDY_SETTINGS, 0, span_of(settings, sizeof settings));
    if (h->config.conn_window > SPDY_WINDOW_BYTES)
        spdy_write_u32s(h, SPDY_WINDOW_UPDATE, grow, LEN(grow));
}

struct spdy *spdy_new(const struct spdy_config *config, const struct spdy_events *events, void *ctx)
{
    struct spdy *h = NEW(struct spdy);

    h->config = *config;
    h->events = events;
    h->ctx = ctx;
    h->packer = spdy_packer_new();
    h->unpacker = spdy_unpacker_new();
    h->closed_end = &h->closed;
    h->out.max = OUT_MAX_BYTES;
    h->control.max = (size_t)config->head_max_bytes + 1024;
    h->next_id = config->role == SPDY_CLIENT ? 1 : 2;
    h->next_ping = h->next_id;
    h->peer_max_streams = UINT32_MAX;
    h->peer_initial_window = h->send_window = SPDY_WINDOW_BYTES;
    if (config->has_windows)
        begin_windows(h);
    return h;
}

static void stream_free(struct spdy_stream *s)
{
    struct spdy_stream **at = &s->h->buckets[s->id / 2 % SPDY_BUCKETS];

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->h->count--;
    buf_done(&s->queue);
    free(s);
}

static void tell_closed(struct spdy *h)
{
    while (h->closed) {
        struct spdy_stream *s = h->closed;

        h->closed = s->next_closed;
        if (!h->closed)
            h->closed_end = &h->closed;
        h->events->on_close(h->ctx, s, s->status);
        stream_free(s);
    }
}

void spdy_free(struct spdy *h)
{
    if (!h)
        return;
    h->state = SPDY_AT_LOST;
    for (size_t i = 0; i < SPDY_BUCKETS; i++) {
        for (struct spdy_stream *s = h->buckets[i]; s; s = s->next)
            spdy_stream_close(s, SPDY_CANCEL);
    }
    tell_closed(h);
    spdy_packer_free(h->packer);
    spdy_unpacker_free(h->unpacker);
    buf_done(&h->out);
    buf_done(&h->control);
    free(h);
}

struct spdy_stream *spdy_find(struct spdy *h, uint32_t id)
{
    struct spdy_stream *s = h->buckets[id / 2 % SPDY_BUCKETS];

    while (s && s->id != id)
        s = s->next;
    return s;
}

struct spdy_stream *spdy_stream_new(struct spdy *h, uint32_t id, bool is_peers)
{
    struct spdy_stream *s = NEW(struct spdy_stream), **bucket = &h->buckets[id / 2 % SPDY_BUCKETS];

    s->h = h;
    s->id = id;
    s->is_peers = is_peers;
    s->queue.max = SIZE_MAX / 2; /* callers stop at spdy_is_full() */
    s->send_window = h->peer_initial_window;
    s->recv_window = h->config.stream_window;
    s->next = *bucket;
    *bucket = s;
    h->count++;
    is_peers ? h->peers_open++ : h->ours_open++;
    return s;
}

void spdy_stream_close(struct spdy_stream *s, uint32_t status)
{
    struct spdy *h = s->h;

    if (s->is_closed)
        return;
    s->is_closed = true;
    s->status = status;
    buf_done(&s->queue);
    s->is_peers ? h->peers_open-- : h->ours_open--;
    *h->closed_end = s;
    h->closed_end = &s->next_closed;
    if (h->config.has_windows && s->unconsumed) /* the connection's window is not the stream's */
        spdy_consume(s, s->unconsumed);
}

void spdy_stream_settle(struct spdy_stream *s)
{
    if (s->has_in_end && s->has_out_end)
        spdy_stream_close(s, SPDY_OK);
}

/* ---- verbs ---- */

/* Without windows nothing is ever in the queue. */
void spdy_stream_pump(struct spdy_stream *s)
{
    struct spdy *h = s->h;
    size_t used = 0;

    if (s->is_closed || s->has_out_end)
        return;
    while (used < s->queue.n) {
        int64_t room =
            h->config.has_windows ? MIN(s->send_window, h->send_window) : FRAME_MAX_BYTES;
        size_t n = MIN(s->queue.n - used, (size_t)FRAME_MAX_BYTES);

        if (room <= 0)
            break;
        n = MIN(n, (size_t)room);
        write_data(s, span_slice(buf_span(&s->queue), used, used + n), false);
        used += n;
        s->send_window -= (int64_t)n;
        h->send_window -= (int64_t)n;
    }
    buf_consume(&s->queue, used);
    if (s->queue.n == 0 && s->queue.cap > FRAME_MAX_BYTES)
        buf_done(&s->queue);
    if (s->has_finish && s->queue.n == 0) {
        write_data(s, SPAN_NONE, true);
        s->has_out_end = true;
        spdy_stream_settle(s);
    }
}

static int judge_open(const struct spdy *h, struct err *e)
{
    if (h->state == SPDY_AT_LOST || h->has_peer_goaway || h->has_goaway ||
        h->next_id > SPDY_ID_MASK)
        return err_set(e, ERR_UNAVAILABLE, "the connection takes no more streams");
    if (h->ours_open >= h->peer_max_streams)
        return err_set(e, ERR_BUSY, "the peer takes no more than %u streams", h->peer_max_streams);
    return 0;
}

int spdy_open(struct spdy *h, const struct http_head *head, bool is_end, void *user,
              struct spdy_stream **ret, struct err *e)
{
    uint8_t fixed[10] = { 0 }; /* id, no associated stream, highest priority, no slot */
    struct spdy_stream *s;

    if (judge_open(h, e) < 0)
        return -1;
    put_be(fixed, 4, h->next_id);
    if (write_head(h, SPDY_SYN_STREAM, span_of(fixed, sizeof fixed), head, is_end, e) < 0)
        return -1;
    s = spdy_stream_new(h, h->next_id, false);
    h->next_id += 2;
    s->user = user;
    s->has_finish = s->has_out_end = is_end;
    *ret = s;
    return 0;
}

int spdy_reply(struct spdy_stream *s, const struct http_head *head, bool is_end, struct err *e)
{
    uint8_t fixed[4];

    if (s->is_closed)
        return err_set(e, ERR_CLOSED, "the stream is closed");
    assert(s->is_peers && !s->has_reply);
    put_be(fixed, 4, s->id);
    if (write_head(s->h, SPDY_SYN_REPLY, span_of(fixed, sizeof fixed), head, is_end, e) < 0)
        return -1;
    s->has_reply = true;
    if (is_end) {
        s->has_finish = s->has_out_end = true;
        spdy_stream_settle(s);
    }
    return 0;
}

void spdy_send(struct spdy_stream *s, struct span bytes)
{
    struct err e;

    if (s->is_closed || s->has_finish || bytes.n == 0)
        return;
    for (; !s->h->config.has_windows && bytes.n; bytes = span_skip(bytes, FRAME_MAX_BYTES))
        write_data(s, span_slice(bytes, 0, FRAME_MAX_BYTES), false);
    if (buf_add(&s->queue, bytes, &e) < 0)
        return; /* no memory is that large */
    spdy_stream_pump(s);
    s->was_full |= spdy_is_full(s);
}

void spdy_finish(struct spdy_stream *s)
{
    if (s->is_closed || s->has_finish)
        return;
    s->has_finish = true;
    spdy_stream_pump(s);
}

void spdy_reset(struct spdy_stream *s, uint32_t status)
{
    if (s->is_closed)
        return;
    s->is_reset = true;
    spdy_write_rst(s->h, s->id, status);
    spdy_stream_close(s, status);
}

/* Credit goes out when half a window has gathered: a frame for every read would double the traffic. */
void spdy_consume(struct spdy_stream *s, size_t n)
{
    struct spdy *h = s->h;
    uint32_t credit = (uint32_t)MIN(n, (size_t)s->unconsumed);

    if (!h->config.has_windows)
        return;
    s->unconsumed -= credit;
    s->consumed += credit;
    h->consumed += credit;
    if (!s->is_closed && !s->has_in_end && s->consumed >= h->config.stream_window / 2) {
        const uint32_t values[] = { s->id, s->consumed };

        spdy_write_u32s(h, SPDY_WINDOW_UPDATE, values, LEN(values));
        s->recv_window += s->consumed;
        s->consumed = 0;
    }
    if (h->consumed >= MAX(h->config.conn_window, (uint32_t)SPDY_WINDOW_BYTES) / 2) {
        const uint32_t values[] = { 0, h->consumed };

        spdy_write_u32s(h, SPDY_WINDOW_UPDATE, values, LEN(values));
        h->recv_window += h->consumed;
        h->consumed = 0;
    }
}

void spdy_pull(struct spdy *h, struct buf *out)
{
    assert(out->n == 0);
    tell_closed(h);
    out->max = OUT_MAX_BYTES;
    buf_move(out, &h->out);
}

bool spdy_wants_pull(const struct spdy *h)
{
    return h->out.n > 0 || h->closed;
}

bool spdy_is_full(const struct spdy_stream *s)
{
    return s->queue.n >= SPDY_SEND_HIGH_BYTES;
}

void spdy_set_user(struct spdy_stream *s, void *user)
{
    s->user = user;
}

void *spdy_user(const struct spdy_stream *s)
{
    return s->user;
}

struct spdy *spdy_of(const struct spdy_stream *s)
{
    return s->h;
}

uint32_t spdy_id(const struct spdy_stream *s)
{
    return s->id;
}

size_t spdy_stream_count(const struct spdy *h)
{
    return h->count;
}

uint32_t spdy_ping(struct spdy *h)
{
    uint32_t id = h->next_ping;

    h->next_ping += 2;
    spdy_write_u32s(h, SPDY_PING, &id, 1);
    return id;
}

void spdy_goaway(struct spdy *h, uint32_t status)
{
    const uint32_t values[] = { h->last_peer_id, status };

    if (h->has_goaway)
        return;
    h->has_goaway = true;
    spdy_write_u32s(h, SPDY_GOAWAY, values, LEN(values));
}
