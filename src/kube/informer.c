#include "kube/informer.h"

#include "base/log.h"
#include "ev/timer.h"
#include "kube/backoff.h"
#include "kube/informer_copy.h"
#include "kube/select.h"

#include <string.h>

#define RETRY_FIRST_MS 100
#define RETRY_MOST_MS  30000
#define RETRY_JITTER   1.0
#define NOT_SAID       (-1)
#define STEADY_MS                                                                                  \
    10000 /* a watch that lasted so long was no failure: the next wait is the first again */
#define NOTES_KEPT 1024 /* room that stays when all is told; the first list needs more */

struct listener {
    struct listener *next;
    struct informer_listener fns;
    void *ctx;
    bool is_joined;        /* has heard of what was there */
    struct object **there; /* until then: what that is */
    size_t there_count;
};

enum note_type { NOTE_ADD, NOTE_UPDATE, NOTE_DELETE, NOTE_JOIN, NOTE_SYNCED };

/* What listeners have yet to hear. It holds what the copy held before, so that nothing borrowed goes away before the
 * callback returns that borrowed it. */
struct note {
    enum note_type type;
    bool is_initial;
    struct object *old, *now;
    struct listener *listener; /* NOTE_JOIN */
};

struct informer {
    struct kube_client *client;
    struct ev_loop *loop;
    struct informer_spec spec; /* its texts are ours */
    struct selector *labels;
    struct field_selector *fields;
    struct copy copy;

    struct kube_call *call; /* a list under way */
    struct kube_watch *watch;
    struct ev_timer retry;
    struct backoff backoff;
    int said_code; /* of the refusal that the log has; NOT_SAID: all is well */
    uint64_t failures, failing_since_ms;
    uint64_t watching_since_ms;
    uint32_t round;        /* lists so far */
    uint64_t list_version; /* of the list under way */
    uint64_t seen_version; /* the copy has everything up to here, or more */
    bool is_started, is_synced, is_closed;

    struct listener *listeners, **last_listener;
    struct note *notes; /* a ring */
    size_t note_cap, note_first, note_count;
    struct ev_task tell;
    bool is_synced_told;
};

/* ---- listeners ---- */

static void tell_all(void *ctx);

/* Takes the references. */
static void push_note(struct informer *inf, struct note n)
{
    if (inf->note_count == inf->note_cap) {
        size_t cap = inf->note_cap ? inf->note_cap * 2 : 16;
        struct note *notes = own_array(cap, sizeof *notes);

        for (size_t i = 0; i < inf->note_count; i++)
            notes[i] = inf->notes[(inf->note_first + i) & (inf->note_cap - 1)];
        free(inf->notes);
        inf->notes = notes;
        inf->note_cap = cap;
        inf->note_first = 0;
    }
    inf->notes[(inf->note_first + inf->note_count++) & (inf->note_cap - 1)] = n;
    if (!inf->tell.is_queued)
        ev_post(inf->loop, &inf->tell, tell_all, inf);
}

static struct note pop_note(struct informer *inf)
{
    struct note n = inf->notes[inf->note_first];

    inf->note_first = (inf->note_first + 1) & (inf->note_cap - 1);
    if (--inf->note_count == 0 && inf->note_cap > NOTES_KEPT) {
        free(take_ptr(&inf->notes));
        inf->note_cap = inf->note_first = 0;
    }
    return n;
}

static void drop_there(struct listener *l)
{
    for (size_t i = 0; i < l->there_count; i++)
        object_unref(l->there[i]);
    free(take_ptr(&l->there));
    l->there_count = 0;
}

static void tell_join(struct informer *inf, struct listener *l)
{
    for (size_t i = 0; i < l->there_count && l->fns.on_add && !inf->is_closed; i++)
        l->fns.on_add(l->ctx, l->there[i], true);
    l->is_joined = true;
    drop_there(l);
    if (inf->is_synced_told && l->fns.on_synced && !inf->is_closed)
        l->fns.on_synced(l->ctx);
}

static void tell_one(struct listener *l, const struct note *n)
{
    switch (n->type) {
    case NOTE_ADD:
        if (l->fns.on_add)
            l->fns.on_add(l->ctx, n->now, n->is_initial);
        break;
    case NOTE_UPDATE:
        if (l->fns.on_update)
            l->fns.on_update(l->ctx, n->old, n->now);
        break;
    case NOTE_DELETE:
        if (l->fns.on_delete)
            l->fns.on_delete(l->ctx, n->now);
        break;
    case NOTE_SYNCED:
        if (l->fns.on_synced)
            l->fns.on_synced(l->ctx);
        break;
    case NOTE_JOIN:
        break;
    }
}

/* What is noted meanwhile is for the next turn. */
static void tell_all(void *ctx)
{
    struct informer *inf = ctx;

    for (size_t left = inf->note_count; left && !inf->is_closed; left--) {
        struct note n = pop_note(inf);

        if (n.type == NOTE_SYNCED)
            inf->is_synced_told = true;
        if (n.type == NOTE_JOIN)
            tell_join(inf, n.listener);
        for (struct listener *l = n.type == NOTE_JOIN ? NULL : inf->listeners; l; l = l->next)
            if (l->is_joined && !inf->is_closed)
                tell_one(l, &n);
        object_unref(n.old);
        object_unref(n.now);
    }
    if (inf->note_count && !inf->is_closed && !inf->tell.is_queued)
        ev_post(inf->loop, &inf->tell, tell_all, inf);
}

void informer_listen(struct informer *inf, const struct informer_listener *listener, void *ctx)
{
    struct listener *l = NEW(struct listener);

    l->fns = *listener;
    l->ctx = ctx;
    l->is_joined = !inf->is_started;
    *inf->last_listener = l;
    inf->last_listener = &l->next;
    if (l->is_joined)
        return;
    l->there = own_array(MAX(inf->copy.names.count, (size_t)1), sizeof(struct object *));
    for (struct informer_place *p = inf->copy.first; p; p = p->next)
        l->there[l->there_count++] = object_ref(p->entry->object);
    push_note(inf, (struct note){ .type = NOTE_JOIN, .listener = l });
}

/* ---- changes ---- */

static struct object *trimmed(const struct informer *inf, struct object *o)
{
    return inf->spec.trim ? inf->spec.trim(o) : object_ref(o);
}

struct object *informer_trim_managed(struct object *o)
{
    static const char *const drop[] = { "managedFields", NULL };
    OWN(object_done) struct object *less = NULL;
    struct err e;

    if (!json_get(object_meta(o), "managedFields") ||
        object_with_meta(o, &(struct meta_change){ .drop = drop }, &less, &e) < 0)
        return object_lean(o);
    return object_lean(less);
}

static void add(struct informer *inf, struct object *o)
{
    struct copy_entry *entry = copy_add(&inf->copy, trimmed(inf, o));

    push_note(inf, (struct note){ .type = NOTE_ADD,
                                  .is_initial = !inf->is_synced,
                                  .now = object_ref(entry->object) });
}

/* `last` is what is told of it; NULL: what is known. */
static void drop(struct informer *inf, struct copy_entry *entry, struct object *last)
{
    struct object *known = copy_remove(&inf->copy, entry);

    push_note(inf, (struct note){ .type = NOTE_DELETE,
                                  .old = known,
                                  .now = last ? trimmed(inf, last) : object_ref(known) });
}

/* The object is now o, whatever the copy says. */
static void put(struct informer *inf, struct copy_entry *entry, struct object *o)
{
    if (entry && strcmp(object_uid(entry->object), object_uid(o)) != 0) {
        drop(inf, entry, NULL);
        entry = NULL;
    }
    if (!entry) {
        add(inf, o);
        return;
    }
    push_note(inf, (struct note){ .type = NOTE_UPDATE,
                                  .old = copy_replace(&inf->copy, entry, trimmed(inf, o)),
                                  .now = object_ref(entry->object) });
    entry->learned = 0;
}

static struct copy_entry *entry_of(const struct informer *inf, const struct object *o)
{
    return copy_find(&inf->copy, object_namespace(o), object_name(o));
}

static bool is_selected(const struct informer *inf, const struct object *o)
{
    return selector_matches_object(inf->labels, o) && field_selector_matches(inf->fields, o);
}

size_t informer_pack(struct informer_walk *w, size_t count)
{
    size_t packed = 0;

    while (packed < count && w->at) {
        struct copy_entry *entry = w->at->entry;

        w->at = w->at->next;
        object_unref(copy_replace(&w->inf->copy, entry, object_lean(entry->object)));
        packed++;
    }
    return packed;
}

void informer_learn(struct informer *inf, struct object *o)
{
    struct copy_entry *entry = entry_of(inf, o);
    uint64_t version = object_version(o);

    if (inf->is_closed || version <= inf->seen_version ||
        (entry && object_version(entry->object) >= version) ||
        (inf->spec.namespace && strcmp(inf->spec.namespace, object_namespace(o)) != 0))
        return;
    if (!is_selected(inf, o)) {
        if (entry)
            drop(inf, entry, o);
        return;
    }
    put(inf, entry, o);
    entry_of(inf, o)->learned = inf->round;
}

/* ---- list and watch ---- */

static void start_list(struct informer *inf, const char *next);

static void on_retry(void *ctx)
{
    start_list(ctx, NULL);
}

static void free_informer(void *ctx)
{
    struct informer *inf = ctx;

    while (inf->note_count) {
        struct note n = pop_note(inf);

        object_unref(n.old);
        object_unref(n.now);
    }
    free(inf->notes);
    for (struct listener *l = inf->listeners, *next; l; l = next) {
        next = l->next;
        drop_there(l);
        free(l);
    }
    copy_done(&inf->copy);
    selector_free(inf->labels);
    field_selector_free(inf->fields);
    free((char *)inf->spec.version);
    free((char *)inf->spec.namespace);
    free((char *)inf->spec.labels);
    free((char *)inf->spec.fields);
    free(inf);
}

/* It was closed: frees it when the last callback it waits for has come. */
static void end(struct informer *inf)
{
    assert(!inf->copy.walks);
    if (!inf->call && !inf->watch)
        ev_free_later(inf->loop, inf, free_informer);
}

/* What goes on for hours is one line in the log, and another one when it is over. */
static void retry(struct informer *inf, const char *what, const struct status *why)
{
    uint64_t ms = backoff_next_ms(&inf->backoff);

    if (why->retry_after_s > 0)
        ms = MAX(ms, (uint64_t)why->retry_after_s * 1000);
    inf->failures++;
    if (inf->said_code == NOT_SAID)
        inf->failing_since_ms = ev_now_ms(inf->loop);
    LOG_AT(inf->said_code == why->code ? LOG_DEBUG : LOG_WARN, "informer.retry",
           KV("kind", inf->spec.kind->name), KV("what", what), KV("code", why->code),
           KV("err", buf_cstr(&why->message)), KV("retry_ms", ms));
    inf->said_code = why->code;
    ev_timer_start(inf->loop, &inf->retry, ms, on_retry, inf);
}

static void on_event(void *ctx, enum kube_event type, struct object *o, uint64_t version)
{
    struct informer *inf = ctx;
    struct copy_entry *entry = o ? entry_of(inf, o) : NULL;

    if (inf->is_closed)
        return;
    switch (type) {
    case KUBE_ADDED:
    case KUBE_MODIFIED:
        if (!entry || object_version(entry->object) < object_version(o))
            put(inf, entry, o);
        break;
    case KUBE_DELETED:
        if (entry && object_version(entry->object) <= version)
            drop(inf, entry, o);
        break;
    case KUBE_BOOKMARK:
        break;
    }
    inf->seen_version = MAX(inf->seen_version, version);
}

static void on_end(void *ctx, const struct status *why)
{
    struct informer *inf = ctx;

    inf->watch = NULL;
    if (inf->is_closed) {
        end(inf);
        return;
    }
    if (ev_now_ms(inf->loop) - inf->watching_since_ms >= STEADY_MS)
        backoff_reset(&inf->backoff);
    retry(inf, "watch", why);
}

static void start_watch(struct informer *inf)
{
    static const struct kube_watch_events events = { on_event, on_end };
    const struct informer_spec *s = &inf->spec;

    inf->watching_since_ms = ev_now_ms(inf->loop);
    inf->watch = kube_watch_start(inf->client,
                                  &(struct kube_watch_spec){ .kind = s->kind,
                                                             .version = s->version,
                                                             .namespace = s->namespace,
                                                             .labels = s->labels,
                                                             .fields = s->fields,
                                                             .from_version = inf->seen_version },
                                  &events, inf);
}

/* Learnt while this list was under way, and newer than what it shows. Older lessons do not count against it: a list
 * shows all that was written before it was asked for, so what it does not show was undone. */
static bool is_ahead(const struct informer *inf, const struct copy_entry *entry)
{
    return entry->learned == inf->round && object_version(entry->object) > inf->list_version;
}

static void on_item(struct informer *inf, struct object *o)
{
    struct copy_entry *entry = entry_of(inf, o);
    bool is_known = entry && object_version(entry->object) == object_version(o) &&
                    strcmp(object_uid(entry->object), object_uid(o)) == 0;

    if (!is_known && !(entry && is_ahead(inf, entry))) {
        put(inf, entry, o);
        entry = entry_of(inf, o);
    }
    entry->listed = inf->round;
}

static void finish_list(struct informer *inf)
{
    struct informer_place *next;

    for (struct informer_place *p = inf->copy.first; p; p = next) {
        next = p->next;
        if (p->entry->listed != inf->round && !is_ahead(inf, p->entry))
            drop(inf, p->entry, NULL);
    }
    inf->seen_version = inf->list_version;
    if (inf->said_code != NOT_SAID)
        log_info("informer.well", KV("kind", inf->spec.kind->name),
                 KV("ms", ev_now_ms(inf->loop) - inf->failing_since_ms));
    inf->said_code = NOT_SAID;
    if (!inf->is_synced) {
        inf->is_synced = true;
        push_note(inf, (struct note){ .type = NOTE_SYNCED });
    }
    start_watch(inf);
}

static void on_list(void *ctx, const struct kube_answer *answer)
{
    struct informer *inf = ctx;

    inf->call = NULL;
    if (inf->is_closed) {
        end(inf);
        return;
    }
    if (answer->refusal) {
        retry(inf, "list", answer->refusal);
        return;
    }
    if (!inf->list_version)
        inf->list_version = answer->version;
    for (size_t i = 0; i < answer->item_count; i++)
        on_item(inf, answer->items[i]);
    if (answer->next)
        start_list(inf, answer->next);
    else
        finish_list(inf);
}

/* next: the page after the last one; NULL: a list from its beginning. */
static void start_list(struct informer *inf, const char *next)
{
    const struct informer_spec *s = &inf->spec;

    if (!next) {
        inf->round++;
        inf->list_version = 0;
    }
    inf->call = kube_call_start(inf->client,
                                &(struct kube_request){ .verb = KUBE_LIST,
                                                        .kind = s->kind,
                                                        .version = s->version,
                                                        .namespace = s->namespace,
                                                        .labels = s->labels,
                                                        .fields = s->fields,
                                                        .limit = INFORMER_PAGE,
                                                        .next = next },
                                on_list, inf);
}

/* ---- life ---- */

static char *copy_text(const char *s)
{
    return s ? own_strdup(s) : NULL;
}

int informer_new(struct kube_client *client, const struct informer_spec *spec,
                 struct informer **ret, struct err *e)
{
    struct informer *inf = NEW(struct informer);

    inf->client = client;
    inf->loop = kube_client_loop(client);
    inf->spec = *spec;
    inf->spec.version = copy_text(spec->version);
    inf->spec.namespace = copy_text(spec->namespace);
    inf->spec.labels = copy_text(spec->labels);
    inf->spec.fields = copy_text(spec->fields);
    inf->last_listener = &inf->listeners;
    inf->said_code = NOT_SAID;
    inf->backoff = (struct backoff){ RETRY_FIRST_MS, RETRY_MOST_MS, RETRY_JITTER, 0 };
    copy_init(&inf->copy, spec->indexes, spec->index_count);
    if ((spec->labels && selector_parse(span_cstr(spec->labels), &inf->labels, e) < 0) ||
        (spec->fields &&
         field_selector_parse(spec->kind, span_cstr(spec->fields), &inf->fields, e) < 0)) {
        free_informer(inf);
        return -1;
    }
    *ret = inf;
    return 0;
}

void informer_start(struct informer *inf)
{
    assert(!inf->is_started);
    inf->is_started = true;
    start_list(inf, NULL);
}

void informer_close(struct informer *inf)
{
    if (!inf || inf->is_closed)
        return;
    inf->is_closed = true;
    ev_timer_stop(inf->loop, &inf->retry);
    ev_post_cancel(&inf->tell);
    if (inf->call)
        kube_call_cancel(inf->call);
    if (inf->watch)
        kube_watch_stop(inf->watch);
    end(inf);
}

/* ---- looking ---- */

bool informer_is_failing(const struct informer *inf, uint64_t *ret_failures)
{
    *ret_failures = inf->failures;
    return inf->said_code != NOT_SAID;
}

bool informer_is_synced(const struct informer *inf)
{
    return inf->is_synced;
}

size_t informer_count(const struct informer *inf)
{
    return inf->copy.names.count;
}

struct object *informer_get(const struct informer *inf, const char *namespace, const char *name)
{
    struct copy_entry *entry = copy_find(&inf->copy, namespace, name);

    return entry ? entry->object : NULL;
}

size_t informer_count_of(const struct informer *inf, size_t index, const char *namespace,
                         const char *key)
{
    struct copy_key *found = copy_key(&inf->copy, index, namespace, key);

    return found ? found->count : 0;
}

static void walk_from(struct informer_walk *w, struct informer *inf, struct informer_place *at)
{
    *w = (struct informer_walk){ inf, inf->copy.walks, &inf->copy.walks, at };
    if (w->next)
        w->next->link = &w->next;
    inf->copy.walks = w;
}

void informer_walk(struct informer_walk *w, struct informer *inf, size_t index,
                   const char *namespace, const char *key)
{
    struct copy_key *found = copy_key(&inf->copy, index, namespace, key);

    walk_from(w, inf, found ? found->first : NULL);
}

void informer_walk_all(struct informer_walk *w, struct informer *inf)
{
    walk_from(w, inf, inf->copy.first);
}

struct object *informer_walk_next(struct informer_walk *w)
{
    struct informer_place *at = w->at;

    if (!at)
        return NULL;
    w->at = at->next;
    return at->entry->object;
}

void informer_walk_done(struct informer_walk *w)
{
    if (!w->inf)
        return;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    w->inf = NULL;
    w->at = NULL;
}
