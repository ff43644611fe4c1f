#include "node/disk_watch_impl.h"

#include "base/disk_room.h"
#include "base/log.h"
#include "base/time.h"
#include "node/claims.h"
#include "node/volume_memory.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NANO 1000000000

static void tick(void *ctx);

/* ---- one Pod ---- */

static void pod_free(struct disk_pod *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].name);
        free(p->v[i].place);
    }
    free(p->v);
    free(p);
}

/* VOLUME_NO_LIMIT: it says none. */
static uint64_t read_limit(const struct json *v, char text[QUANTITY_TEXT_BYTES])
{
    uint64_t bytes;

    *text = '\0';
    return volume_size_read(v, &bytes, text) ? bytes : VOLUME_NO_LIMIT;
}

static struct volume *add_volume(struct disk_pod *p, const char *name, const char *place)
{
    const struct disk_watch *w = p->record->node->disk;
    struct volume *v;

    p->v = own_resize(p->v, p->n + 1, sizeof *p->v);
    v = &p->v[p->n++];
    *v = (struct volume){
        .name = own_strdup(name), .place = own_strdup(place), .fell = w->fell, .changes = w->changes
    };
    return v;
}

/* Those on disk that its Pod writes and nobody else does. */
static void add_empty(struct disk_pod *p)
{
    const struct record *r = p->record;

    JSON_EACH(volume, object_at(r->pod, "spec.volumes"))
    {
        const struct json *empty = json_get(volume, "emptyDir");
        const char *name = json_cstr(json_get(volume, "name"));
        char place[PATH_MAX];
        struct volume *v;

        if (json_type(empty) != JSON_OBJECT || volume_memory_is(volume) || !name)
            continue;
        (void)snprintf(place, sizeof place, VOLUMES_PODS "/%s/volumes/%s", r->uid, name);
        v = add_volume(p, name, place);
        v->is_measured =
            true; /* it was made with the Pod; one that was there is measured soon enough */
        volume_limit_start(&v->limit, read_limit(json_get(empty, "sizeLimit"), v->limit_text), 0);
    }
}

/* What a claim held before its Pod ran. */
static bool find_held(const struct volumes_held *held, const char *place, uint64_t *ret)
{
    for (size_t i = 0; held && i < held->n; i++)
        if (strcmp(held->v[i].place, place) == 0) {
            *ret = held->v[i].bytes;
            return true;
        }
    return false;
}

static void add_claims(struct disk_pod *p, const struct volumes_held *held)
{
    const struct record *r = p->record;

    for (size_t i = 0; i < r->in_use_count; i++) {
        const char *place = r->in_use[i];
        const struct object *claim = claims_at(r->node->claims, place);
        struct volume *v =
            add_volume(p, claim ? object_name(claim) : strrchr(place, '/') + 1, place);
        uint64_t bytes = 0, limit;

        v->is_claim = true;
        limit = read_limit(claim ? object_at(claim, "spec.resources.requests.storage") : NULL,
                           v->limit_text);
        if (!claim) { /* it is gone, and its Pod has it still: it may not grow */
            limit = 0;
            (void)snprintf(v->limit_text, sizeof v->limit_text, "0");
        }
        v->is_measured = find_held(held, place, &bytes);
        volume_limit_start(&v->limit, limit, bytes);
    }
}

/* What its containers together may use of the disk. */
static uint64_t read_total(const struct object *pod, char text[QUANTITY_TEXT_BYTES])
{
    struct quantity sum = { .form = QUANTITY_BINARY }, q;

    *text = '\0';
    JSON_EACH(c, object_at(pod, "spec.containers"))
    {
        const struct json *limits = json_get(json_get(c, "resources"), "limits");

        if (quantity_parse(json_str(json_get(limits, "ephemeral-storage")), &q))
            sum.nano += q.nano, sum.form = q.form;
    }
    if (sum.nano <= 0)
        return VOLUME_NO_LIMIT;
    (void)quantity_text(&sum, text);
    return (uint64_t)MIN(sum.nano / NANO, (__int128)VOLUME_NO_LIMIT - 1);
}

void disk_watch_add(struct record *r, const struct volumes_held *held)
{
    struct disk_watch *w = r->node->disk;
    struct disk_pod *p;

    if (r->disk)
        disk_freeze_again(r->disk);
    if (r->disk || !r->pod)
        return;
    p = NEW(struct disk_pod);
    p->record = r;
    add_empty(p);
    add_claims(p, held);
    volume_limit_start(&p->total, read_total(r->pod, p->total_text), 0);
    if (!p->n) {
        pod_free(p);
        return;
    }
    r->disk = p;
    p->next = w->pods;
    w->pods = p;
    w->scan_ms = 0;
    if (!ev_timer_is_running(&w->timer))
        ev_timer_start(r->node->loop, &w->timer, DISK_LOOK_MS, tick, w);
}

void disk_watch_was_frozen(struct record *r)
{
    if (r->disk)
        r->disk->is_frozen = true;
}

void disk_watch_drop(struct record *r)
{
    struct disk_pod *p = take_ptr(&r->disk), **at;
    struct disk_watch *w = r->node->disk;

    if (!p)
        return;
    for (at = &w->pods; *at != p;)
        at = &(*at)->next;
    *at = p->next;
    if (w->cursor == p)
        w->cursor = p->next;
    for (size_t i = 0; i < w->turn.n; i++)
        if (w->turn.v[i].pod == p)
            w->turn.v[i].pod = NULL;
    for (struct move *m = w->moves; m; m = m->next)
        if (m->pod == p)
            m->pod = NULL;
    pod_free(p);
}

/* ---- free space ---- */

static void look(struct disk_watch *w, uint64_t now_ms)
{
    struct disk_room room;
    uint64_t free_bytes;
    struct err e;

    if (disk_room_read(w->node->dir_fd, w->floor_bytes, &room, &e) < 0)
        return;
    free_bytes = room.free_bytes;
    w->floor_bytes = room.floor_bytes;
    if (w->changes && free_bytes < w->free_bytes)
        w->fell += w->free_bytes - free_bytes;
    if (free_bytes != w->free_bytes) {
        w->changes++;
        w->scan_ms = 0;
    }
    w->free_bytes = free_bytes;
    w->is_near = free_bytes / 2 < w->floor_bytes;
    if (!w->is_short && disk_room_is_short(&room))
        log_warn("disk.short", KV("free", free_bytes), KV("floor", w->floor_bytes));
    w->is_short = disk_room_is_short(&room);
    if (free_bytes >= w->floor_bytes + w->floor_bytes / DISK_THAW_PART)
        disk_thaw(w);
    if (w->turn.is_busy || now_ms < w->rest_ms || (now_ms < w->scan_ms && !w->is_short))
        return;
    w->scan_ms = now_ms + DISK_FULL_LOOK_MS;
    disk_measure(w, now_ms);
}

static void tick(void *ctx)
{
    struct disk_watch *w = ctx;

    if (w->node->is_closing || !w->pods)
        return; /* the next Pod starts it again */
    look(w, time_mono_ms());
    ev_timer_start(w->node->loop, &w->timer, DISK_LOOK_MS, tick, w);
}

struct disk_watch *disk_watch_new(struct node *n, uint64_t floor_bytes)
{
    struct disk_watch *w = NEW(struct disk_watch);

    w->node = n;
    w->floor_bytes = floor_bytes;
    return w;
}

void disk_watch_free(struct disk_watch *w)
{
    if (!w)
        return;
    ev_timer_stop(w->node->loop, &w->timer);
    free(w);
}
