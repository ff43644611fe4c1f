#include "controller/event.h"

#include "base/log.h"
#include "base/time.h"
#include "controller/limits.h"
#include "controller/names.h"
#include "controller/shared.h"
#include "ev/timer.h"
#include "kube/keymap.h"
#include "kube/time.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void put_regarding(struct json_node *body, const struct object *o)
{
    const struct kind *kind = object_kind(o);
    struct json_node *to = tree_object(body, "regarding");

    tree_text(to, "apiVersion", kind_api_version(kind, &kind->versions[0]));
    tree_text(to, "kind", kind->name);
    tree_text(to, "namespace", object_namespace(o));
    tree_text(to, "name", object_name(o));
    tree_text(to, "uid", object_uid(o));
}

/* Cut between characters. */
static void put_note(struct json_node *body, const char *note)
{
    size_t n = strlen(note);

    if (n > EVENT_NOTE_MAX_BYTES) {
        n = EVENT_NOTE_MAX_BYTES;
        while (n && ((unsigned char)note[n] & 0xc0) == 0x80)
            n--;
    }
    json_node_set(body, "note", json_edit_str(json_node_edit(body), span_of(note, n)));
}

/* As client-go says it: which controller, on which host. */
static const char *instance(const char *controller)
{
    static char text[128]; /* the API takes no more */
    char host[HOST_NAME_MAX + 1] = "";

    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(text, sizeof text, "%s-%s", controller, host);
    return text;
}

#define NAME_BYTES 320

/* As client-go names them: the object, and the moment in hexadecimal nanoseconds. */
static const char *name_of(const struct event *event, struct timespec now, char name[NAME_BYTES])
{
    (void)snprintf(name, NAME_BYTES, "%.253s.%llx", object_name(event->about),
                   (unsigned long long)now.tv_sec * 1000000000ull +
                       (unsigned long long)now.tv_nsec);
    return name;
}

struct step event_step(const struct event *event, struct timespec now, struct json_edit *ed)
{
    const struct object *o = event->about;
    char name[NAME_BYTES], time[TIME_TEXT_BYTES];
    struct step step;

    step = step_create(ed, known_kinds()->event, object_namespace(o), NULL);
    tree_text(tree_object(step.body, "metadata"), "name", name_of(event, now, name));
    tree_text(step.body, "eventTime", kube_microtime_text(time, now));
    tree_text(step.body, "reportingController", event->controller);
    tree_text(step.body, "reportingInstance", instance(event->controller));
    tree_text(step.body, "type", event->is_warning ? "Warning" : "Normal");
    tree_text(step.body, "reason", event->reason);
    tree_text(step.body, "action", event->action);
    put_note(step.body, event->note);
    put_regarding(step.body, o);
    return step;
}

/* ---- what was warned of lately ---- */

/* One Event that is there, and how often it was meant. */
struct series {
    struct keymap_node node; /* by the object's uid, and by what was said */
    struct series *next, *prev;
    char *uid, *what;       /* texts of the node */
    char *namespace, *name; /* of the Event */
    const char *controller;
    uint64_t count, written; /* times; that the Event says */
    uint64_t last_ms;        /* by a clock that never goes back */
    struct timespec last;
};

/* One of something that went well: it waits to be written until claims do not need the time. */
struct waiting {
    struct waiting *next;
    struct event event; /* `about` is ours, `note` below; the other texts are constants */
    struct timespec now;
    char note[];
};

struct events {
    struct shared *shared;
    struct kube_client *client;
    struct ev_loop *loop; /* the client's, which may end before its calls do */
    struct keymap map;
    struct series *oldest, *newest; /* in the order they were last meant */
    struct ev_timer quiet;
    struct waiting *first, **last;
    size_t waiting_count;
    struct ev_task task;
    struct ev_timer
        pause; /* before those that were told since are written, or while a claim holds them back */
    size_t calls;             /* under way, with an answer that comes here */
    struct bucket complaints; /* lines in the log about Events that were not written */
    bool is_closed;
};

static void unlink_series(struct events *ev, struct series *s)
{
    *(s->prev ? &s->prev->next : &ev->oldest) = s->next;
    *(s->next ? &s->next->prev : &ev->newest) = s->prev;
}

static void link_newest(struct events *ev, struct series *s)
{
    s->prev = ev->newest;
    s->next = NULL;
    *(s->prev ? &s->prev->next : &ev->oldest) = s;
    ev->newest = s;
}

static void forget(struct events *ev, struct series *s)
{
    unlink_series(ev, s);
    keymap_remove(&ev->map, &s->node);
    free(s->uid);
    free(s->what);
    free(s->namespace);
    free(s->name);
    free(s);
}

static void free_closed(struct events *ev)
{
    if (ev->is_closed && !ev->calls)
        ev_free_later(ev->loop, ev, free);
}

/* ---- writes ---- */

/* A call, and which series it is of; that may be gone when its answer comes. */
struct told {
    struct events *events;
    char *uid, *what; /* NULL: of none */
};

static struct series *find(struct events *ev, const char *uid, const char *what)
{
    struct keymap_node *found = uid ? keymap_get(&ev->map, uid, what) : NULL;

    return found ? CONTAINER(found, struct series, node) : NULL;
}

static void write_some(void *ctx);

static void end_told(struct told *t)
{
    struct events *ev = t->events;

    ev->calls--;
    if (ev->first && !ev->is_closed && !ev->task.is_queued)
        ev_post(ev->loop, &ev->task, write_some, ev);
    free_closed(ev);
    free(t->uid);
    free(t->what);
    free(t);
}

/* An Event that is not there, because it has expired or was never written, is made anew the next time. */
static void on_written(void *ctx, const struct kube_answer *answer)
{
    struct told *t = ctx;
    struct series *s = find(t->events, t->uid, t->what);

    if (answer->refusal && answer->refusal->code)
        LOG_AT(bucket_take(&t->events->complaints, ev_now_ms(t->events->loop)) ? LOG_WARN
                                                                               : LOG_DEBUG,
               "event.write", KV("code", answer->refusal->code),
               KV("err", buf_cstr(&answer->refusal->message)));
    if (answer->refusal && s)
        forget(t->events, s);
    end_told(t);
}

static void write_step(struct events *ev, const struct step *step, const char *controller,
                       const struct series *s)
{
    struct told *t = NEW(struct told);
    struct kube_call *call;
    struct err e;

    *t = (struct told){ ev, s ? own_strdup(s->uid) : NULL, s ? own_strdup(s->what) : NULL };
    ev->calls++;
    if (step_start(ev->client, step, controller, on_written, t, &call, &e) == 0)
        return;
    log_warn("event.write", KV("err", &e));
    end_told(t);
}

static void write_count(struct events *ev, struct series *s)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(PASS_MAX_BYTES);
    struct step step = { .verb = STEP_PATCH,
                         .kind = known_kinds()->event,
                         .namespace = s->namespace,
                         .name = s->name,
                         .body = json_edit_object(ed) };
    struct json_node *series = tree_object(step.body, "series");
    char time[TIME_TEXT_BYTES];

    json_node_set(series, "count", json_edit_i64(ed, (int64_t)s->count));
    tree_text(series, "lastObservedTime", kube_microtime_text(time, s->last));
    s->written = s->count;
    write_step(ev, &step, s->controller, s);
}

/* It is quiet, or there are too many: what it came to is written, and a later warning is a new Event. */
static void finish(struct events *ev, struct series *s)
{
    if (s->count > s->written)
        write_count(ev, s);
    forget(ev, s);
}

static void on_quiet(void *ctx)
{
    struct events *ev = ctx;
    uint64_t now_ms = time_mono_ms();

    while (ev->oldest && ev->oldest->last_ms + EVENT_SERIES_MS <= now_ms)
        finish(ev, ev->oldest);
    if (ev->oldest)
        ev_timer_start(ev->loop, &ev->quiet, ev->oldest->last_ms + EVENT_SERIES_MS - now_ms,
                       on_quiet, ev);
}

static void begin_series(struct events *ev, const struct event *event, const char *what,
                         struct timespec now)
{
    struct series *s = NEW(struct series);
    char name[NAME_BYTES];

    if (ev->map.count == EVENT_SERIES_MAX)
        finish(ev, ev->oldest);
    *s = (struct series){ .uid = own_strdup(object_uid(event->about)),
                          .what = own_strdup(what),
                          .namespace = own_strdup(object_namespace(event->about)),
                          .name = own_strdup(name_of(event, now, name)),
                          .controller = event->controller,
                          .count = 1,
                          .written = 1,
                          .last_ms = time_mono_ms(),
                          .last = now };
    keymap_add(&ev->map, &s->node, s->uid, s->what);
    link_newest(ev, s);
    if (!ev_timer_is_running(&ev->quiet))
        ev_timer_start(ev->loop, &ev->quiet, EVENT_SERIES_MS, on_quiet, ev);
}

static void count_again(struct events *ev, struct series *s, struct timespec now)
{
    s->count++;
    s->last = now;
    s->last_ms = time_mono_ms();
    unlink_series(ev, s);
    link_newest(ev, s);
    if (s->count >= 2 * s->written)
        write_count(ev, s);
}

/* ---- what went well ---- */

static void write_first(struct events *ev)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(PASS_MAX_BYTES);
    struct waiting *w = ev->first;
    struct step step = event_step(&w->event, w->now, ed);

    ev->first = w->next;
    if (!w->next)
        ev->last = &ev->first;
    ev->waiting_count--;
    write_step(ev, &step, w->event.controller, NULL);
    object_unref((struct object *)w->event.about);
    free(w);
}

/* The next ones come when these are answered. */
static void write_some(void *ctx)
{
    struct events *ev = ctx;
    size_t idle = ev->shared->is_remote ? EVENTS_REMOTE : EVENTS_IDLE;
    size_t most = shared_is_busy(ev->shared) ? EVENTS_BUSY : idle;

    if (shared_holds(ev->shared)) {
        ev_timer_start(ev->loop, &ev->pause, EVENTS_HELD_MS, write_some, ev);
        return;
    }
    while (ev->calls < most && ev->first)
        write_first(ev);
}

static void write_later(struct events *ev, const struct event *event, struct timespec now)
{
    size_t n = strlen(event->note) + 1;
    struct waiting *w = own_new(sizeof *w + n);

    w->event = *event;
    w->event.about = object_ref((struct object *)event->about);
    w->event.note = w->note;
    memcpy(w->note, event->note, n);
    w->now = now;
    *ev->last = w;
    ev->last = &w->next;
    if (++ev->waiting_count > EVENTS_WAITING_MAX)
        write_first(ev);
    if (!ev_timer_is_running(&ev->pause))
        ev_timer_start(ev->loop, &ev->pause, EVENTS_PAUSE_MS, write_some, ev);
}

void event_emit(struct events *ev, const struct event *event)
{
    OWN(json_edit_done) struct json_edit *ed = NULL;
    struct series *s;
    struct timespec now;
    struct step step;
    char what[256];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (!event->is_warning) {
        write_later(ev, event, now);
        return;
    }
    (void)snprintf(what, sizeof what, "%s/%s/%s", event->controller, event->reason, event->action);
    s = find(ev, object_uid(event->about), what);
    if (s) {
        count_again(ev, s, now);
        return;
    }
    ed = json_edit_new(PASS_MAX_BYTES);
    step = event_step(event, now, ed);
    begin_series(ev, event, what, now);
    write_step(ev, &step, event->controller, ev->newest);
}

/* ---- life ---- */

struct events *events_new(struct shared *shared)
{
    struct events *ev = NEW(struct events);

    ev->shared = shared;
    ev->client = shared->client;
    ev->loop = kube_client_loop(shared->client);
    ev->last = &ev->first;
    bucket_init(&ev->complaints, COMPLAINTS_A_MINUTE / 60.0, COMPLAINTS_A_MINUTE,
                ev_now_ms(ev->loop));
    return ev;
}

void events_close(struct events *ev)
{
    if (!ev)
        return;
    ev_timer_stop(ev->loop, &ev->quiet);
    ev_timer_stop(ev->loop, &ev->pause);
    while (ev->first)
        write_first(ev);
    ev_post_cancel(&ev->task);
    while (ev->oldest)
        forget(ev, ev->oldest);
    keymap_done(&ev->map);
    ev->is_closed = true;
    free_closed(ev);
}
