/* A container's log as the answer to a plain request: it goes out as it comes, as fast as it is read. */
#include "podstream/session.h"
#include "podstream/status.h"

struct log_session {
    struct session session;  /* first */
    struct http_exchange *x; /* NULL once gone */
    struct pod_log *log;     /* NULL once over */
};

static void session_free(void *obj)
{
    free(obj);
}

static void finish(struct log_session *s)
{
    session_done(&s->session);
    ev_free_later(s->session.loop, s, session_free);
}

static void on_output(void *ctx, struct span piece)
{
    struct log_session *s = ctx;

    http_answer_write(s->x, piece);
    if (http_answer_is_full(s->x))
        s->session.backend->ops->log_pause(s->log, true);
}

static void on_end(void *ctx, const struct err *e)
{
    struct log_session *s = ctx;

    s->log = NULL;
    if (e)
        http_answer_abort(take_ptr(&s->x)); /* so that it is seen to be cut off */
    else
        http_answer_end(take_ptr(&s->x), NULL);
    finish(s);
}

static const struct pod_log_events events = { on_output, on_end };

static void on_drain(void *ctx)
{
    struct log_session *s = ctx;

    s->session.backend->ops->log_pause(s->log, false);
}

static void on_gone(void *ctx)
{
    struct log_session *s = ctx;

    s->session.backend->ops->log_leave(take_ptr(&s->log));
    s->x = NULL;
    finish(s);
}

static void close_session(struct session *session)
{
    struct log_session *s = CONTAINER(session, struct log_session, session);

    if (!s->x)
        return;
    http_answer_abort(take_ptr(&s->x));
    s->session.backend->ops->log_leave(take_ptr(&s->log));
    finish(s);
}

int log_session_open(const struct session_start *start, struct http_exchange *x, struct err *e)
{
    struct log_session *s = NEW(struct log_session);

    session_init(&s->session, start, close_session);
    s->x = x;
    if (s->session.backend->ops->log(s->session.backend, start->req, &events, s, &s->log, e) < 0) {
        finish(s);
        return -1;
    }
    http_on_gone(x, on_gone, s);
    http_on_drain(x, on_drain, s);
    http_eof_is_gone(x);
    http_answer_field(x, "content-type", SPAN("text/plain"));
    http_answer_begin(x, 200, UINT64_MAX);
    return 0;
}
