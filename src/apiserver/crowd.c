#include "apiserver/crowd.h"

#include "apiserver/limits.h"
#include "apiserver/op.h"
#include "base/log.h"

#include <string.h>

#define FIRST_PLACES 64

/* Events in the order they were written. */
struct line {
    struct object **places;
    size_t cap, first, count; /* cap: a power of two */
};

struct crowd {
    struct ev_loop *loop;
    struct store *store;
    unsigned kind;
    size_t max;
    struct line plain, warnings;
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

/* ---- who is in line ---- */

static struct line *line_of(struct crowd *c, const struct object *o)
{
    const char *type = object_text(o, "type");

    return type && strcmp(type, "Warning") == 0 ? &c->warnings : &c->plain;
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
static void leave_if_gone(struct crowd *c, struct line *l)
{
    struct line old = *l;

    if (old.count < FIRST_PLACES || old.count <= 2 * count_there(c))
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
static void line_up(struct crowd *c, struct object *o)
{
    struct line *l = line_of(c, o);
    struct object *lean = store_lean(c->store, o);

    if (!lean)
        return;
    if (l->count == l->cap)
        leave_if_gone(c, l);
    line_push(l, lean);
    if (!c->work.is_queued)
        ev_post(c->loop, &c->work, make_room, c);
}

/* ---- who goes ---- */

/* Warnings are what somebody looks for, but a flood of them must not hide all else. */
static struct line *next_line(struct crowd *c)
{
    if (c->plain.count == 0 || c->warnings.count > c->max / 2)
        return c->warnings.count ? &c->warnings : &c->plain;
    return &c->plain;
}

/* Finalizers hold it, or the store takes no write now: then a sweep comes back to it. */
static bool remove_one(struct crowd *c, struct object *o)
{
    struct store_change change = { .op = STORE_DELETE, .object = o, .is_freeing = true };
    OWN(object_done) struct object *ignored = NULL;
    struct err e;

    return is_there(c, o) && !object_finalizer_count(o) &&
           store_write(c->store, &change, &ignored, &e) == 0;
}

static void make_room(void *ctx)
{
    struct crowd *c = ctx;
    size_t there = count_there(c), tries = DELETE_SLICE_OBJECTS;

    while (there > c->max && tries-- > 0) {
        struct line *l = next_line(c);
        OWN(object_done) struct object *o = l->count ? line_shift(l) : NULL;

        if (!o)
            return;
        there -= remove_one(c, o);
    }
    if (there > c->max)
        ev_post(c->loop, &c->work, make_room, c);
}

/* ---- life ---- */

static bool on_event(void *ctx, struct store_event *ev)
{
    struct crowd *c = ctx;

    if (ev->type != EVENT_DELETED)
        line_up(c, ev->now);
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

    line_done(&c->plain);
    line_done(&c->warnings);
    shelf = store_snapshot(c->store, STORE_HEAD, &version);
    shelf_walk_init(&walk, shelf, &from, false);
    while ((o = shelf_walk_next(&walk, &kind)) && kind == c->kind)
        line_push(&all, object_ref(o));
    shelf_unref(shelf);
    if (all.count)
        qsort(all.places, all.count, sizeof *all.places, by_version);
    for (size_t i = 0; i < all.count; i++)
        line_up(c, all.places[i]);
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

struct crowd *crowd_open(struct ev_loop *loop, struct store *store, size_t max)
{
    struct crowd *c = NEW(struct crowd);

    c->loop = loop;
    c->store = store;
    c->kind = op_number(kind_find("", "v1", "events"));
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
    line_done(&c->plain);
    line_done(&c->warnings);
    ev_free_later(c->loop, c, free);
}
