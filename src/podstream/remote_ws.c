/* exec and attach over WebSocket: channels for stdin, stdout, stderr, the status and the terminal's size. */
#include "podstream/remote.h"

#include "podstream/channels.h"
#include "podstream/limits.h"

enum channel {
    CHANNEL_STDIN,
    CHANNEL_STDOUT,
    CHANNEL_STDERR,
    CHANNEL_ERROR,
    CHANNEL_RESIZE,
    CHANNEL_CLOSE = 255, /* v5: the next byte names the channel that ends */
};

struct remote_ws {
    struct session session;
    struct remote remote;
    struct channels *channels;
    bool has_close_channel;
    bool has_output; /* something was said that might not have been read */
    unsigned asked;  /* how often whether all was read, at the end */
    struct buf status;
    struct ev_task begin;
};

static struct remote_ws *of(struct remote *r)
{
    return CONTAINER(r, struct remote_ws, remote);
}

/* ---- to the client ---- */

static void output(struct remote *r, enum pod_output which, struct span piece)
{
    of(r)->has_output = true;
    channels_send(of(r)->channels, which == POD_STDOUT ? CHANNEL_STDOUT : CHANNEL_STDERR, piece);
}

static bool is_full(struct remote *r)
{
    return channels_is_full(of(r)->channels);
}

static void resume(struct remote *r)
{
    channels_want_read(of(r)->channels, true);
}

/* Clients look at one channel after the other, and stop when they see the close: release 37 of the Python client loses output
 * that came with it in between. So they are asked whether they have read all, and have a moment to go on from that look to the
 * next; and again, as the machine may have stopped them just there. */
static void say_end(struct remote_ws *w)
{
    if (w->has_output && w->asked < POD_END_ASKS) {
        w->asked++;
        channels_ask(w->channels);
        return;
    }
    if (w->status.n)
        channels_send(w->channels, CHANNEL_ERROR, buf_span(&w->status));
    channels_close(w->channels, WS_NORMAL, "");
}

static void finish(struct remote *r, struct span status)
{
    struct remote_ws *w = of(r);
    struct err e;

    w->status.max = status.n;
    (void)buf_add(&w->status, status, &e); /* sized for it */
    channels_want_read(w->channels, true); /* also where input was more than the process took */
    say_end(w);
}

static const struct remote_ops ops = { output, is_full, resume, finish };

/* ---- from the client ---- */

static void on_bytes(void *ctx, unsigned channel, struct span bytes)
{
    struct remote_ws *w = ctx;

    if (channel == CHANNEL_STDIN)
        remote_stdin(&w->remote, bytes);
    else if (channel == CHANNEL_RESIZE)
        remote_resize(&w->remote, bytes);
    else if (channel == CHANNEL_CLOSE && w->has_close_channel && bytes.n &&
             bytes.p[0] == CHANNEL_STDIN)
        remote_stdin_end(&w->remote);
    if (remote_is_full(&w->remote))
        channels_want_read(w->channels, false);
}

static void on_drain(void *ctx)
{
    struct remote_ws *w = ctx;

    remote_drained(&w->remote);
}

static void on_echo(void *ctx)
{
    say_end(ctx);
}

static void free_all(void *obj)
{
    struct remote_ws *w = obj;

    buf_done(&w->status);
    free(w);
}

static void on_gone(void *ctx)
{
    struct remote_ws *w = ctx;

    ev_post_cancel(&w->begin);
    remote_done(&w->remote);
    session_done(&w->session);
    ev_free_later(w->session.loop, w, free_all);
}

static const struct channels_events channels_events = { on_bytes, on_drain, on_echo, on_gone };

static void close_session(struct session *s)
{
    channels_close(((struct remote_ws *)s)->channels, WS_GOING_AWAY, "the server shuts down");
}

static void begin(void *ctx)
{
    struct remote_ws *w = ctx;

    remote_start(&w->remote);
}

void remote_ws_open(const struct session_start *start, struct conn *conn, struct span rest)
{
    struct remote_ws *w = NEW(struct remote_ws);
    enum session_protocol p = start->protocol;
    bool is_base64 = p == SESSION_CHANNELS_TEXT_BASE64 || p == SESSION_CHANNELS_V4_BASE64;

    session_init(&w->session, start, close_session);
    remote_init(&w->remote, &w->session, &ops);
    w->has_close_channel = p == SESSION_CHANNELS_V5;
    w->remote.keeps_characters = true;
    w->remote.has_status_object = p != SESSION_CHANNELS_TEXT && p != SESSION_CHANNELS_TEXT_BASE64;
    w->channels = channels_open(conn, rest, is_base64, &channels_events, w);
    ev_post(w->session.loop, &w->begin, begin, w);
}
