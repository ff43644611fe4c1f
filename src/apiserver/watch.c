/* watch: first what there is, where that was asked for, then what happens, until the peer goes, the time is over or the
 * history has moved past it. */
#include "apiserver/call.h"

#include "apiserver/limits.h"
#include "apiserver/pages.h"
#include "base/str.h"

#include <string.h>

struct watch {
    struct call *call;
    struct key_limit_row *row; /* where it counts among its user's */
    struct store_watch events;
    struct pages pages; /* what there is, still to be told */
    bool is_listing, wants_bookmarks, wants_end_of_list;
    uint64_t version;
    struct ev_timer timeout, bookmark;
    struct slice slice;
    struct buf out;
    unsigned version_number; /* of the path's version among the kind's */
};

static void watch_free(struct call *c)
{
    struct watch *w = c->stream;

    key_limit_leave(&c->s->watch_limit, w->row);
    store_watch_stop(&w->events);
    ev_timer_stop(c->s->loop, &w->timeout);
    ev_timer_stop(c->s->loop, &w->bookmark);
    slices_cancel(&c->s->slices, &w->slice);
    pages_done(&w->pages);
    buf_done(&w->out);
    ev_free_later(c->s->loop, w, free);
}

static void end(struct call *c)
{
    http_answer_end(c->x, NULL);
    call_free(c);
}

/* The last event of a watch that cannot go on: c->status. */
static void end_with_error(struct call *c)
{
    OWN(buf_done) struct buf line = BUF_INIT(STATUS_TEXT_MAX_BYTES * 2);
    struct err e;

    if (buf_add(&line, SPAN("{\"type\":\"ERROR\",\"object\":"), &e) == 0 &&
        status_write(&c->status, &line, &e) == 0 && buf_add(&line, SPAN("}\n"), &e) == 0)
        http_answer_write(c->x, buf_span(&line));
    end(c);
}

static void on_lost(void *ctx)
{
    struct call *c = ctx;
    struct watch *w = c->stream;

    (void)op_say_lost(c->s->store, w->version, &c->status);
    end_with_error(c);
}

/* ---- events ---- */

/* The bytes that all readers of this version share. */
static struct event_text *shared_text(struct call *c, struct watch *w, struct store_event *ev)
{
    struct event_text **place = &ev->texts[w->version_number];

    if (!*place) {
        struct event_text *text = NEW(struct event_text);

        text->refs = 1;
        text->bytes.max = CALL_ANSWER_MAX_BYTES;
        if (render_event(c, ev->type, ev->now, &text->bytes) < 0) {
            buf_done(&text->bytes);
            free(text);
            return NULL;
        }
        *place = text;
    }
    return *place;
}

static bool on_event(void *ctx, struct store_event *ev)
{
    struct call *c = ctx;
    struct watch *w = c->stream;
    OWN(object_done) struct object *o = NULL;
    struct event_text *text;
    enum event_type type;

    w->version = ev->version;
    if (!selection_judge(&c->want, ev, &type, &o))
        return true;
    if (c->form == FORM_OBJECT && type == ev->type && w->version_number < LEN(ev->texts)) {
        text = shared_text(c, w, ev);
        if (!text) {
            end_with_error(c);
            return true;
        }
        http_answer_write(c->x, buf_span(&text->bytes));
    } else {
        buf_clear(&w->out);
        if (render_event(c, type, o, &w->out) < 0) {
            end_with_error(c);
            return true;
        }
        http_answer_write(c->x, buf_span(&w->out));
    }
    return !http_answer_is_full(c->x);
}

/* ---- bookmarks and the end ---- */

static void send_bookmark(struct call *c, struct watch *w, bool is_end_of_list)
{
    /* A watch that is behind has not told everything up to the store's version. */
    uint64_t version = w->events.is_behind || is_end_of_list
                           ? w->version
                           : store_version(c->s->store, STORE_COMMITTED);

    buf_clear(&w->out);
    if (render_bookmark(c, version, is_end_of_list, &w->out) == 0)
        http_answer_write(c->x, buf_span(&w->out));
}

static void on_bookmark(void *ctx)
{
    struct call *c = ctx;
    struct watch *w = c->stream;

    ev_timer_start(c->s->loop, &w->bookmark, WATCH_BOOKMARK_MS, on_bookmark, c);
    if (!w->is_listing && !http_answer_is_full(c->x))
        send_bookmark(c, w, false);
}

static void on_timeout(void *ctx)
{
    struct call *c = ctx;
    struct watch *w = c->stream;

    if (w->wants_bookmarks && !w->is_listing)
        send_bookmark(c, w, false);
    end(c);
}

/* ---- what there is ---- */

static void list_on(void *ctx)
{
    struct call *c = ctx;
    struct watch *w = c->stream;
    size_t budget = LIST_SLICE_OBJECTS;
    struct object *o;

    buf_clear(&w->out);
    while ((o = pages_next(&w->pages, &budget))) {
        if (render_event(c, EVENT_ADDED, o, &w->out) < 0) {
            end_with_error(c);
            return;
        }
        if (w->out.n >= LIST_SLICE_BYTES || slice_is_over(&c->s->slices))
            break;
    }
    http_answer_write(c->x, buf_span(&w->out));
    if (!w->pages.is_over) {
        if (!http_answer_is_full(c->x))
            slices_add(&c->s->slices, &w->slice, list_on, c);
        return;
    }
    w->is_listing = false;
    pages_done(&w->pages);
    if (w->wants_end_of_list)
        send_bookmark(c, w, true);
    if (!http_answer_is_full(c->x))
        store_watch_resume(&w->events);
}

static void on_drain(void *ctx)
{
    struct call *c = ctx;
    struct watch *w = c->stream;

    if (!w->is_listing)
        store_watch_resume(&w->events);
    else
        slices_add(&c->s->slices, &w->slice, list_on, c);
}

/* ---- the beginning ---- */

/* How old the beginning may be is only said of one that begins with a list. */
static int check_match(struct call *c, const char *match, bool is_list_asked_for)
{
    struct causes *causes = &c->status.causes;
    bool is_given = match && *match;

    if (is_list_asked_for && (!is_given || strcmp(match, "NotOlderThan") != 0))
        causes_add(causes, CAUSE_FORBIDDEN, AT(NULL, "resourceVersionMatch"), NULL,
                   "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (is_list_asked_for && is_given && strcmp(match, "NotOlderThan") != 0)
        causes_add_text(causes, CAUSE_NOT_SUPPORTED, AT(NULL, "resourceVersionMatch"),
                        span_cstr(match), "supported values: \"NotOlderThan\"");
    if (!is_list_asked_for && is_given)
        causes_add(
            causes, CAUSE_FORBIDDEN, AT(NULL, "resourceVersionMatch"), NULL,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    return causes->n ? status_invalid(&c->status, &pages_list_options, "") : 0;
}

static int read_options(struct call *c, struct watch *w, uint64_t *ret_timeout_ms)
{
    uint64_t there = store_version(c->s->store, STORE_COMMITTED), seconds = 0;
    const char *text = call_query(c, "timeoutSeconds");
    bool is_asked_for, wants_list;

    if (text && *text && !str_u64(span_cstr(text), INT32_MAX, &seconds))
        return call_not_a_number(c, text);
    *ret_timeout_ms = seconds ? seconds * 1000 : WATCH_TIMEOUT_MS;
    w->wants_bookmarks = call_query_bool(c, "allowWatchBookmarks");
    text = call_query(c, "sendInitialEvents");
    is_asked_for = text && *text;
    wants_list = call_query_bool(c, "sendInitialEvents");
    text = call_query(c, "resourceVersionMatch");
    if (check_match(c, text, is_asked_for) < 0)
        return -1;
    w->wants_end_of_list = wants_list && w->wants_bookmarks;
    text = call_query(c, "resourceVersion");
    if (text && *text && !str_u64(span_cstr(text), UINT64_MAX, &w->version))
        return status_bare(
            &c->status,
            "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing \"%s\": invalid syntax",
            text, text);
    if (w->version > there)
        return status_too_new(&c->status, w->version, there);
    w->is_listing = is_asked_for ? wants_list : w->version == 0;
    if (w->is_listing || w->version == 0)
        w->version = there;
    return 0;
}

/* Those of an administrator of the whole system are not counted. */
static int enter(struct call *c, struct watch *w)
{
    if (user_is_in(&c->user, GROUP_MASTERS) ||
        key_limit_enter(&c->s->watch_limit, user_name(&c->user), &w->row))
        return 0;
    return status_too_many(&c->status, 1, "user '%s' has %d watches, which is as many as one may",
                           user_name(&c->user), WATCHES_PER_USER_MAX);
}

static int follow(struct call *c, struct watch *w)
{
    struct err e;

    w->events = (struct store_watch){ .kind = c->want.kind,
                                      .namespace = c->want.namespace,
                                      .name = selection_name(&c->want),
                                      .on_event = on_event,
                                      .on_lost = on_lost,
                                      .ctx = c };
    if (store_watch(c->s->store, &w->events, w->version, &e) < 0)
        return status_of_err(&c->status, &e);
    if (w->is_listing)
        store_watch_hold(&w->events);
    return 0;
}

/* It has heard nothing for long, perhaps as nothing was there to hear: one that is cut off before its first bookmark would come
 * back with the same old version, again and again, until that is too old. */
static bool is_far_behind(struct call *c, const struct watch *w)
{
    return !w->is_listing &&
           store_version(c->s->store, STORE_COMMITTED) - w->version > WATCH_FAR_BEHIND;
}

void watch_begin(struct call *c)
{
    struct watch *w = NEW(struct watch);
    uint64_t timeout_ms = 0;
    int rc;

    w->call = c;
    w->out.max = CALL_ANSWER_MAX_BYTES;
    w->version_number = (unsigned)(c->op.version - c->op.kind->versions);
    c->stream = w;
    c->stream_free = watch_free;
    rc = enter(c, w);
    if (rc == 0)
        rc = read_options(c, w, &timeout_ms);
    if (rc == 0)
        rc = follow(c, w);
    if (rc < 0 && c->status.code != 410) {
        call_refuse(c);
        return;
    }
    http_answer_field(c->x, "content-type", SPAN("application/json"));
    http_answer_field(c->x, "cache-control", SPAN("no-cache, private"));
    http_answer_begin(c->x, 200, UINT64_MAX);
    c->told = 200;
    if (rc < 0) { /* too old: said as an event, as the public server does */
        end_with_error(c);
        return;
    }
    http_eof_is_gone(c->x);
    http_on_drain(c->x, on_drain, c);
    ev_timer_start(c->s->loop, &w->timeout, timeout_ms, on_timeout, c);
    if (w->wants_bookmarks)
        ev_timer_start(c->s->loop, &w->bookmark,
                       is_far_behind(c, w) ? WATCH_CATCH_UP_MS : WATCH_BOOKMARK_MS, on_bookmark, c);
    if (w->is_listing) {
        pages_init(&w->pages, &c->want, store_snapshot(c->s->store, STORE_COMMITTED, NULL),
                   w->version, NULL);
        slices_add(&c->s->slices, &w->slice, list_on, c);
    }
}
