/* A watch: one request after the other that each go on where the last one was, until a list is needed.
 *
 * Again:    the end of a response (servers end them after some minutes), lost connections, 429 and 5xx, and ERROR events
 *           of such codes: after a pause that grows while nothing good comes.
 * Ends:     410, as a status or as an event; what the server refuses otherwise; events that cannot be read.
 */
#include "kubeclient/impl.h"

#include "base/str.h"

#include <string.h>

enum watch_state {
    WATCH_WAITING,
    WATCH_OPEN,
    WATCH_ENDING, /* the reason stands; told when the request is over, in a later turn */
    WATCH_DONE,
};

struct rest_watch {
    struct kube_watch base;
    struct rest_watch **at, *next;
    enum watch_state state;
    /* what was asked for */
    const struct kind *kind;
    char *version, *namespace, *labels, *fields;
    struct kube_watch_events events;
    void *ctx;
    uint64_t seen; /* goes on behind this resourceVersion */
    /* the request under way */
    struct http_call *http;
    struct rest_verdict verdict;
    struct buf body; /* of a refusal */
    struct cut cut;
    uint64_t opened_ms;
    bool is_again; /* the server said so in an event: pause before the next */
    struct ev_task task;
    struct ev_timer timer;
    struct access_waiter waiter;
    struct backoff backoff;
    unsigned generation;
    bool is_renewed;
    struct status why;
};

static struct kubeclient *client_of(const struct rest_watch *w)
{
    return CONTAINER(w->base.client, struct kubeclient, base);
}

static void watch_free(void *obj)
{
    struct rest_watch *w = obj;

    free(w->version);
    free(w->namespace);
    free(w->labels);
    free(w->fields);
    buf_done(&w->body);
    cut_done(&w->cut);
    status_done(&w->why);
    free(w);
}

/* The only way to on_end. */
static void finish(void *ctx)
{
    struct rest_watch *w = ctx;
    struct kubeclient *c = client_of(w);

    assert(w->state != WATCH_DONE && !w->http);
    w->state = WATCH_DONE;
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    w->events.on_end(w->ctx, &w->why);
    ev_free_later(c->base.loop, w, watch_free);
    rest_let_go(c);
}

/* From anywhere; w->why says why. */
static void end(struct rest_watch *w)
{
    struct ev_loop *loop = w->base.client->loop;

    if (w->state >= WATCH_ENDING)
        return;
    w->state = WATCH_ENDING;
    ev_timer_stop(loop, &w->timer);
    ev_post_cancel(&w->task);
    access_leave(&w->waiter);
    if (w->http)
        http_call_cancel(w->http); /* on_done then finishes */
    else
        ev_post(loop, &w->task, finish, w);
}

static void end_broken(struct rest_watch *w, const struct err *e)
{
    (void)status_internal(&w->why, "cannot read the server's events: %s", e->msg);
    end(w);
}

/* ---- events ---- */

static void tell(struct rest_watch *w, enum kube_event type, struct object *o, uint64_t version)
{
    w->seen = version;
    backoff_reset(&w->backoff);
    w->events.on_event(w->ctx, type, o, version);
}

static void on_bookmark(struct rest_watch *w, const struct json *object)
{
    struct span text = json_str(json_get(json_get(object, "metadata"), "resourceVersion"));
    uint64_t version;

    if (str_u64(text, UINT64_MAX, &version))
        tell(w, KUBE_BOOKMARK, NULL, version);
}

/* The server ends the watch with a Status: too old, or something of its own. */
static void on_error(struct rest_watch *w, const struct json *object)
{
    OWN(status_done) struct status st = STATUS_INIT;
    bool is_status = status_read(object, &st);

    if (is_status && st.code != 410 && (st.code == 429 || st.code >= 500)) {
        w->is_again = true;
        http_call_cancel(w->http);
        return;
    }
    if (is_status)
        (void)status_read(object, &w->why);
    else
        (void)status_internal(&w->why, "the server ended the watch without a reason");
    end(w);
}

static int on_change(struct rest_watch *w, struct span type, const struct json *value,
                     struct err *e)
{
    OWN(object_done) struct object *o = NULL;
    enum kube_event event = span_is(type, "ADDED")      ? KUBE_ADDED
                            : span_is(type, "MODIFIED") ? KUBE_MODIFIED
                                                        : KUBE_DELETED;

    if (event == KUBE_DELETED && !span_is(type, "DELETED"))
        return err_set(e, ERR_PROTOCOL, "an event of an unknown type");
    if (!span_is(json_str(json_get(value, "kind")), w->kind->name))
        return err_set(e, ERR_PROTOCOL, "an event that is not of a %s", w->kind->name);
    if (object_parse(w->kind, value, &o, e) < 0)
        return -1;
    if (!object_version(o))
        return err_set(e, ERR_PROTOCOL, "an event without a resourceVersion");
    tell(w, event, o, object_version(o));
    return 0;
}

static int on_frame(struct rest_watch *w, struct span frame, struct err *e)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    const struct json *object;
    struct span type;

    if (json_parse(frame, NULL, &doc, e) < 0)
        return -1;
    type = json_str(json_get(json_doc_root(doc), "type"));
    object = json_get(json_doc_root(doc), "object");
    if (span_is(type, "BOOKMARK"))
        on_bookmark(w, object);
    else if (span_is(type, "ERROR"))
        on_error(w, object);
    else
        return on_change(w, type, object, e);
    return 0;
}

/* ---- requests ---- */

static void open_now(void *ctx);

static void open_later(struct rest_watch *w, uint64_t ms)
{
    w->state = WATCH_WAITING;
    ev_timer_start(w->base.client->loop, &w->timer, ms, open_now, w);
}

static void open_slower(struct rest_watch *w)
{
    open_later(w, backoff_next_ms(&w->backoff));
}

static void on_head(void *ctx, const struct http_head *head)
{
    struct rest_watch *w = ctx;

    rest_note_reach(client_of(w), NULL);
    rest_verdict_read(head, &w->verdict);
    if (head->status == 200)
        w->is_renewed = false; /* the next credential that ends may be renewed too */
}

static void on_data(void *ctx, struct span bytes)
{
    struct rest_watch *w = ctx;
    struct err e;

    if (w->verdict.status != 200) {
        (void)buf_add_capped(&w->body, bytes);
        return;
    }
    while (bytes.n && w->state == WATCH_OPEN && !w->is_again) {
        size_t used = 0;
        enum feed got = cut_feed(&w->cut, bytes, &used, &e);

        if (got == FEED_BAD || (got == FEED_DONE && on_frame(w, buf_span(&w->cut.value), &e) < 0)) {
            end_broken(w, &e);
            return;
        }
        bytes = span_skip(bytes, used);
    }
}

static void on_refused(struct rest_watch *w)
{
    int status = w->verdict.status;

    if (status == 401 && !w->is_renewed && access_renew(client_of(w)->access, w->generation)) {
        w->is_renewed = true;
        open_later(w, 0);
    } else if ((status == 429 || status >= 500) && w->verdict.has_retry) {
        open_later(w, MAX(w->verdict.retry_ms, (uint64_t)WATCH_PAUSE_FIRST_MS));
    } else if (status == 429 || status >= 500) {
        open_slower(w);
    } else {
        rest_refusal(&w->why, status, buf_span(&w->body));
        end(w);
    }
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct rest_watch *w = ctx;
    bool was_good = ev_now_ms(w->base.client->loop) - w->opened_ms >= WATCH_GOOD_MS;
    bool is_passing = !e || rest_is_passing(w->http, e);

    (void)trailers;
    w->http = NULL;
    if (!w->verdict.status ||
        !e) /* the end of a stream that was there says nothing of the next one */
        rest_note_reach(client_of(w), e);
    if (w->state == WATCH_ENDING) {
        finish(w);
    } else if (!e && w->verdict.status != 200) {
        on_refused(w);
    } else if (!is_passing && !w->is_again) {
        rest_no_answer(&w->why, e);
        end(w);
    } else if (w->verdict.status == 200 && was_good && !w->is_again) {
        backoff_reset(&w->backoff);
        open_later(w, 0);
    } else {
        open_slower(w);
    }
}

static const struct http_call_events events = { on_head, on_data, NULL, on_done, NULL };

static int say(struct rest_watch *w, struct err *e)
{
    const struct kube_watch_spec spec = { w->kind,   w->version, w->namespace,
                                          w->labels, w->fields,  w->seen };
    const struct http_call_spec how = {
        .head_ms = client_of(w)->timeout_ms,
        .idle_ms = WATCH_SILENT_MS,
        .events = &events,
        .ctx = w,
    };
    OWN(buf_done) struct buf target = BUF_INIT(2 * REST_TARGET_MAX_BYTES);
    OWN(rest_request_done) struct rest_request r = { 0 };

    if (rest_request_watch(&spec, MAX(w->seen, 1ull), (unsigned)backoff_jitter_ms(WATCH_SECONDS, 1),
                           &r, e) < 0 ||
        buf_add(&target, buf_span(&r.path), e) < 0 || buf_add(&target, buf_span(&r.query), e) < 0)
        return -1;
    if (rest_send(client_of(w), &r, buf_span(&target), &how, &w->http, e) < 0)
        return -1;
    w->generation = access_generation(client_of(w)->access);
    return 0;
}

static void on_access(void *ctx, const struct err *e)
{
    struct rest_watch *w = ctx;

    if (e)
        open_slower(w); /* the plugin's server may be back before ours needs it */
    else
        open_now(w);
}

static void open_now(void *ctx)
{
    struct rest_watch *w = ctx;
    struct kubeclient *c = client_of(w);
    struct err e;

    if (!access_is_ready(c->access)) {
        w->waiter = (struct access_waiter){ .fn = on_access, .ctx = w };
        access_wait(c->access, &w->waiter);
        return;
    }
    cut_done(&w->cut);
    cut_init(&w->cut, CUT_STREAM, REST_OBJECT_MAX_BYTES);
    buf_clear(&w->body);
    w->verdict = (struct rest_verdict){ 0 };
    w->is_again = false;
    w->opened_ms = ev_now_ms(c->base.loop);
    if (say(w, &e) < 0) {
        (void)status_bad_request(&w->why, "%s", e.msg);
        end(w);
        return;
    }
    w->state = WATCH_OPEN;
}

/* ---- verbs ---- */

static char *copy(const char *text)
{
    return text ? own_strdup(text) : NULL;
}

struct kube_watch *rest_watch_start(struct kube_client *base, const struct kube_watch_spec *spec,
                                    const struct kube_watch_events *told, void *ctx)
{
    struct kubeclient *c = CONTAINER(base, struct kubeclient, base);
    struct rest_watch *w = NEW(struct rest_watch);

    w->base.client = base;
    w->kind = spec->kind;
    w->version = copy(spec->version);
    w->namespace = copy(spec->namespace);
    w->labels = copy(spec->labels);
    w->fields = copy(spec->fields);
    w->seen = spec->from_version;
    w->events = *told;
    w->ctx = ctx;
    w->backoff = (struct backoff){ WATCH_PAUSE_FIRST_MS, WATCH_PAUSE_MAX_MS, 1, 0 };
    w->body.max = STATUS_TEXT_MAX_BYTES;
    w->why = (struct status)STATUS_INIT;
    w->at = &c->watches;
    w->next = c->watches;
    if (w->next)
        w->next->at = &w->next;
    c->watches = w;
    ev_post(base->loop, &w->task, open_now, w);
    return &w->base;
}

void rest_watch_stop(struct kube_watch *base)
{
    struct rest_watch *w = CONTAINER(base, struct rest_watch, base);
    struct err e;

    if (w->state >= WATCH_ENDING)
        return;
    (void)err_set(&e, ERR_CANCELED, "the watch was stopped");
    rest_no_answer(&w->why, &e);
    end(w);
}

void rest_watches_end(struct kubeclient *c)
{
    for (struct rest_watch *w = c->watches; w; w = w->next)
        rest_watch_stop(&w->base);
}
