#include "apiserver/expire.h"

#include "apiserver/crowd.h"
#include "apiserver/limits.h"
#include "apiserver/op.h"
#include "apiserver/quota.h"
#include "base/log.h"
#include "kube/time.h"

#include <string.h>
#include <time.h>

#define KINDS 2

/* One kind, and where its objects say when they last mattered. */
struct mortal {
    const char *group, *plural;
    const char *const *times; /* paths; the latest counts */
};

static const char *const event_times[] = { "lastTimestamp", "eventTime", "series.lastObservedTime",
                                           "metadata.creationTimestamp", NULL };
static const char *const lease_times[] = { "spec.renewTime", "metadata.creationTimestamp", NULL };
static const struct mortal mortals[KINDS] = {
    { "", "events", event_times },
    { "coordination.k8s.io", "leases", lease_times },
};

struct expire {
    struct apiserver *s;
    uint64_t ttl_ms[KINDS], pause_ms;
    struct crowd *crowds[KINDS]; /* their ceilings */
    struct ev_timer timer;
    struct slice slice;
    /* the sweep */
    unsigned at, kind; /* of mortals; on the shelf */
    struct shelf *shelf;
    struct shelf_walk walk;
    time_t before; /* what is older goes */
    size_t gone;
};

static void walk_on(void *ctx);

/* ---- one object ---- */

static time_t last_time(const struct mortal *m, const struct object *o)
{
    time_t last = 0;

    for (const char *const *path = m->times; *path; path++) {
        const char *text = object_text(o, *path);
        struct timespec t;

        if (text && kube_time_parse(span_cstr(text), &t))
            last = MAX(last, t.tv_sec);
    }
    return last;
}

/* It has been written since, or the store takes no write: then it stays for now. Finalizers do not hold it: nobody waits for
 * them, and each holds a place. */
static void remove_one(struct expire *x, struct object *o)
{
    struct shelf_key key = { x->kind, object_namespace(o), object_name(o) };
    const struct object *there = store_get(x->s->store, STORE_HEAD, &key);
    struct store_change change = { .op = STORE_DELETE, .object = o, .is_freeing = true };
    OWN(object_done) struct object *ignored = NULL;
    struct err e;

    if (there && object_version(there) == object_version(o) &&
        store_write(x->s->store, &change, &ignored, &e) == 0) {
        quota_tell(x->s->store, key.namespace);
        x->gone++;
    }
}

/* ---- sweeping ---- */

static unsigned number_of(const struct mortal *m)
{
    return op_number(kind_find(m->group, NULL, m->plural));
}

static void begin_walk(struct expire *x)
{
    struct shelf_key from = { x->kind, "", "" };

    shelf_walk_init(&x->walk, x->shelf, &from, false);
    slices_add(&x->s->slices, &x->slice, walk_on, x);
}

static void begin_kind(struct expire *x)
{
    const struct mortal *m = &mortals[x->at];

    x->kind = number_of(m);
    x->shelf = store_snapshot(x->s->store, STORE_HEAD, NULL);
    x->gone = 0;
    x->before = time(NULL) - (time_t)(x->ttl_ms[x->at] / 1000);
    begin_walk(x);
}

static void on_timer(void *ctx)
{
    struct expire *x = ctx;

    x->at = 0;
    begin_kind(x);
}

static void end_kind(struct expire *x)
{
    if (x->gone)
        log_info("api.expire", KV("kind", mortals[x->at].plural), KV("objects", x->gone));
    shelf_unref(x->shelf);
    x->shelf = NULL;
    if (++x->at < KINDS)
        begin_kind(x);
    else
        ev_timer_start(x->s->loop, &x->timer, x->pause_ms, on_timer, x);
}

static void walk_on(void *ctx)
{
    struct expire *x = ctx;
    size_t gone = x->gone;

    do {
        unsigned kind = 0;
        struct object *o = shelf_walk_next(&x->walk, &kind);

        if (!o || kind != x->kind) {
            end_kind(x);
            return;
        }
        if (last_time(&mortals[x->at], o) < x->before)
            remove_one(x, o);
    } while (x->gone - gone < DELETE_SLICE_OBJECTS && !slice_is_over(&x->s->slices));
    slices_add(&x->s->slices, &x->slice, walk_on, x);
}

/* ---- life ---- */

struct expire *expire_open(struct apiserver *s, const struct expire_config *config)
{
    const size_t max[KINDS] = { config->events_max ? config->events_max : EVENTS_MAX, LEASES_MAX };
    struct expire *x = NEW(struct expire);

    x->s = s;
    x->ttl_ms[0] = config->event_ttl_ms ? config->event_ttl_ms : EVENT_TTL_MS;
    x->ttl_ms[1] = LEASE_TTL_MS;
    x->pause_ms = MAX(MIN(x->ttl_ms[0] / 10, (uint64_t)EXPIRE_PAUSE_MS), (uint64_t)100);
    for (size_t i = 0; i < KINDS; i++)
        x->crowds[i] = crowd_open(s->loop, s->store, number_of(&mortals[i]), max[i]);
    ev_timer_start(s->loop, &x->timer, x->pause_ms, on_timer, x);
    return x;
}

void expire_close(struct expire *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < KINDS; i++)
        crowd_close(x->crowds[i]);
    ev_timer_stop(x->s->loop, &x->timer);
    slices_cancel(&x->s->slices, &x->slice);
    shelf_unref(x->shelf);
    ev_free_later(x->s->loop, x, free);
}
