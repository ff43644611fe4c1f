#include "apiserver/history.h"

#include "apiserver/limits.h"
#include "base/hash.h"

#define FIRST_RING    16
#define FIRST_BUCKETS 64

/* The events of one kind, by number: [first, end) are here, those before `told` are on disk. */
#define UNDONE_MAX 64   /* failures that are remembered; between two of them commits went well */
#define UNDO_MAX   4096 /* events; each is a put of a shelf, so this is some ms */

struct ring {
    struct store_event **slots;
    size_t cap; /* a power of two */
    uint64_t first, told, end;
    uint64_t old;     /* those before were given by history_next_old */
    uint64_t lost;    /* the version of the last event that was forgotten */
    unsigned keepers; /* watches that keep objects */
};

struct history {
    struct ev_loop *loop;
    struct ring *rings;
    unsigned kinds, old_kind;   /* old_kind: where history_next_old looks first */
    struct store_event **fresh; /* not on disk, oldest first; each is in its ring too */
    size_t fresh_count, fresh_cap, fresh_at;
    struct {
        uint64_t first, last;
    } undone[UNDONE_MAX]; /* versions of writes that were taken back, latest first */
    struct store_watch **buckets;
    size_t bucket_count, watch_count;
    struct store_watch *ready_first, *ready_last;
    struct store_watch *running; /* whose on_event is on the stack */
    struct ev_task pump;
};

/* ---- events ---- */

struct store_event *store_event_ref(struct store_event *ev)
{
    ev->refs++;
    return ev;
}

void store_event_unref(struct store_event *ev)
{
    if (!ev || --ev->refs > 0)
        return;
    object_unref(ev->now);
    object_unref(ev->before);
    for (size_t i = 0; i < LEN(ev->texts); i++) {
        if (ev->texts[i] && --ev->texts[i]->refs == 0) {
            buf_done(&ev->texts[i]->bytes);
            free(ev->texts[i]);
        }
    }
    free(ev);
}

static struct store_event **slot(const struct ring *r, uint64_t at)
{
    return &r->slots[at & (r->cap - 1)];
}

static void ring_push(struct ring *r, struct store_event *ev)
{
    if (r->end - r->first == r->cap) {
        struct ring old = *r;

        r->cap = old.cap ? old.cap * 2 : FIRST_RING;
        r->slots = own_array(r->cap, sizeof(struct store_event *));
        for (uint64_t i = r->first; i < r->end; i++)
            *slot(r, i) = *slot(&old, i);
        free(old.slots);
    }
    *slot(r, r->end++) = ev;
}

static void ring_shift(struct ring *r)
{
    struct store_event *ev = *slot(r, r->first++);

    r->lost = ev->version;
    store_event_unref(ev);
}

/* ---- who is told ---- */

static struct store_watch **bucket(const struct history *h, unsigned kind, const char *namespace,
                                   const char *name)
{
    uint64_t hash = hash_add(hash_add(kind, span_cstr(namespace)), span_cstr(name));

    return &h->buckets[hash & (h->bucket_count - 1)];
}

static void link_watch(struct history *h, struct store_watch *w)
{
    struct store_watch **at = bucket(h, w->kind, w->namespace, w->name);

    w->next = *at;
    w->link = at;
    if (w->next)
        w->next->link = &w->next;
    *at = w;
}

static void grow_buckets(struct history *h)
{
    struct store_watch **old = h->buckets;
    size_t old_count = h->bucket_count;

    h->bucket_count = old_count ? old_count * 2 : FIRST_BUCKETS;
    h->buckets = own_array(h->bucket_count, sizeof(struct store_watch *));
    for (size_t i = 0; i < old_count; i++) {
        struct store_watch *next;

        for (struct store_watch *w = old[i]; w; w = next) {
            next = w->next;
            link_watch(h, w);
        }
    }
    free(old);
}

static void pump(void *ctx);

static void make_ready(struct history *h, struct store_watch *w)
{
    if (w->is_ready || w->is_full)
        return;
    w->is_ready = true;
    w->later = NULL;
    w->earlier = h->ready_last;
    if (h->ready_last)
        h->ready_last->later = w;
    else
        h->ready_first = w;
    h->ready_last = w;
    if (!h->pump.is_queued)
        ev_post(h->loop, &h->pump, pump, h);
}

static void unready(struct history *h, struct store_watch *w)
{
    if (!w->is_ready)
        return;
    w->is_ready = false;
    *(w->earlier ? &w->earlier->later : &h->ready_first) = w->later;
    *(w->later ? &w->later->earlier : &h->ready_last) = w->earlier;
}

static void wake_bucket(struct history *h, const struct store_event *ev, uint64_t at, bool is_head,
                        const char *namespace, const char *name)
{
    for (struct store_watch *w = *bucket(h, ev->kind, namespace, name); w; w = w->next) {
        if (w->is_head != is_head || w->is_behind || w->kind != ev->kind ||
            strcmp(w->namespace, namespace) != 0 || strcmp(w->name, name) != 0)
            continue;
        w->is_behind = true;
        w->at = at;
        make_ready(h, w);
    }
}

/* Those who are behind already will come to it. */
static void wake(struct history *h, const struct store_event *ev, uint64_t at, bool is_head)
{
    const char *namespace = object_namespace(ev->now), *name = object_name(ev->now);

    if (h->watch_count == 0)
        return;
    wake_bucket(h, ev, at, is_head, "", "");
    wake_bucket(h, ev, at, is_head, "", name);
    if (*namespace) {
        wake_bucket(h, ev, at, is_head, namespace, "");
        wake_bucket(h, ev, at, is_head, namespace, name);
    }
}

static bool is_asked_for(const struct store_watch *w, const struct store_event *ev)
{
    return (!*w->namespace || strcmp(w->namespace, object_namespace(ev->now)) == 0) &&
           (!*w->name || strcmp(w->name, object_name(ev->now)) == 0);
}

static uint64_t end_for(const struct store_watch *w, const struct ring *r)
{
    return w->is_head ? r->end : r->told;
}

static void lose(struct store_watch *w)
{
    void (*on_lost)(void *) = w->on_lost;
    void *ctx = w->ctx;

    store_watch_stop(w);
    on_lost(ctx);
}

/* Tells one watch what it has not heard, at most `budget` events; returns what is left of that. */
static size_t tell(struct history *h, struct store_watch *w, size_t budget)
{
    struct ring *r = &h->rings[w->kind];

    while (budget > 0) {
        struct store_event *ev;

        if (w->at < r->first) {
            lose(w);
            return budget - 1;
        }
        if (w->at >= end_for(w, r)) {
            w->is_behind = false;
            return budget;
        }
        ev = *slot(r, w->at++);
        budget--;
        if (!is_asked_for(w, ev))
            continue;
        h->running = w;
        store_event_ref(ev);
        if (!w->on_event(w->ctx, ev) && h->running == w)
            w->is_full = true;
        store_event_unref(ev);
        if (h->running != w) /* it has stopped */
            return budget;
        h->running = NULL;
        if (w->is_full)
            return budget;
    }
    make_ready(h, w); /* behind the others */
    return 0;
}

static void pump(void *ctx)
{
    struct history *h = ctx;
    size_t budget = STORE_PUMP_EVENTS_MAX;

    while (h->ready_first && budget > 0) {
        struct store_watch *w = h->ready_first;

        unready(h, w);
        budget = tell(h, w, budget);
    }
    if (h->ready_first && !h->pump.is_queued)
        ev_post(h->loop, &h->pump, pump, h);
}

/* ---- watches ---- */

static uint64_t first_after(const struct ring *r, uint64_t version)
{
    uint64_t low = r->first, high = r->end;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if ((*slot(r, middle))->version <= version)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int history_undo(const struct history *h, unsigned kind, uint64_t version, struct shelf **shelf,
                 struct err *e)
{
    const struct ring *r = &h->rings[kind];
    uint64_t from = first_after(r, version);

    if (version < r->lost || (r->told > from && r->told - from > UNDO_MAX))
        return err_set(e, ERR_GONE, "too old resource version: %llu", (unsigned long long)version);
    for (uint64_t at = r->told; at > from; at--) {
        const struct store_event *ev = *slot(r, at - 1);
        struct shelf_key key = { kind, object_namespace(ev->now), object_name(ev->now) };
        struct shelf *next =
            ev->before ? shelf_put(*shelf, kind, ev->before) : shelf_remove(*shelf, &key);

        shelf_unref(*shelf);
        *shelf = next;
    }
    return 0;
}

bool history_each(const struct history *h, unsigned kind, uint64_t version,
                  void (*fn)(void *ctx, const struct store_event *ev), void *ctx)
{
    const struct ring *r = &h->rings[kind];

    if (version < r->lost)
        return false;
    for (uint64_t at = first_after(r, version); at < r->end; at++)
        fn(ctx, *slot(r, at));
    return true;
}

struct store_event *history_find(const struct history *h, unsigned kind, uint64_t version)
{
    const struct ring *r = &h->rings[kind];
    uint64_t at = version ? first_after(r, version - 1) : r->end;

    return at < r->end && (*slot(r, at))->version == version ? *slot(r, at) : NULL;
}

struct store_event *history_next_old(struct history *h, uint64_t version)
{
    for (unsigned i = 0; i < h->kinds; i++, h->old_kind = (h->old_kind + 1) % h->kinds) {
        struct ring *r = &h->rings[h->old_kind];

        r->old = MAX(r->old, r->first);
        if (r->old < r->told && (*slot(r, r->old))->version <= version)
            return *slot(r, r->old++);
    }
    return NULL;
}

bool history_is_kept(const struct history *h, unsigned kind)
{
    return h->rings[kind].keepers > 0;
}

int history_watch(struct history *h, struct store_watch *w, uint64_t version, struct err *e)
{
    struct ring *r = &h->rings[w->kind];

    assert(!w->history);
    if (version < r->lost || history_is_undone(h, version))
        return err_set(e, ERR_GONE, "too old resource version: %llu (%llu)",
                       (unsigned long long)version, (unsigned long long)r->lost);
    w->history = h;
    w->is_ready = w->is_full = false;
    if (h->watch_count >= h->bucket_count)
        grow_buckets(h);
    h->watch_count++;
    r->keepers += w->is_keeping;
    link_watch(h, w);
    w->at = first_after(r, version);
    w->is_behind = w->at < end_for(w, r);
    if (w->is_behind)
        make_ready(h, w);
    return 0;
}

void store_watch_resume(struct store_watch *w)
{
    if (!w->history || !w->is_full)
        return;
    w->is_full = false;
    if (w->is_behind)
        make_ready(w->history, w);
}

void store_watch_hold(struct store_watch *w)
{
    unready(w->history, w);
    w->is_full = true;
}

void store_watch_stop(struct store_watch *w)
{
    struct history *h = w->history;

    if (!h)
        return;
    unready(h, w);
    if (h->running == w)
        h->running = NULL;
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    h->watch_count--;
    h->rings[w->kind].keepers -= w->is_keeping;
    w->history = NULL;
}

size_t history_watches(const struct history *h)
{
    return h->watch_count;
}

/* ---- what happens ---- */

void history_add(struct history *h, struct store_event *ev)
{
    struct ring *r = &h->rings[ev->kind];

    if (h->fresh_at + h->fresh_count == h->fresh_cap) {
        if (h->fresh_at) { /* those in front are on disk */
            memmove(h->fresh, h->fresh + h->fresh_at, h->fresh_count * sizeof *h->fresh);
            h->fresh_at = 0;
        }
        if (h->fresh_count * 2 > h->fresh_cap || h->fresh_cap == 0) {
            h->fresh_cap = h->fresh_cap ? h->fresh_cap * 2 : FIRST_RING;
            h->fresh = own_resize(h->fresh, h->fresh_cap, sizeof(struct store_event *));
        }
    }
    h->fresh[h->fresh_at + h->fresh_count++] = ev;
    ring_push(r, ev);
    wake(h, ev, r->end - 1, true);
}

void history_commit(struct history *h, uint64_t version)
{
    while (h->fresh_count && h->fresh[h->fresh_at]->version <= version) {
        struct store_event *ev = h->fresh[h->fresh_at];
        struct ring *r = &h->rings[ev->kind];

        assert(*slot(r, r->told) == ev);
        wake(h, ev, r->told++, false);
        h->fresh_at++, h->fresh_count--;
    }
    if (h->fresh_count == 0)
        h->fresh_at = 0;
}

bool history_is_undone(const struct history *h, uint64_t version)
{
    EACH(u, h->undone) {
        if (version >= u->first && version <= u->last && u->first)
            return true;
    }
    return false;
}

static void remember_undone(struct history *h)
{
    uint64_t first, last;

    if (!h->fresh_count)
        return;
    first = h->fresh[h->fresh_at]->version;
    last = h->fresh[h->fresh_at + h->fresh_count - 1]->version;
    if (h->undone[0].first && first == h->undone[0].last + 1) { /* no commit went well since */
        h->undone[0].last = last;
        return;
    }
    memmove(h->undone + 1, h->undone, sizeof h->undone - sizeof h->undone[0]);
    h->undone[0].first = first;
    h->undone[0].last = last;
}

void history_take_back(struct history *h)
{
    remember_undone(h);
    for (size_t i = 0; i < h->bucket_count; i++) {
        for (struct store_watch *w = h->buckets[i], *next; w; w = next) {
            next = w->next;
            if (w->is_head) { /* told in a turn of its own, when its place is looked for and not found */
                w->at = 0;
                w->is_full = false;
                w->is_behind = true;
                make_ready(h, w);
            }
        }
    }
    while (h->fresh_count) {
        struct store_event *ev = h->fresh[h->fresh_at + --h->fresh_count];
        struct ring *r = &h->rings[ev->kind];

        assert(*slot(r, r->end - 1) == ev);
        r->end--;
        store_event_unref(ev);
    }
    h->fresh_at = 0;
}

void history_forget(struct history *h, uint64_t version)
{
    for (unsigned k = 0; k < h->kinds; k++) {
        struct ring *r = &h->rings[k];

        while (r->first < r->told && (*slot(r, r->first))->version <= version)
            ring_shift(r);
    }
}

void history_begin(struct history *h, uint64_t version)
{
    for (unsigned k = 0; k < h->kinds; k++)
        h->rings[k].lost = version;
}

struct history *history_new(struct ev_loop *loop, unsigned kinds)
{
    struct history *h = NEW(struct history);

    h->loop = loop;
    h->kinds = kinds;
    h->rings = own_array(kinds, sizeof *h->rings);
    for (unsigned k = 0; k < kinds; k++) /* 0 is no event's number: see history_take_back */
        h->rings[k].first = h->rings[k].told = h->rings[k].end = 1;
    grow_buckets(h);
    return h;
}

void history_free(struct history *h)
{
    if (!h)
        return;
    assert(h->watch_count == 0);
    ev_post_cancel(&h->pump);
    for (unsigned k = 0; k < h->kinds; k++) {
        struct ring *r = &h->rings[k];

        while (r->first < r->end)
            ring_shift(r);
        free(r->slots);
    }
    free(h->rings);
    free(h->fresh);
    free(h->buckets);
    ev_free_later(h->loop, h, free); /* the pump may still be queued */
}
