/* disk_watch_impl: what the files of disk_watch share. */
#ifndef SILICA_NODE_DISK_WATCH_IMPL_H
#define SILICA_NODE_DISK_WATCH_IMPL_H

#include "node/disk_watch.h"

#include "ev/timer.h"
#include "kube/quantity.h"
#include "node/dirtree.h"
#include "node/limits.h"
#include "node/node_impl.h"
#include "node/volume_limit.h"

struct volume {
    char *name; /* of the volume, or of the claim */
    char *place;
    bool is_claim, is_measured;
    struct volume_limit limit;
    char limit_text[QUANTITY_TEXT_BYTES];
    uint64_t fell, changes; /* the disk's, when it was measured */
    uint64_t measured_ms, took_ms;
    uint64_t grew; /* between the last two measures */
};

struct disk_pod {
    struct disk_pod *next;
    struct record *record;
    struct volume *v;
    size_t n;
    struct volume_limit total; /* of all but claims: the containers' limits of ephemeral storage */
    char total_text[QUANTITY_TEXT_BYTES];
    bool is_frozen, is_evicted, is_moving; /* is_moving: it is being frozen, or is let go on */
};

/* One walk of a turn. */
struct walk {
    struct disk_pod *pod; /* NULL: it went meanwhile */
    size_t at;
    char *place;
    uint64_t fell, changes, took_ms;
    bool is_done;
    struct dirtree_count count;
};

struct turn {
    struct crew_job job;
    struct walk v[DISK_TURN_MAX];
    size_t n;
    uint64_t took_ms;
    bool is_busy;
};

/* All sandboxes of a Pod are frozen, or go on. */
struct move {
    struct move *next;
    struct disk_watch *of;
    struct disk_pod *pod; /* NULL: it went meanwhile */
    struct crew_job job;
    bool is_freeze;
    char *evicted; /* frozen for this; NULL: for want of room */
    char (*boxes)[RUN_NAME_BYTES];
    size_t n;
    struct err e; /* of one that could not be, or none */
};

struct disk_watch {
    struct node *node;
    uint64_t floor_bytes;
    struct ev_timer timer;
    struct disk_pod *pods, *cursor;
    struct turn turn;
    struct move *moves;
    uint64_t free_bytes, fell, changes; /* fell: all that free space ever went down */
    uint64_t scan_ms, rest_ms;          /* look even if nothing changed; not before */
    bool is_near, is_short;             /* of the floor; below it */
};

/* disk_measure.c: those that may hold too much, and may be looked at now. */
void disk_measure(struct disk_watch *w, uint64_t now_ms);

/* disk_evict.c: frozen, then ended by the next look at its Pod. v NULL: all volumes together; not counted: nobody can say how
 * much it holds. */
void disk_evict(struct disk_watch *w, struct disk_pod *p, const struct volume *v, bool is_counted);
/* What grew most stands still. */
void disk_freeze_most(struct disk_watch *w);
/* A container of it has started since: it stands still as the others do, if they do. */
void disk_freeze_again(struct disk_pod *p);
/* All that stand still for want of room go on. */
void disk_thaw(struct disk_watch *w);

#endif
