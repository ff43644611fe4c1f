#include "apiserver/crowd.h"

#include "apiserver/limits.h"
#include "apiserver/op.h"
#include "apiserver/quota.h"
#include "base/log.h"

#include <string.h>

#define FIRST_PLACES 64

/* Objects in the order they were written. */
struct line {
    struct object **places;
    size_t cap, first, count; /* cap: a power of two */
};

/* Of one namespace. */
struct share {
    char *namespace;
    struct line plain, warnings;
    size_t there;   /* on the head, as far as the watch has told */
    size_t removed; /* by us, which the watch has yet to tell */
};

struct crowd {
    struct ev_loop *loop;
    struct store *store;
    unsigned kind;
    size_t max;
    struct share *shares; /* in the order of their namespaces */
    size_t share_count, share_cap;
    struct store_watch watch;
    struct ev_task work;
};

static void make_room(void *ctx);

/* ---- a line ---- */

static struct object **place(const struct line *l, size_t i)
{
    return &l->places[(l->first + i) & (l->cap - 1)];
}

/* Takes the reference. */
static void line_push(struct line *l, struct object *o)
{
    if (l->count == l->cap) {
        struct line old = *l;

        l->cap = old.cap ? old.cap * 2 : FIRST_PLACES;
        l->first = 0;
        l->places = own_array(l->cap, sizeof *l->places);
        for (size_t i = 0; i < old.count; i++)
            l->places[i] = *place(&old, i);
        free(old.places);
    }
    *place(l, l->count++) = o;
}

/* The reference is the caller's. */
static struct object *line_shift(struct line *l)
{
    struct object *o = *place(l, 0);

    l->first++;
    l->count--;
    return o;
}

static void line_done(struct line *l)
{
    while (l->count)
        object_unref(line_shift(l));
    free(l->places);
    *l = (struct line){ 0 };
}

/* ---- shares ---- */

/* Where it is, or where it would be. */
static size_t find_share(const struct crowd *c, const char *namespace, bool *ret_is_there)
{
    size_t from = 0, to = c->share_count;

    *ret_is_there = false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(c->shares[middle].namespace, namespace);

        if (order == 0) {
            *ret_is_there = true;
            return middle;
        }
        *(order < 0 ? &from : &to) = order < 0 ? middle + 1 : middle;
    }
    return from;
}

static struct share *share_of(struct crowd *c, const char *namespace)
{
    bool is_there;
    size_t at = find_share(c, namespace, &is_there);

    if (is_there)
        return &c->shares[at];
    if (c->share_count == c->share_cap) {
        c->share_cap = c->share_cap ? c->share_cap * 2 : 8;
        c->shares = own_resize(c->shares, c->share_cap, sizeof *c->shares);
    }
    memmove(c->shares + at + 1, c->shares + at, (c->share_count++ - at) * sizeof *c->shares);
    c->shares[at] = (struct share){ .namespace = own_strdup(namespace) };
    return &c->shares[at];
}

static void share_done(struct share *s)
{
    line_done(&s->plain);
    line_done(&s->warnings);
    free(s->namespace);
}

static void leave_share(struct crowd *c, const char *namespace)
{
    bool is_there;
    size_t at = find_share(c, namespace, &is_there);
    struct share *s = &c->shares[at];

    if (!is_there)
        return;
    s->removed -= s->removed > 0;
    s->there -= s->there > 0;
    if (s->there)
        return;
    share_done(s);
    memmove(s, s + 1, (--c->share_count - at) * sizeof *s);
}

static size_t share_size(const struct share *s)
{
    return s->there - MIN(s->there, s->removed);
}

/* Who has most gives: then a namespace that writes without end puts out its own and no other's. */
static struct share *largest_share(struct crowd *c)
{
    struct share *found = NULL;

    for (size_t i = 0; i < c->share_count; i++)
        if (!found || share_size(&c->shares[i]) > share_size(found))
            found = &c->shares[i];
    return found;
}

static void shares_done(struct crowd *c)
{
    for (size_t i = 0; i < c->share_count; i++)
        share_done(&c->shares[i]);
    free(c->shares);
    c->shares = NULL;
    c->share_count = c->share_cap = 0;
}

/* ---- who is in line ---- */

static struct line *line_of(struct share *s, const struct object *o)
{
    const char *type = object_text(o, "type");

    return type && strcmp(type, "Warning") == 0 ? &s->warnings : &s->plain;
}

static bool is_there(const struct crowd *c, const struct object *o)
{
    struct shelf_key key = { c->kind, object_namespace(o), object_name(o) };

    return store_get(c->store, STORE_HEAD, &key) == o;
}

static size_t count_there(const struct crowd *c)
{
    struct shelf *shelf = store_snapshot(c->store, STORE_HEAD, NULL);
    struct shelf_key from = { c->kind, "", "" }, end = { c->kind + 1, "", "" };
    size_t n = shelf_rank(shelf, &end) - shelf_rank(shelf, &from);

    shelf_unref(shelf);
    return n;
}

/* One Event may be counted up for ever: those that are not there any more leave when they are the half. */
static void leave_if_gone(struct crowd *c, const struct share *s, struct line *l)
{
    struct line old = *l;

    if (old.count < FIRST_PLACES || old.count <= 2 * s->there)
        return;
    *l = (struct line){ 0 };
    while (old.count) {
        struct object *o = line_shift(&old);

        if (is_there(c, o))
            line_push(l, o);
        else
            object_unref(o);
    }
    free(old.places);
}

/* Nobody may ever read it, so it is kept in a third of the memory. If it is not there any more, what stands there has a place. */
static void line_up(struct crowd *c, struct share *s, struct object *o)
{
    struct line *l = line_of(s, o);
    struct object *lean = store_lean(c->store, o);

    if (!lean)
        return;
    if (l->count == l->cap)
        leave_if_gone(c, s, l);
    line_push(l, lean);
    if (!c->work.is_queued)
        ev_post(c->loop, &c->work, make_room, c);
}

/* ---- who goes ---- */

/* Warnings are what somebody looks for, but a flood of them must not hide all else. */
static struct line *next_line(struct share *s)
{
    if (s->plain.count == 0 || (s->warnings.count && s->warnings.count > share_size(s) / 2))
        return &s->warnings;
    return &s->plain;
}

/* Finalizers do not hold it: who wrote one would hold the place of another's. */
static int remove_one(struct crowd *c, struct share *s, struct object *o)
{
    struct store_change change = { .op = STORE_DELETE, .object = o, .is_freeing = true };
    OWN(object_done) struct object *ignored = NULL;
    struct err e;

    if (store_write(c->store, &change, &ignored, &e) < 0)
        return -1;
    quota_tell(c->store, object_namespace(ignored));
    s->removed++;
    return 0;
}

/* The store may take no write now: then its place is kept, and the next that lines up comes back to it. */
static void make_room(void *ctx)
{
    struct crowd *c = ctx;
    size_t there = count_there(c), tries = DELETE_SLICE_OBJECTS;

    while (there > c->max && tries-- > 0) {
        struct share *s = largest_share(c);
        struct line *l = s ? next_line(s) : NULL;

        if (!l || !l->count)
            return;
        if (is_there(c, *place(l, 0))) {
            if (remove_one(c, s, *place(l, 0)) < 0)
                return;
            there--;
        }
        object_unref(line_shift(l));
    }
    if (there > c->max)
        ev_post(c->loop, &c->work, make_room, c);
}

/* ---- life ---- */

static bool on_event(void *ctx, struct store_event *ev)
{
    struct crowd *c = ctx;
    const char *namespace = object_namespace(ev->now);

    if (ev->type == EVENT_DELETED) {
        leave_share(c, namespace);
        return true;
    }
    share_of(c, namespace)->there += ev->type == EVENT_ADDED;
    line_up(c, share_of(c, namespace), ev->now);
    return true;
}

static void start(struct crowd *c);

/* A commit failed, and what was written since the last one is not so. */
static void on_lost(void *ctx)
{
    start(ctx);
}

static int by_version(const void *x, const void *y)
{
    uint64_t a = object_version(*(struct object *const *)x),
             b = object_version(*(struct object *const *)y);

    return (a > b) - (a < b);
}

static void start(struct crowd *c)
{
    struct shelf_key from = { c->kind, "", "" };
    struct line all = { 0 };
    struct shelf_walk walk;
    struct shelf *shelf;
    struct object *o;
    uint64_t version;
    unsigned kind;
    struct err e;

    shares_done(c);
    shelf = store_snapshot(c->store, STORE_HEAD, &version);
    shelf_walk_init(&walk, shelf, &from, false);
    while ((o = shelf_walk_next(&walk, &kind)) && kind == c->kind)
        line_push(&all, object_ref(o));
    shelf_unref(shelf);
    if (all.count)
        qsort(all.places, all.count, sizeof *all.places, by_version);
    for (size_t i = 0; i < all.count; i++) {
        struct share *s = share_of(c, object_namespace(all.places[i]));

        s->there++;
        line_up(c, s, all.places[i]);
    }
    line_done(&all);
    c->watch = (struct store_watch){ .kind = c->kind,
                                     .namespace = "",
                                     .name = "",
                                     .is_head = true,
                                     .is_keeping = true,
                                     .on_event = on_event,
                                     .on_lost = on_lost,
                                     .ctx = c };
    if (store_watch(c->store, &c->watch, version, &e) < 0)
        log_error("crowd.watch", KV("err", &e));
}

struct crowd *crowd_open(struct ev_loop *loop, struct store *store, unsigned kind, size_t max)
{
    struct crowd *c = NEW(struct crowd);

    c->loop = loop;
    c->store = store;
    c->kind = kind;
    c->max = max;
    start(c);
    return c;
}

void crowd_close(struct crowd *c)
{
    if (!c)
        return;
    store_watch_stop(&c->watch);
    ev_post_cancel(&c->work);
    shares_done(c);
    ev_free_later(c->loop, c, free);
}
