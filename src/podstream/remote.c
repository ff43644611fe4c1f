#include "podstream/remote.h"

#include "base/log.h"
#include "base/str.h"
#include "podstream/status.h"

#include <string.h>

static const struct pod_process_events process_events;

static const struct pod_backend_ops *ops_of(const struct remote *r)
{
    return r->session->backend->ops;
}

void remote_init(struct remote *r, struct session *s, const struct remote_ops *ops)
{
    r->ops = ops;
    r->session = s;
    r->early.max = POD_EARLY_MAX_BYTES;
    pod_resize_init(&r->resize);
}

void remote_done(struct remote *r)
{
    struct pod_process *p = take_ptr(&r->process);

    r->is_over = true;
    ev_timer_stop(r->session->loop, &r->cut_timer);
    if (p)
        ops_of(r)->leave(p);
    buf_done(&r->early);
    pod_resize_done(&r->resize);
}

/* ---- output ---- */

static void give(struct remote *r, enum pod_output which, struct span piece)
{
    for (; piece.n; piece = span_skip(piece, POD_FRAME_MAX_BYTES))
        r->ops->output(r, which, span_slice(piece, 0, POD_FRAME_MAX_BYTES));
    if (!r->is_paused && r->process && r->ops->is_full(r)) {
        r->is_paused = true;
        ops_of(r)->pause(r->process, true);
    }
}

/* What waited for the rest of its character goes alone. */
static void give_cuts(struct remote *r)
{
    for (int which = POD_STDOUT; which <= POD_STDERR; which++) {
        struct cut cut = r->cuts[which];

        r->cuts[which].n = 0;
        give(r, (enum pod_output)which, span_of(cut.bytes, cut.n));
    }
}

/* While we hold the process up ourselves, the rest may stand in its pipe. */
static void cuts_waited(void *ctx)
{
    struct remote *r = ctx;

    if (r->is_paused)
        ev_timer_start(r->session->loop, &r->cut_timer, POD_CHARACTER_WAIT_MS, cuts_waited, r);
    else
        give_cuts(r);
}

/* Pieces that end between characters, wherever the process's writes ended. Frames are cut here too, or the carrier's
 * ceiling would do it anywhere. */
static void give_characters(struct remote *r, enum pod_output which, struct span piece)
{
    struct cut *cut = &r->cuts[which];
    OWN(buf_done) struct buf joined = BUF_INIT(sizeof cut->bytes + piece.n);
    struct err e;

    if (cut->n) {
        (void)buf_add(&joined, span_of(cut->bytes, cut->n), &e); /* sized for both */
        (void)buf_add(&joined, piece, &e);
        piece = buf_span(&joined);
    }
    while (piece.n > POD_FRAME_MAX_BYTES) {
        struct span frame = span_slice(piece, 0, POD_FRAME_MAX_BYTES);

        frame.n -= str_utf8_partial_tail(frame);
        give(r, which, frame);
        piece = span_skip(piece, frame.n);
    }
    cut->n = str_utf8_partial_tail(piece);
    piece.n -= cut->n;
    if (cut->n)
        memcpy(cut->bytes, piece.p + piece.n, cut->n);
    give(r, which, piece);
    if (r->cuts[POD_STDOUT].n || r->cuts[POD_STDERR].n)
        ev_timer_start(r->session->loop, &r->cut_timer, POD_CHARACTER_WAIT_MS, cuts_waited, r);
    else
        ev_timer_stop(r->session->loop, &r->cut_timer);
}

static void on_output(void *ctx, enum pod_output which, struct span piece)
{
    struct remote *r = ctx;
    const struct pod_request *req = r->session->req;

    if (which == POD_STDOUT ? !req->has_stdout : !req->has_stderr)
        return; /* nobody asked for it */
    if (r->keeps_characters)
        give_characters(r, which, piece);
    else
        give(r, which, piece);
}

void remote_drained(struct remote *r)
{
    if (!r->is_paused || r->ops->is_full(r))
        return;
    r->is_paused = false;
    if (r->process)
        ops_of(r)->pause(r->process, false);
}

/* ---- the end ---- */

static void finish(struct remote *r, int code, const struct err *e)
{
    OWN(buf_done) struct buf status = BUF_INIT(STATUS_MAX_BYTES);

    if (r->is_over)
        return;
    r->is_over = true;
    ev_timer_stop(r->session->loop, &r->cut_timer);
    give_cuts(r);
    if (e && r->session->req->has_stderr && status_exit_code(e) != 1) {
        buf_addf_capped(&status, "%s\n", e->msg); /* as a shell says it */
        give(r, POD_STDERR, buf_span(&status));
        buf_clear(&status);
    }
    if (r->has_status_object && e)
        status_of_error(&status, e);
    else if (r->has_status_object)
        status_of_exit(&status, code);
    else if (e)
        buf_addf_capped(&status, "%s", e->msg);
    else if (code)
        buf_addf_capped(&status, "command terminated with non-zero exit code: %d", code);
    log_info("podstream.exit", KV("pod", r->session->req->pod), KV("code", e ? -1 : code),
             KV("err", e ? e->msg : ""));
    r->ops->finish(r, buf_span(&status));
}

static void ended(void *ctx, int code, const struct err *e)
{
    struct remote *r = ctx;

    r->process = NULL;
    finish(r, code, e);
}

/* ---- input ---- */

static void on_drain(void *ctx)
{
    struct remote *r = ctx;

    if (!r->was_full || remote_is_full(r))
        return;
    r->was_full = false;
    r->ops->resume(r);
}

static const struct pod_process_events process_events = { on_output, on_drain, ended };

/* A command that gets a part of its input would end as if that were all: its client hears of it instead. */
static void take_input(struct remote *r, struct span bytes)
{
    struct err e;

    if (r->process && bytes.n && ops_of(r)->write(r->process, bytes, &e) < 0)
        finish(r, 0, &e);
}

void remote_start(struct remote *r)
{
    struct pod_backend *b = r->session->backend;
    struct err e;

    assert(!r->has_started);
    r->has_started = true;
    if (b->ops->start(b, r->session->req, &process_events, r, &r->process, &e) < 0) {
        finish(r, 0, &e);
        return;
    }
    if (r->cols)
        b->ops->resize(r->process, r->cols, r->rows);
    take_input(r, buf_span(&r->early));
    buf_done(&r->early);
    if (r->is_over)
        return;
    if (r->is_stdin_ended)
        b->ops->close_stdin(r->process);
    if (r->was_full)
        on_drain(r);
}

bool remote_is_full(const struct remote *r)
{
    if (r->is_over)
        return false;
    return r->process ? ops_of(r)->is_full(r->process) : r->early.n >= POD_EARLY_HIGH_BYTES;
}

void remote_stdin(struct remote *r, struct span bytes)
{
    struct err e;

    if (r->is_over || r->is_stdin_ended || !r->session->req->has_stdin || bytes.n == 0)
        return;
    if (r->process)
        take_input(r, bytes);
    else if (buf_add(&r->early, bytes, &e) < 0)
        finish(r, 0, &e);
    r->was_full |= remote_is_full(r);
}

void remote_stdin_end(struct remote *r)
{
    if (r->is_over || r->is_stdin_ended || !r->session->req->has_stdin)
        return;
    r->is_stdin_ended = true;
    if (r->process)
        ops_of(r)->close_stdin(r->process);
}

void remote_resize(struct remote *r, struct span bytes)
{
    size_t used;

    while (pod_resize_feed(&r->resize, bytes, &used, &r->cols, &r->rows)) {
        bytes = span_skip(bytes, used);
        if (r->process && r->session->req->has_tty)
            ops_of(r)->resize(r->process, r->cols, r->rows);
    }
}
