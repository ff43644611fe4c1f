#include "apiserver/expire.h"

#include "apiserver/crowd.h"
#include "apiserver/limits.h"
#include "apiserver/op.h"
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
    uint64_t ttl_ms[KINDS], max[KINDS], pause_ms;
    struct crowd *events; /* their ceiling holds between sweeps too */
    struct ev_timer timer;
    struct slice slice;
    /* the sweep */
    unsigned at, kind; /* of mortals; on the shelf */
    struct shelf *shelf;
    struct shelf_walk walk;
    time_t before;      /* what is older goes */
    uint64_t oldest;    /* second walk: what was written up to this version goes; 0 in the first */
    uint64_t *versions; /* of those that stay, to find the oldest of them */
    size_t count, room, gone;
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

/* Finalizers hold it, or it has been written since: then it stays for now. */
static bool remove_one(struct expire *x, struct object *o)
{
    struct shelf_key key = { x->kind, object_namespace(o), object_name(o) };
    const struct object *there = store_get(x->s->store, STORE_HEAD, &key);
    struct store_change change = { .op = STORE_DELETE, .object = o, .is_freeing = true };
    OWN(object_done) struct object *ignored = NULL;
    struct err e;

    if (!there || object_version(there) != object_version(o) || object_finalizer_count(o) ||
        store_write(x->s->store, &change, &ignored, &e) < 0)
        return false;
    x->gone++;
    return true;
}

/* ---- sweeping ---- */

static void begin_walk(struct expire *x)
{
    struct shelf_key from = { x->kind, "", "" };

    shelf_walk_init(&x->walk, x->shelf, &from, false);
    slices_add(&x->s->slices, &x->slice, walk_on, x);
}

static void begin_kind(struct expire *x)
{
    const struct mortal *m = &mortals[x->at];
    struct shelf_key from, end;

    x->kind = op_number(kind_find(m->group, NULL, m->plural));
    x->shelf = store_snapshot(x->s->store, STORE_HEAD, NULL);
    from = (struct shelf_key){ x->kind, "", "" };
    end = (struct shelf_key){ x->kind + 1, "", "" };
    x->room = shelf_rank(x->shelf, &end) - shelf_rank(x->shelf, &from);
    x->versions = own_array(x->room ? x->room : 1, sizeof *x->versions);
    x->count = x->gone = 0;
    x->oldest = 0;
    x->before = time(NULL) - (time_t)(x->ttl_ms[x->at] / 1000);
    begin_walk(x);
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
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
    free(x->versions);
    x->versions = NULL;
    if (++x->at < KINDS)
        begin_kind(x);
    else
        ev_timer_start(x->s->loop, &x->timer, x->pause_ms, on_timer, x);
}

/* Behind the last object: a second walk where there are too many of them. */
static void end_walk(struct expire *x)
{
    uint64_t max = x->max[x->at];

    if (x->oldest || x->count <= max) {
        end_kind(x);
        return;
    }
    qsort(x->versions, x->count, sizeof *x->versions, compare);
    x->oldest = x->versions[x->count - max - 1];
    begin_walk(x);
}

static void judge(struct expire *x, struct object *o)
{
    if (x->oldest) {
        if (object_version(o) <= x->oldest)
            (void)remove_one(x, o);
    } else if (last_time(&mortals[x->at], o) >= x->before || !remove_one(x, o)) {
        assert(x->count < x->room);
        x->versions[x->count++] = object_version(o);
    }
}

static void walk_on(void *ctx)
{
    struct expire *x = ctx;
    size_t gone = x->gone;

    do {
        unsigned kind = 0;
        struct object *o = shelf_walk_next(&x->walk, &kind);

        if (!o || kind != x->kind) {
            end_walk(x);
            return;
        }
        judge(x, o);
    } while (x->gone - gone < DELETE_SLICE_OBJECTS && !slice_is_over(&x->s->slices));
    slices_add(&x->s->slices, &x->slice, walk_on, x);
}

/* ---- life ---- */

struct expire *expire_open(struct apiserver *s, const struct expire_config *config)
{
    struct expire *x = NEW(struct expire);

    x->s = s;
    x->ttl_ms[0] = config->event_ttl_ms ? config->event_ttl_ms : EVENT_TTL_MS;
    x->max[0] = config->events_max ? config->events_max : EVENTS_MAX;
    x->ttl_ms[1] = LEASE_TTL_MS;
    x->max[1] = LEASES_MAX;
    x->pause_ms = MAX(MIN(x->ttl_ms[0] / 10, (uint64_t)EXPIRE_PAUSE_MS), (uint64_t)100);
    x->events = crowd_open(s->loop, s->store, x->max[0]);
    ev_timer_start(s->loop, &x->timer, x->pause_ms, on_timer, x);
    return x;
}

void expire_close(struct expire *x)
{
    if (!x)
        return;
    crowd_close(x->events);
    ev_timer_stop(x->s->loop, &x->timer);
    slices_cancel(&x->s->slices, &x->slice);
    shelf_unref(x->shelf);
    free(x->versions);
    ev_free_later(x->s->loop, x, free);
}
