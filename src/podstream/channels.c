#include "podstream/channels.h"

#include "base/str.h"
#include "podstream/limits.h"

struct channels {
    struct ev_loop *loop;
    struct ws_link *link;
    const struct channels_events *events;
    void *ctx;
    bool is_base64;
    unsigned channel; /* of the message under way */
    struct buf text;  /* base64: the message under way */
};

static void take_base64(struct channels *c, const struct ws *w, struct span piece)
{
    OWN(buf_done) struct buf plain = BUF_INIT(POD_BASE64_MAX_BYTES);
    struct err e;

    if (buf_add(&c->text, piece, &e) < 0) { /* the engine's ceiling is the same */
        ws_link_close(c->link, WS_TOO_BIG, e.msg);
        return;
    }
    if (!w->is_last || c->text.n == 0)
        return;
    c->channel = (uint8_t)(c->text.p[0] - '0');
    if (str_base64_decode(span_skip(buf_span(&c->text), 1), &plain, &e) < 0) {
        ws_link_close(c->link, WS_BAD_DATA, "not base64");
        return;
    }
    buf_done(&c->text);
    c->events->on_bytes(c->ctx, c->channel, buf_span(&plain));
}

static void on_piece(void *ctx, const struct ws *w, struct span piece)
{
    struct channels *c = ctx;

    if (c->is_base64) {
        take_base64(c, w, piece);
        return;
    }
    if (w->is_first && piece.n == 0)
        return; /* not even a channel */
    if (w->is_first) {
        c->channel = piece.p[0];
        piece = span_skip(piece, 1);
    }
    c->events->on_bytes(c->ctx, c->channel, piece);
}

static void on_drain(void *ctx)
{
    struct channels *c = ctx;

    c->events->on_drain(c->ctx);
}

static void on_echo(void *ctx)
{
    struct channels *c = ctx;

    c->events->on_echo(c->ctx);
}

static void channels_free(void *obj)
{
    struct channels *c = obj;

    buf_done(&c->text);
    free(c);
}

static void on_gone(void *ctx)
{
    struct channels *c = ctx;

    c->events->on_gone(c->ctx);
    ev_free_later(c->loop, c, channels_free);
}

static const struct ws_link_events link_events = {
    .on_piece = on_piece, .on_drain = on_drain, .on_echo = on_echo, .on_gone = on_gone
};

struct channels *channels_open(struct conn *conn, struct span rest, bool is_base64,
                               const struct channels_events *events, void *ctx)
{
    struct channels *c = NEW(struct channels);

    c->loop = conn_loop(conn);
    c->events = events;
    c->ctx = ctx;
    c->is_base64 = is_base64;
    c->text.max = POD_BASE64_MAX_BYTES;
    c->link = ws_link_open(conn, rest, is_base64 ? POD_BASE64_MAX_BYTES : POD_MESSAGE_MAX_BYTES,
                           &link_events, c);
    return c;
}

void channels_send(struct channels *c, unsigned channel, struct span bytes)
{
    OWN(buf_done) struct buf coded = BUF_INIT(bytes.n / 3 * 4 + 8);
    struct err e;

    if (!c->is_base64) {
        ws_link_send(c->link, WS_BINARY, (int)channel, bytes);
        return;
    }
    (void)str_base64_encode(bytes, &coded, &e); /* sized for it */
    ws_link_send(c->link, WS_TEXT, '0' + (int)channel, buf_span(&coded));
}

bool channels_is_full(const struct channels *c)
{
    return ws_link_is_full(c->link);
}

void channels_want_read(struct channels *c, bool is_wanted)
{
    ws_link_want_read(c->link, is_wanted);
}

void channels_ask(struct channels *c)
{
    ws_link_ask(c->link);
}

void channels_close(struct channels *c, enum ws_code code, const char *reason)
{
    ws_link_close(c->link, code, reason);
}
