/* port-forward over SPDY, straight or in a WebSocket's messages: two streams of the client for each connection, `data`
 * and `error`, that belong together by their requestid. */
#include "podstream/forward.h"

#include "base/log.h"
#include "base/str.h"
#include "podstream/spdy_link.h"

#define ID_MAX_BYTES 32 /* clients count from 0 */

struct forward_spdy;

/* One connection to be, or that is. */
struct pair {
    struct pair *next;
    struct forward_spdy *owner;
    char id[ID_MAX_BYTES + 1];
    uint16_t port;
    struct spdy_stream *data, *error; /* NULL until it came, and once it closed */
    bool has_data, has_error;
    struct forward forward;
    bool is_open; /* the forward is */
    struct ev_timer patience;
};

struct forward_spdy {
    struct session session;
    struct spdy_link *link;
    struct pair *pairs;
    size_t stalled; /* pairs whose pod does not take what came: nothing more is read */
};

/* ---- pairs ---- */

static void unstall(struct pair *p);

static void pair_free(struct pair *p)
{
    struct pair **at = &p->owner->pairs;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    ev_timer_stop(p->owner->session.loop, &p->patience);
    if (p->is_open)
        forward_done(&p->forward);
    unstall(p);
    ev_free_later(p->owner->session.loop, p, free);
}

/* Nothing left that could speak of it. */
static void free_if_over(struct pair *p)
{
    if (!p->data && !p->error && (!p->is_open || p->forward.is_over))
        pair_free(p);
}

static void finish_streams(struct pair *p, struct span message)
{
    if (p->data)
        spdy_finish(p->data);
    if (p->error && message.n)
        spdy_send(p->error, message);
    if (p->error)
        spdy_finish(p->error);
    spdy_link_flush(p->owner->link);
}

/* ---- from the pod ---- */

static struct pair *of(struct forward *f)
{
    return CONTAINER(f, struct pair, forward);
}

static void on_pod_data(struct forward *f, struct span bytes)
{
    struct pair *p = of(f);

    if (p->data)
        spdy_send(p->data, bytes);
    spdy_link_flush(p->owner->link);
    if (spdy_link_is_full(p->owner->link))
        forward_pause(f, true);
}

/* The client waits for the end of the error stream before it lets its connection go. */
static void on_pod_end(struct forward *f)
{
    finish_streams(of(f), SPAN_NONE);
}

/* The pod takes more again, or will never. */
static void unstall(struct pair *p)
{
    struct forward_spdy *w = p->owner;

    if (!p->forward.is_stalled)
        return;
    p->forward.is_stalled = false;
    if (--w->stalled == 0)
        spdy_link_want_read(w->link, true);
}

static void on_pod_drain(struct forward *f)
{
    unstall(of(f));
}

static void on_pod_over(struct forward *f, const struct err *why)
{
    struct pair *p = of(f);

    unstall(p);
    finish_streams(p, why ? span_cstr(why->msg) : SPAN_NONE);
    free_if_over(p);
}

static const struct forward_ops forward_ops = { on_pod_data, on_pod_end, on_pod_drain,
                                                on_pod_over };

/* ---- from the client ---- */

static void pair_too_late(void *ctx)
{
    struct pair *p = ctx;

    if (p->data)
        spdy_reset(p->data, SPDY_CANCEL);
    if (p->error)
        spdy_reset(p->error, SPDY_CANCEL);
    spdy_link_flush(p->owner->link);
}

static struct pair *find_pair(struct forward_spdy *w, const char *id)
{
    struct pair *p = w->pairs;

    while (p && !span_is(span_cstr(p->id), id))
        p = p->next;
    return p;
}

static struct pair *new_pair(struct forward_spdy *w, const char *id, uint16_t port)
{
    struct pair *p = NEW(struct pair);

    p->owner = w;
    p->port = port;
    (void)snprintf(p->id, sizeof p->id, "%s", id);
    p->next = w->pairs;
    w->pairs = p;
    ev_timer_start(w->session.loop, &p->patience, POD_STREAMS_TIMEOUT_MS, pair_too_late, p);
    return p;
}

/* Clients of old send no requestid: the data stream follows its error stream at once. */
static bool read_id(struct spdy_stream *s, const struct http_head *head, bool is_data,
                    char id[ID_MAX_BYTES + 1])
{
    struct span given = http_head_get(head, "requestid");

    if (given.n > ID_MAX_BYTES)
        return false;
    if (given.n)
        (void)snprintf(id, ID_MAX_BYTES + 1, "%.*s", SPAN_ARG(given));
    else
        (void)snprintf(id, ID_MAX_BYTES + 1, "#%u", is_data ? spdy_id(s) - 2 : spdy_id(s));
    return true;
}

/* -1: no stream of ours. */
static int place_stream(struct forward_spdy *w, struct spdy_stream *s, const struct http_head *head)
{
    struct span type = http_head_get(head, "streamtype");
    bool is_data = span_is(type, "data"), is_error = span_is(type, "error");
    char id[ID_MAX_BYTES + 1];
    struct pair *p;
    struct err e;
    uint64_t port;

    if ((!is_data && !is_error) || !read_id(s, head, is_data, id) ||
        !str_u64(http_head_get(head, "port"), UINT16_MAX, &port) || port == 0)
        return -1;
    p = find_pair(w, id);
    if (p && (p->port != port || (is_data ? p->has_data : p->has_error)))
        return -1;
    if (spdy_reply(s, NULL, false, &e) < 0)
        return -1;
    if (!p)
        p = new_pair(w, id, (uint16_t)port);
    spdy_set_user(s, p);
    *(is_data ? &p->data : &p->error) = s;
    *(is_data ? &p->has_data : &p->has_error) = true;
    if (p->has_data && p->has_error) {
        ev_timer_stop(w->session.loop, &p->patience);
        p->is_open = true;
        forward_open(&p->forward, &w->session, p->port, &forward_ops);
    }
    return 0;
}

static void on_stream(void *ctx, struct spdy_stream *s, const struct http_head *head)
{
    if (place_stream(ctx, s, head) < 0)
        spdy_reset(s, SPDY_REFUSED_STREAM);
}

static void on_data(void *ctx, struct spdy_stream *s, struct span bytes)
{
    struct forward_spdy *w = ctx;
    struct pair *p = spdy_user(s);

    if (!p || s != p->data)
        return; /* nobody reads what comes on an error stream */
    if (!p->is_open) {
        spdy_reset(s, SPDY_PROTOCOL_ERROR); /* its error stream comes first */
        return;
    }
    forward_write(&p->forward, bytes);
    if (p->forward.is_stalled || !forward_is_full(&p->forward))
        return;
    p->forward.is_stalled = true;
    w->stalled++;
    spdy_link_want_read(w->link, false);
}

static void on_end(void *ctx, struct spdy_stream *s)
{
    struct pair *p = spdy_user(s);

    (void)ctx;
    if (p && s == p->data && p->is_open)
        forward_end(&p->forward);
}

/* A data stream that goes takes its connection along; how the client resets one when the pod has ended. */
static void on_close(void *ctx, struct spdy_stream *s, uint32_t status)
{
    struct forward_spdy *w = ctx;
    struct pair *p = spdy_user(s);

    if (!p)
        return;
    if (p->error == s)
        p->error = NULL;
    if (p->data == s) {
        p->data = NULL;
        if (p->is_open && !p->forward.is_over) {
            forward_done(&p->forward);
            unstall(p);
        }
        if (p->error && status != SPDY_OK)
            spdy_finish(p->error);
        spdy_link_flush(w->link);
    }
    free_if_over(p);
}

static void on_drain(void *ctx)
{
    struct forward_spdy *w = ctx;

    for (struct pair *p = w->pairs; p; p = p->next) {
        if (p->is_open)
            forward_pause(&p->forward, false);
    }
}

static void on_gone(void *ctx)
{
    struct forward_spdy *w = ctx;

    while (w->pairs)
        pair_free(w->pairs);
    session_done(&w->session);
    ev_free_later(w->session.loop, w, free);
}

static const struct spdy_link_events link_events = {
    .spdy = { .on_stream = on_stream, .on_data = on_data, .on_end = on_end, .on_close = on_close },
    .on_drain = on_drain,
    .on_gone = on_gone,
};

static void close_session(struct session *s)
{
    spdy_link_close(((struct forward_spdy *)s)->link);
}

void forward_spdy_open(const struct session_start *start, struct conn *conn, struct span rest)
{
    struct forward_spdy *w = NEW(struct forward_spdy);

    session_init(&w->session, start, close_session);
    w->link =
        spdy_link_open(conn, rest, start->protocol == SESSION_FORWARD_TUNNEL, &link_events, w);
}
