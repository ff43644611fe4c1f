/* get and list. Both see what is on disk. */
#include "apiserver/call.h"

#include "apiserver/limits.h"
#include "apiserver/pages.h"
#include "base/str.h"

#include <string.h>

void read_get(struct call *c)
{
    OWN(buf_done) struct buf body = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    OWN(object_done) struct object *o = NULL;

    if (op_get_at(&c->op, STORE_COMMITTED, call_query(c, "resourceVersion"), &o, &c->status) < 0 ||
        render_object(c, o, &body) < 0)
        call_refuse(c);
    else
        call_answer_bytes(c, 200, "application/json", buf_span(&body));
}

/* ---- list ---- */

#define LOOK_STEP_OBJECTS 64 /* between two looks at the clock */

struct list {
    struct call *call;
    struct pages pages;
    struct buf out;
    struct slice slice;
    size_t limit; /* still to come; SIZE_MAX: all */
    bool has_items, has_begun;
    struct buf next; /* the token of what follows */
    /* The token stands before the items, so a limited list is walked ahead to the one it ends with. */
    bool is_looking;
    struct pages look; /* borrows the shelf of `pages` */
    size_t looked;
    struct object *last;
};

static void list_free(struct call *c)
{
    struct list *l = c->stream;

    slices_cancel(&c->s->slices, &l->slice);
    pages_done(&l->pages);
    buf_done(&l->out);
    buf_done(&l->next);
    ev_free_later(c->s->loop, l, free);
}

static void end_list(struct call *c, struct list *l)
{
    if (render_list_end(c, !l->has_items, &l->out) < 0) {
        if (l->has_begun) {
            http_answer_abort(c->x);
            call_free(c);
        } else {
            call_refuse(c);
        }
        return;
    }
    if (!l->has_begun) {
        call_answer_bytes(c, 200, c->is_yaml ? "application/yaml" : "application/json",
                          buf_span(&l->out));
        return;
    }
    http_answer_write(c->x, buf_span(&l->out));
    http_answer_end(c->x, NULL);
    call_free(c);
}

static void go_on(void *ctx);

/* What is ready goes out; the rest comes in a later turn, so that nobody waits behind a long list. */
static void send_slice(struct call *c, struct list *l)
{
    if (!l->has_begun) {
        l->has_begun = true;
        c->told = 200;
        http_answer_field(c->x, "content-type",
                          c->is_yaml ? SPAN("application/yaml") : SPAN("application/json"));
        http_answer_field(c->x, "cache-control", SPAN("no-cache, private"));
        http_answer_begin(c->x, 200, UINT64_MAX);
    }
    http_answer_write(c->x, buf_span(&l->out));
    buf_clear(&l->out);
    if (!http_answer_is_full(c->x))
        slices_add(&c->s->slices, &l->slice, go_on, c);
}

static void fail_list(struct call *c, struct list *l)
{
    if (l->has_begun) {
        http_answer_abort(c->x);
        call_free(c);
    } else {
        call_refuse(c);
    }
}

/* Goes on to the object behind the limit, or to the end. False: not there yet. */
static bool look_ahead(struct call *c, struct list *l)
{
    do {
        size_t budget = LOOK_STEP_OBJECTS;
        struct object *o;

        while ((o = pages_next(&l->look, &budget)) && l->looked < l->limit) {
            l->last = o;
            l->looked++;
        }
        if (o)
            return true;
        if (l->look.is_over) {
            l->last = NULL; /* all of it fits */
            return true;
        }
    } while (!slice_is_over(&c->s->slices));
    return false;
}

static int begin_list(struct call *c, struct list *l)
{
    uint64_t left = c->want.labels || c->want.fields ? 0 : l->pages.left - l->looked;
    struct err e;

    l->is_looking = false;
    if (l->last) {
        if (pages_token_write(l->pages.version, l->last, &l->next, &e) < 0)
            return status_of_err(&c->status, &e);
        snapshots_keep(&c->s->snapshots, l->pages.shelf, l->pages.version, ev_now_ms(c->s->loop));
    }
    return render_list_begin(c, l->pages.version, l->last ? buf_cstr(&l->next) : NULL,
                             l->last ? left : 0, &l->out);
}

static void go_on(void *ctx)
{
    struct call *c = ctx;
    struct list *l = c->stream;
    size_t budget = LIST_SLICE_OBJECTS;

    if (l->is_looking && !look_ahead(c, l)) {
        slices_add(&c->s->slices, &l->slice, go_on, c);
        return;
    }
    if (l->is_looking && begin_list(c, l) < 0) {
        call_refuse(c);
        return;
    }
    do {
        struct object *o = l->limit ? pages_next(&l->pages, &budget) : NULL;

        if (!o && l->limit && !l->pages.is_over)
            break; /* looked at enough for this turn */
        if (!o) {
            end_list(c, l);
            return;
        }
        if (render_item(c, o, !l->has_items, &l->out) < 0) {
            fail_list(c, l);
            return;
        }
        l->has_items = true;
        if (l->limit != SIZE_MAX)
            l->limit--;
    } while (l->out.n < LIST_SLICE_BYTES && !slice_is_over(&c->s->slices));
    send_slice(c, l);
}

static void on_drain(void *ctx)
{
    struct call *c = ctx;
    struct list *l = c->stream;

    slices_add(&c->s->slices, &l->slice, go_on, c);
}

static int open_pages(struct call *c, struct pages *p)
{
    OWN_MEM char *next = call_query_dup(c, "continue"),
                 *version = call_query_dup(c, "resourceVersion"),
                 *match = call_query_dup(c, "resourceVersionMatch");
    struct pages_ask ask = { .store = c->s->store,
                             .view = STORE_COMMITTED,
                             .snapshots = &c->s->snapshots,
                             .now_ms = ev_now_ms(c->s->loop),
                             .next = next,
                             .version = version,
                             .match = match,
                             .has_initial_events = call_query(c, "sendInitialEvents") != NULL };

    return pages_open(p, &c->want, &ask, &c->status);
}

void read_list(struct call *c)
{
    const char *text = call_query(c, "limit");
    uint64_t limit = 0;
    struct pages pages;
    struct list *l;

    if (text && *text && !str_u64(span_cstr(text), INT64_MAX, &limit)) {
        (void)call_not_a_number(c, text);
        call_refuse(c);
        return;
    }
    if (open_pages(c, &pages) < 0) {
        call_refuse(c);
        return;
    }
    l = NEW(struct list);
    l->call = c;
    l->pages = pages;
    l->out.max = CALL_ANSWER_MAX_BYTES;
    l->next.max = PAGES_TOKEN_MAX_BYTES;
    c->stream = l;
    c->stream_free = list_free;
    http_on_drain(c->x, on_drain, c);
    l->limit = limit ? (size_t)limit : SIZE_MAX;
    l->is_looking = true;
    l->look = pages;
    l->look.is_over = !limit;   /* all of it fits */
    slice_begin(&c->s->slices); /* a short list is answered at once */
    go_on(c);
}
