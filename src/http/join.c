#include "http/join.h"

#include "base/log.h"
#include "ev/limits.h"
#include "net/relay.h"

#include <stdio.h>

struct http_join {
    struct ev_loop *loop;
    struct conn *back;   /* while the client's connection is on its way to us */
    struct relay *relay; /* once it has come */
    struct buf rest;
    bool is_switching;
    ev_fn done;
    void *ctx;
    struct ev_task over;
};

static void join_free(void *obj)
{
    struct http_join *j = obj;

    buf_done(&j->rest);
    free(j);
}

static void tell_over(void *ctx)
{
    struct http_join *j = ctx;

    j->done(j->ctx);
    ev_free_later(j->loop, j, join_free);
}

static void over_soon(struct http_join *j)
{
    if (!j->over.is_queued)
        ev_post(j->loop, &j->over, tell_over, j);
}

void http_join_close(struct http_join *j)
{
    if (j->back)
        conn_close(j->back);
    if (j->relay)
        relay_close(j->relay);
}

static void relayed(void *ctx)
{
    struct http_join *j = ctx;

    j->relay = NULL;
    over_soon(j);
}

/* Now the client's side has switched too. */
static void switched(void *ctx, struct conn *conn, struct span rest)
{
    struct http_join *j = ctx;

    j->is_switching = false;
    if (conn && j->back) {
        j->relay = relay_start(conn, rest, take_ptr(&j->back), buf_span(&j->rest), relayed, j);
        return;
    }
    if (conn) {
        conn_set_events(conn, NULL, NULL);
        conn_finish(conn); /* the other side went meanwhile */
        over_soon(j);
    } else if (j->back) {
        conn_close(j->back); /* on_back_close follows */
    } else {
        over_soon(j);
    }
}

/* ---- events of the other connection, while the client's is on its way ---- */

static void on_back_read(void *ctx, struct span in)
{
    (void)ctx, (void)in; /* reading is off */
}

static void on_back_eof(void *ctx)
{
    (void)ctx;
}

static void on_back_close(void *ctx, const struct err *e)
{
    struct http_join *j = ctx;

    if (e)
        log_debug("join.lost", KV("err", e));
    j->back = NULL;
    if (!j->is_switching)
        over_soon(j);
}

static const struct conn_events back_events = { on_back_read, on_back_eof, NULL, on_back_close };

/* Hop fields are the server's own business. */
static bool is_passed(struct span name)
{
    return !span_is(name, "connection") && !span_is(name, "upgrade") && !span_is(name, "date") &&
           !span_is(name, "server") && !span_is(name, "content-length") &&
           !span_is(name, "transfer-encoding");
}

struct http_join *http_join_start(struct http_exchange *x, const struct http_head *head,
                                  struct conn *back, struct span rest, ev_fn done, void *ctx,
                                  struct err *e)
{
    struct span protocol = http_head_get(head, "upgrade");
    char upgrade[64] = "";
    struct http_join *j;

    if (protocol.n == 0 || protocol.n >= sizeof upgrade || rest.n > EV_SCRATCH_BYTES) {
        (void)err_set(e, ERR_PROTOCOL, "the other server switched to no protocol");
        return NULL;
    }
    j = NEW(struct http_join);
    j->loop = http_loop(x);
    j->done = done;
    j->ctx = ctx;
    j->back = back;
    j->rest.max = EV_SCRATCH_BYTES;
    (void)buf_add(&j->rest, rest, e); /* fits: a connection is read in such pieces */
    conn_set_events(back, &back_events, j);
    conn_want_read(back, false); /* until there is somebody to give it to */
    (void)snprintf(upgrade, sizeof upgrade, "%.*s", SPAN_ARG(protocol));
    for (size_t i = 0; i < http_head_count(head); i++) {
        struct span name, value;

        http_head_field(head, i, &name, &value);
        if (is_passed(name))
            http_answer_pass(x, name, value);
    }
    j->is_switching = true;
    http_answer_switch(x, upgrade, switched, j);
    return j;
}
