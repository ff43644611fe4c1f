/* exec and attach over SPDY: one stream for each of error, stdin, stdout, stderr and resize, all made by the client. The
 * command starts when all that the request speaks of have come. */
#include "podstream/remote.h"

#include "base/log.h"
#include "podstream/spdy_link.h"

enum part { PART_ERROR, PART_STDIN, PART_STDOUT, PART_STDERR, PART_RESIZE, PART_COUNT };

static const char *const part_names[PART_COUNT] = { "error", "stdin", "stdout", "stderr",
                                                    "resize" };

struct remote_spdy {
    struct session session;
    struct remote remote;
    struct spdy_link *link;
    struct spdy_stream *parts[PART_COUNT]; /* NULL until it came, and once it closed */
    bool has_come[PART_COUNT];
    bool has_resize; /* of this version */
    struct ev_timer patience;
};

static struct remote_spdy *of(struct remote *r)
{
    return CONTAINER(r, struct remote_spdy, remote);
}

/* ---- to the client ---- */

static void output(struct remote *r, enum pod_output which, struct span piece)
{
    struct remote_spdy *w = of(r);
    struct spdy_stream *s = w->parts[which == POD_STDOUT ? PART_STDOUT : PART_STDERR];

    if (s)
        spdy_send(s, piece);
    spdy_link_flush(w->link);
}

static bool is_full(struct remote *r)
{
    return spdy_link_is_full(of(r)->link);
}

static void resume(struct remote *r)
{
    spdy_link_want_read(of(r)->link, true);
}

static void finish(struct remote *r, struct span status)
{
    struct remote_spdy *w = of(r);

    if (w->parts[PART_ERROR])
        spdy_send(w->parts[PART_ERROR], status);
    for (int i = 0; i < PART_COUNT; i++) {
        if (w->parts[i])
            spdy_finish(w->parts[i]);
    }
    spdy_link_close(w->link);
}

static const struct remote_ops ops = { output, is_full, resume, finish };

/* ---- from the client ---- */

/* Does the request speak of this stream? */
static bool is_wanted(const struct remote_spdy *w, enum part part)
{
    const struct pod_request *req = w->session.req;

    switch (part) {
    case PART_ERROR:
        return true;
    case PART_STDIN:
        return req->has_stdin;
    case PART_STDOUT:
        return req->has_stdout;
    case PART_STDERR:
        return req->has_stderr;
    case PART_RESIZE:
        return req->has_tty && w->has_resize;
    case PART_COUNT:
        break;
    }
    return false;
}

static void start_if_complete(struct remote_spdy *w)
{
    for (int i = 0; i < PART_COUNT; i++) {
        if (is_wanted(w, (enum part)i) && !w->has_come[i])
            return;
    }
    if (w->remote.has_started || w->remote.is_over)
        return;
    ev_timer_stop(w->session.loop, &w->patience);
    remote_start(&w->remote);
}

static void on_stream(void *ctx, struct spdy_stream *s, const struct http_head *head)
{
    struct remote_spdy *w = ctx;
    struct span type = http_head_get(head, "streamtype");
    struct err e;

    for (int i = 0; i < PART_COUNT; i++) {
        if (!span_is(type, part_names[i]) || !is_wanted(w, (enum part)i) || w->has_come[i])
            continue;
        if (spdy_reply(s, NULL, false, &e) < 0)
            break;
        w->parts[i] = s;
        w->has_come[i] = true;
        start_if_complete(w);
        return;
    }
    spdy_reset(s, SPDY_REFUSED_STREAM);
}

static void on_data(void *ctx, struct spdy_stream *s, struct span bytes)
{
    struct remote_spdy *w = ctx;

    if (s == w->parts[PART_STDIN])
        remote_stdin(&w->remote, bytes);
    else if (s == w->parts[PART_RESIZE])
        remote_resize(&w->remote, bytes);
    if (remote_is_full(&w->remote))
        spdy_link_want_read(w->link, false);
}

static void on_end(void *ctx, struct spdy_stream *s)
{
    struct remote_spdy *w = ctx;

    if (s == w->parts[PART_STDIN])
        remote_stdin_end(&w->remote);
}

static void on_close(void *ctx, struct spdy_stream *s, uint32_t status)
{
    struct remote_spdy *w = ctx;

    (void)status;
    if (s == w->parts[PART_STDIN])
        remote_stdin_end(&w->remote);
    for (int i = 0; i < PART_COUNT; i++) {
        if (w->parts[i] == s)
            w->parts[i] = NULL;
    }
}

static void on_drain(void *ctx)
{
    struct remote_spdy *w = ctx;

    remote_drained(&w->remote);
}

static void on_gone(void *ctx)
{
    struct remote_spdy *w = ctx;

    ev_timer_stop(w->session.loop, &w->patience);
    remote_done(&w->remote);
    session_done(&w->session);
    ev_free_later(w->session.loop, w, free);
}

static const struct spdy_link_events link_events = {
    .spdy = { .on_stream = on_stream, .on_data = on_data, .on_end = on_end, .on_close = on_close },
    .on_drain = on_drain,
    .on_gone = on_gone,
};

static void too_late(void *ctx)
{
    struct remote_spdy *w = ctx;

    log_info("podstream.streams", KV("pod", w->session.req->pod), KV("missing", true));
    spdy_link_close(w->link);
}

static void close_session(struct session *s)
{
    spdy_link_close(((struct remote_spdy *)s)->link);
}

void remote_spdy_open(const struct session_start *start, struct conn *conn, struct span rest)
{
    struct remote_spdy *w = NEW(struct remote_spdy);

    session_init(&w->session, start, close_session);
    remote_init(&w->remote, &w->session, &ops);
    w->has_resize = start->protocol != SESSION_SPDY_V1;
    w->remote.has_status_object = start->protocol == SESSION_SPDY_V4;
    w->link = spdy_link_open(conn, rest, false, &link_events, w);
    ev_timer_start(w->session.loop, &w->patience, POD_STREAMS_TIMEOUT_MS, too_late, w);
}
