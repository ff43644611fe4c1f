/* get and list. Both see what is on disk. */
#include "apiserver/pages.h"

#include "apiserver/limits.h"
#include "base/str.h"

#include <string.h>

/* ---- which state ---- */

/* "", "0" or a number; false: none of these. */
static bool read_version(struct call *c, uint64_t *ret, bool *ret_is_given)
{
    const char *text = call_query(c, "resourceVersion");

    *ret = 0;
    *ret_is_given = text && *text;
    return !*ret_is_given || str_u64(span_cstr(text), UINT64_MAX, ret);
}

void read_get(struct call *c)
{
    OWN(buf_done) struct buf body = BUF_INIT(CALL_ANSWER_MAX_BYTES);
    OWN(object_done) struct object *o = NULL;
    uint64_t version;
    bool is_given;

    if (!read_version(c, &version, &is_given))
        (void)status_bare(
            &c->status,
            "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing \"%s\": invalid syntax",
            call_query(c, "resourceVersion"), call_query(c, "resourceVersion"));
    else if (version > store_version(c->s->store, STORE_COMMITTED))
        (void)call_too_new(c, version, store_version(c->s->store, STORE_COMMITTED));
    else if (op_get(&c->op, STORE_COMMITTED, &o, &c->status) == 0 &&
             render_object(c, o, &body) == 0) {
        call_answer_bytes(c, 200, "application/json", buf_span(&body));
        return;
    }
    call_refuse(c);
}

/* ---- list ---- */

struct list {
    struct call *call;
    struct pages pages;
    struct buf out;
    struct ev_task task;
    size_t limit; /* still to come; SIZE_MAX: all */
    bool has_items, has_begun;
    struct buf next; /* the token of what follows */
};

static void list_free(struct call *c)
{
    struct list *l = c->stream;

    ev_post_cancel(&l->task);
    pages_done(&l->pages);
    buf_done(&l->out);
    buf_done(&l->next);
    ev_free_later(c->s->loop, l, free);
}

static void end_list(struct call *c, struct list *l)
{
    if (render_list_end(c, &l->out) < 0) {
        if (l->has_begun) {
            http_answer_abort(c->x);
            call_free(c);
        } else {
            call_refuse(c);
        }
        return;
    }
    if (!l->has_begun) {
        call_answer_bytes(c, 200, "application/json", buf_span(&l->out));
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
        ev_post(c->s->loop, &l->task, go_on, c);
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

static void go_on(void *ctx)
{
    struct call *c = ctx;
    struct list *l = c->stream;
    size_t budget = LIST_SLICE_OBJECTS;
    struct err e;

    while (l->out.n < LIST_SLICE_BYTES) {
        struct object *o = l->limit ? pages_next(&l->pages, c, &budget) : NULL;

        if (!o && l->limit && !l->pages.is_over)
            break; /* looked at enough for this turn */
        if (!o) {
            end_list(c, l);
            return;
        }
        if ((l->has_items && buf_addc(&l->out, ',', &e) < 0) || render_item(c, o, &l->out) < 0) {
            fail_list(c, l);
            return;
        }
        l->has_items = true;
        if (l->limit != SIZE_MAX)
            l->limit--;
    }
    send_slice(c, l);
}

static void on_drain(void *ctx)
{
    struct call *c = ctx;
    struct list *l = c->stream;

    if (!l->task.is_queued)
        ev_post(c->s->loop, &l->task, go_on, c);
}

/* The object a limited list ends with, found ahead: the token stands before the items. */
static struct object *find_last(struct call *c, struct list *l, size_t limit, uint64_t *ret_left)
{
    struct pages look = l->pages;
    size_t everything = SIZE_MAX, n = 0;
    struct object *last = NULL, *o;

    while ((o = pages_next(&look, c, &everything)) && n < limit) {
        last = o;
        n++;
    }
    if (!o)
        return NULL; /* all of it fits */
    *ret_left = c->labels || c->fields ? 0 : l->pages.left - limit;
    return last;
}

static int begin_list(struct call *c, struct list *l, size_t limit)
{
    uint64_t left = 0;
    struct object *last = limit ? find_last(c, l, limit, &left) : NULL;
    struct err e;

    l->limit = limit ? limit : SIZE_MAX;
    if (last) {
        if (pages_token_write(l->pages.version, last, &l->next, &e) < 0)
            return status_of_err(&c->status, &e);
        snapshots_keep(&c->s->snapshots, l->pages.shelf, l->pages.version, ev_now_ms(c->s->loop));
    }
    return render_list_begin(c, l->pages.version, last ? buf_cstr(&l->next) : NULL, left, &l->out);
}

/* From the state the token names, or an honest 410 that brings a token for going on in today's. */
static int choose_continued(struct call *c, const char *text, struct pages_token *token,
                            struct shelf **ret, uint64_t *ret_version)
{
    if (!pages_token_read(span_cstr(text), token))
        return status_bad_request(&c->status, "invalid continue token: continue key is not valid: "
                                              "the token is none of this server");
    text = call_query(c, "resourceVersion");
    if (text && *text && strcmp(text, "0") != 0)
        return status_bad_request(&c->status,
                                  "specifying resource version is not allowed when using continue");
    *ret_version = token->version;
    if (snapshots_find(&c->s->snapshots, token->version, ev_now_ms(c->s->loop), ret))
        return 0;
    return status_expired(
        &c->status,
        "The provided continue parameter is too old to display a consistent list result. You "
        "must start a new list without the continue parameter.");
}

/* What may be said of versions together. */
static int check_match(struct call *c, const char *match, bool is_given, bool is_exactly_zero)
{
    struct causes *causes = &c->status.causes;

    if (match && *match && !is_given)
        causes_add(causes, CAUSE_FORBIDDEN, AT(NULL, "resourceVersionMatch"), NULL,
                   "resourceVersionMatch is forbidden unless resourceVersion is provided");
    else if (match && *match && strcmp(match, "Exact") != 0 && strcmp(match, "NotOlderThan") != 0)
        causes_add_text(causes, CAUSE_NOT_SUPPORTED, AT(NULL, "resourceVersionMatch"),
                        span_cstr(match), "supported values: \"Exact\", \"NotOlderThan\", \"\"");
    else if (is_exactly_zero)
        causes_add(causes, CAUSE_FORBIDDEN, AT(NULL, "resourceVersionMatch"), NULL,
                   "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    if (call_query(c, "sendInitialEvents"))
        causes_add(causes, CAUSE_FORBIDDEN, AT(NULL, "sendInitialEvents"), NULL,
                   "sendInitialEvents is forbidden for list");
    return causes->n ? status_invalid(&c->status, &call_list_options, "") : 0;
}

static int choose_state(struct call *c, struct shelf **ret, uint64_t *ret_version)
{
    const char *match;
    uint64_t wanted, there = store_version(c->s->store, STORE_COMMITTED);
    bool is_given, is_exact;
    struct err e;

    if (!read_version(c, &wanted, &is_given))
        return status_bad_request(
            &c->status,
            "invalid resource version: resourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing \"%s\": "
            "invalid syntax",
            call_query(c, "resourceVersion"), call_query(c, "resourceVersion"));
    match = call_query(c, "resourceVersionMatch");
    is_exact = match && strcmp(match, "Exact") == 0;
    if (check_match(c, match, is_given, is_exact && wanted == 0) < 0)
        return -1;
    if (wanted > there)
        return call_too_new(c, wanted, there);
    if (is_exact && wanted != there) {
        *ret_version = wanted;
        if (snapshots_find(&c->s->snapshots, wanted, ev_now_ms(c->s->loop), ret) ||
            store_snapshot_at(c->s->store, op_number(c->op.kind), wanted, ret, &e) == 0)
            return 0;
        return status_expired(&c->status, "The resourceVersion for the provided list is too old.");
    }
    *ret = store_snapshot(c->s->store, STORE_COMMITTED, ret_version);
    return 0;
}

void read_list(struct call *c)
{
    struct pages_token token;
    const char *text;
    struct shelf *shelf = NULL;
    uint64_t version = 0, limit = 0;
    struct shelf_key after;
    bool is_continued;
    struct list *l;

    text = call_query(c, "limit");
    if (text && *text && !str_u64(span_cstr(text), INT64_MAX, &limit)) {
        (void)call_not_a_number(c, text);
        call_refuse(c);
        return;
    }
    text = call_query(c, "continue");
    is_continued = text && *text;
    if ((is_continued ? choose_continued(c, text, &token, &shelf, &version)
                      : choose_state(c, &shelf, &version)) < 0) {
        call_refuse(c);
        return;
    }
    l = NEW(struct list);
    l->call = c;
    l->out.max = CALL_ANSWER_MAX_BYTES;
    l->next.max = 4096;
    after = (struct shelf_key){ op_number(c->op.kind), token.namespace, token.name };
    pages_init(&l->pages, c, shelf, version, is_continued ? &after : NULL);
    c->stream = l;
    c->stream_free = list_free;
    http_on_drain(c->x, on_drain, c);
    if (begin_list(c, l, (size_t)limit) < 0)
        call_refuse(c);
    else
        go_on(c);
}
