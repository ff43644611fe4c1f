/* A call whose answer is collected. */
#include "http/client_impl.h"

#include "http/limits.h"

struct fetch {
    struct http_call *call;
    struct ev_loop *loop;
    struct http_head head;
    bool has_head;
    struct buf body;
    struct err limit; /* why it was called off */
    http_fetch_fn done;
    void *ctx;
};

static void fetch_free(void *obj)
{
    struct fetch *f = obj;

    http_head_done(&f->head);
    buf_done(&f->body);
    free(f);
}

static void on_head(void *ctx, const struct http_head *head)
{
    struct fetch *f = ctx;
    struct err e;

    http_head_init(&f->head, head->text.max, head->field_max);
    f->has_head = http_head_copy(&f->head, head, &e) == 0; /* the same ceilings */
}

static void on_data(void *ctx, struct span bytes)
{
    struct fetch *f = ctx;

    if (buf_add_capped(&f->body, bytes) == 0)
        return;
    (void)err_set(&f->limit, ERR_LIMIT, "the answer of '%s' has more than %zu bytes",
                  f->call->site->label, f->body.max);
    http_call_cancel(f->call);
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct fetch *f = ctx;

    (void)trailers;
    f->done(f->ctx, f->has_head ? &f->head : NULL, buf_span(&f->body),
            e && f->limit.code ? &f->limit : e);
    ev_free_later(f->loop, f, fetch_free);
}

static const struct http_call_events events = { on_head, on_data, NULL, on_done, NULL };

struct http_call *http_fetch(struct http_client *c, const struct http_call_spec *spec,
                             size_t max_bytes, http_fetch_fn done, void *ctx)
{
    struct fetch *f = NEW(struct fetch);
    struct http_call_spec own = *spec;

    f->loop = c->loop;
    f->body.max = max_bytes;
    f->done = done;
    f->ctx = ctx;
    own.events = &events;
    own.ctx = f;
    f->call = http_call_start(c, &own);
    return f->call;
}
