/* port-forward over WebSocket channels, the older way: of the i-th port of the request channel 2i has the data and 2i+1
 * the errors. Each channel begins with its port, low byte first. There is no way to end one side of a connection, and the
 * session ends with its last one. */
#include "podstream/forward.h"

#include "podstream/channels.h"

struct forward_ws;

struct port {
    struct forward_ws *owner;
    struct forward forward;
    unsigned i;
};

struct forward_ws {
    struct session session;
    struct channels *channels;
    size_t open, stalled;
    size_t count;
    struct port ports[POD_PORTS_MAX];
};

/* ---- from the pod ---- */

static struct port *of(struct forward *f)
{
    return CONTAINER(f, struct port, forward);
}

static void on_pod_data(struct forward *f, struct span bytes)
{
    struct port *p = of(f);

    for (; bytes.n; bytes = span_skip(bytes, POD_FRAME_MAX_BYTES))
        channels_send(p->owner->channels, 2 * p->i, span_slice(bytes, 0, POD_FRAME_MAX_BYTES));
    if (channels_is_full(p->owner->channels))
        forward_pause(f, true);
}

static void on_pod_end(struct forward *f)
{
    forward_end(f); /* the client cannot be told, only closed */
}

static void on_pod_drain(struct forward *f)
{
    struct port *p = of(f);

    if (!f->is_stalled)
        return;
    f->is_stalled = false;
    if (--p->owner->stalled == 0)
        channels_want_read(p->owner->channels, true);
}

static void on_pod_over(struct forward *f, const struct err *why)
{
    struct port *p = of(f);
    struct forward_ws *w = p->owner;

    on_pod_drain(f);
    if (why)
        channels_send(w->channels, 2 * p->i + 1, span_cstr(why->msg));
    if (--w->open == 0)
        channels_close(w->channels, WS_NORMAL, "");
}

static const struct forward_ops forward_ops = { on_pod_data, on_pod_end, on_pod_drain,
                                                on_pod_over };

/* ---- from the client ---- */

static void on_bytes(void *ctx, unsigned channel, struct span bytes)
{
    struct forward_ws *w = ctx;
    struct forward *f;

    if (channel % 2 || channel / 2 >= w->count)
        return; /* nobody reads these */
    f = &w->ports[channel / 2].forward;
    forward_write(f, bytes);
    if (f->is_stalled || !forward_is_full(f))
        return;
    f->is_stalled = true;
    w->stalled++;
    channels_want_read(w->channels, false);
}

static void on_drain(void *ctx)
{
    struct forward_ws *w = ctx;

    for (size_t i = 0; i < w->count; i++)
        forward_pause(&w->ports[i].forward, false);
}

static void on_gone(void *ctx)
{
    struct forward_ws *w = ctx;

    for (size_t i = 0; i < w->count; i++)
        forward_done(&w->ports[i].forward);
    session_done(&w->session);
    ev_free_later(w->session.loop, w, free);
}

static const struct channels_events channels_events = { .on_bytes = on_bytes,
                                                        .on_drain = on_drain,
                                                        .on_gone = on_gone };

static void close_session(struct session *s)
{
    channels_close(((struct forward_ws *)s)->channels, WS_GOING_AWAY, "the server shuts down");
}

void forward_ws_open(const struct session_start *start, struct conn *conn, struct span rest)
{
    struct forward_ws *w = NEW(struct forward_ws);

    session_init(&w->session, start, close_session);
    w->channels = channels_open(conn, rest, start->protocol == SESSION_FORWARD_CHANNELS_BASE64,
                                &channels_events, w);
    w->count = w->open = w->session.req->port_count;
    for (unsigned i = 0; i < w->count; i++) {
        uint16_t port = w->session.req->ports[i];
        const uint8_t first[2] = { (uint8_t)port, (uint8_t)(port >> 8) };

        channels_send(w->channels, 2 * i, span_of(first, sizeof first));
        channels_send(w->channels, 2 * i + 1, span_of(first, sizeof first));
        w->ports[i].owner = w;
        w->ports[i].i = i;
        forward_open(&w->ports[i].forward, &w->session, port, &forward_ops);
    }
}
