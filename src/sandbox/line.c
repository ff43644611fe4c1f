#include "sandbox/line.h"

#include "base/str.h"
#include "net/conn.h"
#include "sandbox/limits.h"

#define OUT_BYTES (64 * 1024) /* of frames that wait for the end of the turn; more go out at once */

struct line {
    struct ev_loop *loop;
    struct conn *conn; /* NULL once it is gone */
    struct talk talk;
    struct buf out;
    struct ev_task flush, close;
    struct line_call *calls;
    size_t call_count;
    uint32_t last_id;
    bool is_over; /* calls were told */
    bool is_closing;
    bool is_orphan; /* nobody has it any more: it goes with its connection */
};

void line_clean_text(struct span text, struct buf *out)
{
    while (text.n) {
        size_t need, n = str_utf8_len(text, &need);
        bool is_control = n == 1 && (text.p[0] < 0x20 || text.p[0] == 0x7f);
        bool is_c1 = n == 2 && text.p[0] == 0xc2 && text.p[1] < 0xa0;

        if (n == 0 || is_control || is_c1)
            (void)buf_add_capped(out, SPAN("?"));
        else
            (void)buf_add_capped(out, span_slice(text, 0, n));
        text = span_skip(text, n ? n : need);
    }
}

/* ---- sending ---- */

static void flush_now(void *ctx)
{
    struct line *l = ctx;

    ev_post_cancel(&l->flush);
    if (!l->conn || l->is_over || !l->out.n)
        return;
    if (l->out.n > OUT_BYTES) {
        conn_write_buf(l->conn, &l->out);
        return;
    }
    conn_write(l->conn, buf_span(&l->out));
    buf_clear(&l->out); /* the next command has use for the block */
}

static void flush_soon(struct line *l)
{
    if (l->out.n > OUT_BYTES)
        flush_now(l);
    else if (!l->flush.is_queued || l->flush.is_canceled)
        ev_post(l->loop, &l->flush, flush_now, l);
}

void line_send(struct line *l, const struct line_call *c, enum talk_kind kind, struct span bytes)
{
    struct err e;

    if (!c->id || l->is_over)
        return;
    (void)talk_add(&l->out, kind, c->id, bytes, &e); /* fits: less than OUT_BYTES wait */
    flush_soon(l);
}

void line_send_number(struct line *l, const struct line_call *c, enum talk_kind kind,
                      uint32_t number)
{
    struct err e;

    if (!c->id || l->is_over)
        return;
    (void)talk_add_number(&l->out, kind, c->id, number, &e);
    flush_soon(l);
}

/* ---- calls ---- */

static struct line_call *find(const struct line *l, uint32_t id)
{
    struct line_call *c = l->calls;

    while (c && c->id != id)
        c = c->next;
    return c;
}

int line_start(struct line *l, struct line_call *c, const struct talk_start *start, struct err *e)
{
    if (l->is_over || l->is_closing)
        return err_set(e, ERR_CLOSED, "the sandbox has ended");
    if (l->call_count >= SANDBOX_CALLS_MAX)
        return err_set(e, ERR_BUSY, "%d commands run in the sandbox", SANDBOX_CALLS_MAX);
    do
        l->last_id++;
    while (!l->last_id || find(l, l->last_id));
    if (talk_add_start(&l->out, l->last_id, start, e) < 0)
        return -1;
    c->id = l->last_id;
    c->next = l->calls;
    l->calls = c;
    l->call_count++;
    flush_soon(l);
    return 0;
}

void line_leave(struct line *l, struct line_call *c)
{
    struct line_call **at = &l->calls;

    if (!c->id)
        return;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    l->call_count--;
    c->id = 0;
}

/* ---- the end ---- */

static void line_free(void *obj)
{
    struct line *l = obj;

    talk_done(&l->talk);
    buf_done(&l->out);
    free(l);
}

void line_break(struct line *l, const struct err *e)
{
    struct err why = { 0 };

    if (l->is_over)
        return;
    l->is_over = true;
    ev_post_cancel(&l->flush);
    if (e)
        why = *e;
    else if (l->is_closing)
        (void)err_set(&why, ERR_CANCELED, "the sandbox is being closed");
    else
        (void)err_set(&why, ERR_CLOSED, "the sandbox ended");
    while (l->calls) {
        struct line_call *c = l->calls;

        line_leave(l, c);
        c->on_gone(c->ctx, &why);
    }
    if (l->conn)
        conn_close(l->conn);
}

static void close_now(void *ctx)
{
    struct line *l = ctx;

    l->is_orphan = true;
    line_break(l, NULL);
    if (!l->conn)
        ev_free_later(l->loop, l, line_free); /* else on_conn_close does */
}

void line_close(struct line *l)
{
    if (!l || l->is_closing)
        return;
    l->is_closing = true;
    ev_post(l->loop, &l->close, close_now, l);
}

/* ---- events of the connection ---- */

static void on_read(void *ctx, struct span in)
{
    struct line *l = ctx;
    struct talk_frame f;
    size_t used;
    struct err e;

    while (!l->is_over) {
        enum feed verdict = talk_feed(&l->talk, in, &used, &f, &e);
        struct line_call *c;

        if (verdict == FEED_MORE)
            return;
        if (verdict == FEED_BAD) {
            (void)err_wrap(&e, "PID 1 is not to be understood");
            err_hint(&e, "if another version of silica made this sandbox, use that one");
            line_break(l, &e);
            return;
        }
        in = span_skip(in, used);
        c = find(l, f.call);
        if (c)
            c->on_frame(c->ctx, &f);
    }
}

static void on_eof(void *ctx)
{
    line_break(ctx, NULL);
}

static void on_conn_close(void *ctx, const struct err *e)
{
    struct line *l = ctx;

    l->conn = NULL;
    line_break(l, e);
    if (l->is_orphan)
        ev_free_later(l->loop, l, line_free);
}

int line_open(struct ev_loop *loop, int fd, struct line **ret, struct err *e)
{
    static const struct conn_events events = { on_read, on_eof, NULL, on_conn_close };
    struct line *l = NEW(struct line);

    l->loop = loop;
    l->out.max = OUT_BYTES + TALK_HEAD_BYTES + TALK_START_MAX_BYTES;
    talk_init(&l->talk, TALK_PID1);
    (void)buf_add(&l->out, span_of(TALK_PREFACE, TALK_PREFACE_BYTES),
                  e); /* fits; it leaves with what is first */
    if (conn_new(loop, fd, NULL, &events, l, &l->conn, e) < 0) {
        line_free(l);
        return -1;
    }
    *ret = l;
    return 0;
}
