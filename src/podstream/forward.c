#include "podstream/forward.h"

#include "base/log.h"

static const struct conn_events conn_events;
static void dial(void *ctx);

/* The only way to on_over. */
static void over(struct forward *f, const struct err *why)
{
    if (f->is_over)
        return;
    f->is_over = true;
    buf_done(&f->early);
    f->ops->on_over(f, why);
}

static void connected(struct forward *f, int fd)
{
    struct err e;

    if (conn_new(f->session->loop, fd, NULL, &conn_events, f, &f->conn, &e) < 0) {
        over(f, &e);
        return;
    }
    if (f->early.n)
        conn_write_buf(f->conn, &f->early);
    buf_done(&f->early);
    if (f->is_ended)
        conn_finish_writing(f->conn);
    if (f->is_paused)
        conn_want_read(f->conn, false);
    if (f->was_full && !conn_is_full(f->conn)) {
        f->was_full = false;
        f->ops->on_drain(f);
    }
}

static void dialed(void *ctx, int fd, const struct err *e)
{
    struct forward *f = ctx;
    uint64_t now = ev_now_ms(f->session->loop);
    struct err why;

    f->dial = NULL;
    if (!e) {
        connected(f, fd);
        return;
    }
    if (e->code == ERR_UNAVAILABLE && now + f->wait_ms < f->give_up_ms) {
        ev_timer_start(f->session->loop, &f->again, f->wait_ms, dial, f);
        f->wait_ms *= 2;
        return;
    }
    why = *e;
    (void)err_wrap(&why, "cannot forward to port %u of pod '%s'", f->port, f->session->req->pod);
    log_info("podstream.forward", KV("pod", f->session->req->pod), KV("port", f->port),
             KV("err", &why));
    over(f, &why);
}

static void dial(void *ctx)
{
    struct forward *f = ctx;
    struct pod_backend *b = f->session->backend;

    f->dial = b->ops->dial(b, f->session->req, f->port, dialed, f);
}

void forward_open(struct forward *f, struct session *s, uint16_t port,
                  const struct forward_ops *ops)
{
    *f = (struct forward){ .ops = ops,
                           .session = s,
                           .port = port,
                           .early = BUF_INIT(POD_EARLY_MAX_BYTES),
                           .wait_ms = POD_DIAL_FIRST_MS,
                           .give_up_ms = ev_now_ms(s->loop) + POD_DIAL_PATIENCE_MS };
    dial(f);
}

void forward_write(struct forward *f, struct span bytes)
{
    struct err e;

    if (f->is_over || f->is_ended || bytes.n == 0)
        return;
    if (f->conn)
        conn_write(f->conn, bytes);
    else if (buf_add(&f->early, bytes, &e) < 0) /* the carrier stops long before */
        f->is_ended = true;
    f->was_full |= forward_is_full(f);
}

bool forward_is_full(const struct forward *f)
{
    if (f->is_over)
        return false;
    return f->conn ? conn_is_full(f->conn) : f->early.n >= POD_EARLY_HIGH_BYTES;
}

void forward_end(struct forward *f)
{
    if (f->is_over || f->is_ended)
        return;
    f->is_ended = true;
    if (f->conn && f->has_eof)
        conn_finish(f->conn);
    else if (f->conn)
        conn_finish_writing(f->conn);
}

void forward_pause(struct forward *f, bool is_paused)
{
    f->is_paused = is_paused;
    if (f->conn && !f->is_over)
        conn_want_read(f->conn, !is_paused);
}

void forward_done(struct forward *f)
{
    f->is_over = true;
    ev_timer_stop(f->session->loop, &f->again);
    if (f->dial)
        f->session->backend->ops->dial_cancel(take_ptr(&f->dial));
    if (f->conn) {
        conn_finish(f->conn);
        conn_set_events(take_ptr(&f->conn), NULL, NULL);
    }
    buf_done(&f->early);
}

/* ---- events of the connection ---- */

static void on_read(void *ctx, struct span in)
{
    struct forward *f = ctx;

    f->ops->on_data(f, in);
}

static void on_eof(void *ctx)
{
    struct forward *f = ctx;

    f->has_eof = true;
    f->ops->on_end(f);
    if (f->is_ended && !f->is_over)
        conn_finish(f->conn);
}

static void on_drain(void *ctx)
{
    struct forward *f = ctx;

    f->was_full = false;
    f->ops->on_drain(f);
}

static void on_close(void *ctx, const struct err *e)
{
    struct forward *f = ctx;

    if (e)
        log_debug("podstream.port", KV("port", f->port), KV("err", e));
    f->conn = NULL;
    over(f, NULL);
}

static const struct conn_events conn_events = { on_read, on_eof, on_drain, on_close };
