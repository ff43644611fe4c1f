/* What is on disk and was let be becomes bytes (object_packed): a store is mostly that, and a tree takes three times as much. Who
 * looks into one of them makes a tree of it, which goes again with a sweep. Nobody is told, as nothing is different; who holds
 * an object keeps it as it is. */
#include "apiserver/store_impl.h"

#include "base/time.h"

/* ---- one object ---- */

static void replace(struct object **place, struct object *o)
{
    struct object *was = *place;

    if (was == o)
        return;
    *place = object_ref(o);
    object_unref(was);
}

static struct object *packed(struct object *o)
{
    return object_is_packed(o) ? object_ref(o) : object_packed(o);
}

/* A state that was replaced: nobody but watches that come back will ask for it. */
static void pack_before(struct store *st, struct store_event *ev)
{
    OWN(object_done) struct object *o = packed(ev->before);
    struct store_event *earlier = history_find(st->history, ev->kind, object_version(o));

    if (earlier)
        replace(&earlier->now, o);
    replace(&ev->before, o);
}

/* The state on the head. Of a kind that is kept by readers in this process it stays: they share its trees. */
static void pack_current(struct store *st, unsigned kind, struct object *there)
{
    bool is_kept = history_is_kept(st->history, kind);
    OWN(object_done) struct object *o = is_kept ? object_ref(there) : packed(there);
    struct store_event *ev = history_find(st->history, kind, object_version(o));

    if (o != there)
        st->head = shelf_set(st->head, kind, o);
    if (ev)
        replace(&ev->now, o);
}

static void pack_event(struct store *st, struct store_event *ev)
{
    struct shelf_key key = { ev->kind, object_namespace(ev->now), object_name(ev->now) };
    OWN(object_done) struct object *o = NULL;

    if (ev->before)
        pack_before(st, ev);
    if (ev->type == EVENT_DELETED) {
        o = packed(ev->now);
        replace(&ev->now, o);
        return;
    }
    o = object_ref(shelf_get(st->head, &key));
    if (o && object_version(o) == ev->version) /* else the event that replaced it packs it */
        pack_current(st, ev->kind, o);
}

/* ---- sweeping ---- */

/* Up to so many that are no bytes, of those that the next turn looks at. */
static size_t find_trees(struct store *st, struct object **ret)
{
    struct store_rest *r = &st->rest;
    struct shelf_key from = { r->at_kind, r->behind ? object_namespace(r->behind) : "",
                              r->behind ? object_name(r->behind) : "" };
    struct object *o = NULL;
    struct shelf_walk walk;
    size_t n = 0;

    shelf_walk_init(&walk, st->head, &from, r->behind != NULL);
    for (size_t i = 0; i < STORE_SWEEP_SLICE && n < STORE_REST_SLICE; i++) {
        unsigned kind;

        o = shelf_walk_next(&walk, &kind);
        if (!o)
            break;
        if (history_is_kept(st->history, kind)) {
            from = (struct shelf_key){ kind + 1, "", "" };
            shelf_walk_init(&walk, st->head, &from, false);
        } else if (object_version(o) <= r->until && !object_is_packed(o)) {
            ret[n++] = object_ref(o);
        }
        r->at_kind = kind;
        replace(&r->behind, o);
    }
    r->is_sweeping = o != NULL;
    return n;
}

static void sweep(struct store *st)
{
    struct object *found[STORE_REST_SLICE];
    size_t n = find_trees(st, found);

    for (size_t i = 0; i < n; i++) {
        pack_current(st, store_kind_number(st, object_kind(found[i])), found[i]);
        object_unref(found[i]);
    }
    if (!st->rest.is_sweeping)
        object_done(&st->rest.behind);
}

static void begin_sweep(struct store *st)
{
    struct store_rest *r = &st->rest;
    uint64_t unpacked = json_unpack_count(), now_ms = time_mono_ms();

    if (r->is_sweeping || unpacked == r->unpacked || now_ms - r->swept_ms < r->sweep_ms)
        return;
    r->unpacked = unpacked;
    r->swept_ms = now_ms;
    r->is_sweeping = true;
    r->at_kind = 0;
}

/* ---- when ---- */

static void work(void *ctx);

static void need_work(struct store *st)
{
    if (!st->rest.work.is_queued)
        ev_post_aside(st->loop, &st->rest.work, work, st);
}

static bool pack_events(struct store *st)
{
    for (size_t i = 0; i < STORE_REST_SLICE; i++) {
        struct store_event *ev = history_next_old(st->history, st->rest.until);

        if (!ev)
            return false;
        pack_event(st, ev);
    }
    return true;
}

static void work(void *ctx)
{
    struct store *st = ctx;
    bool is_one =
        st->head_version == st->committed_version; /* then what is packed leaves both at once */

    if (is_one) {
        shelf_unref(st->committed);
        st->committed = NULL;
    }
    if (pack_events(st))
        need_work(st);
    else if (st->rest.is_sweeping)
        sweep(st);
    if (is_one)
        st->committed = shelf_ref(st->head);
    if (st->rest.is_sweeping)
        need_work(st);
}

static void on_timer(void *ctx)
{
    struct store *st = ctx;
    struct store_rest *r = &st->rest;

    if (r->committed > r->until) {
        r->until = r->committed;
        need_work(st);
    }
    r->committed = st->committed_version;
    begin_sweep(st);
    if (r->is_sweeping)
        need_work(st);
    r->is_soon = r->until < r->committed;
    ev_timer_start(st->loop, &r->timer, r->is_soon ? r->fresh_ms : r->sweep_ms, on_timer, st);
}

void store_rest_later(struct store *st)
{
    struct store_rest *r = &st->rest;

    if (st->is_closing)
        return;
    if (st->committed_version > r->until + STORE_FRESH_MAX) {
        r->until = st->committed_version - STORE_FRESH_MAX;
        need_work(st);
    }
    if (!r->is_soon) {
        r->is_soon = true;
        ev_timer_start(st->loop, &r->timer, r->fresh_ms, on_timer, st);
    }
}

void store_rest_open(struct store *st)
{
    st->rest.until = st->rest.committed = st->committed_version;
    st->rest.swept_ms = time_mono_ms();
    st->rest.unpacked = json_unpack_count();
    ev_timer_start(st->loop, &st->rest.timer, st->rest.sweep_ms, on_timer, st);
}

void store_rest_close(struct store *st)
{
    ev_timer_stop(st->loop, &st->rest.timer);
    ev_post_cancel(&st->rest.work);
    object_done(&st->rest.behind);
}
