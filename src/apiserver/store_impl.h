/* store_impl: what the store's files share. store.c is the head and opening; store_commit.c is the way to the disk. */
#ifndef SILICA_APISERVER_STORE_IMPL_H
#define SILICA_APISERVER_STORE_IMPL_H

#include "apiserver/disk.h"
#include "apiserver/limits.h"
#include "apiserver/store.h"
#include "ev/timer.h"
#include "ev/worker.h"
#include "kube/kind.h"

/* A write on its way to the disk. */
struct row {
    uint64_t version;
    enum disk_op op;
    const struct kind *kind;
    struct object *object; /* keeps the names */
    struct shelf *shelf;   /* the head with it, of the last row of a full batch; else NULL */
    size_t size;           /* about that of its JSON, which the writer makes */
    bool is_bare;          /* a delete without its last state */
};

#define ROW_MAX_BYTES (16 << 20) /* far above what the verbs let in */

/* A state that a later one replaced: its row goes when the history has moved past the later one. */
struct stale {
    uint64_t version;
    uint64_t until;
    size_t size; /* about that of its JSON */
};

/* What the writer is given; one at a time. */
struct batch {
    struct ev_work work;
    struct row *rows;
    size_t n;
    struct disk_row *disk_rows;
    struct disk_batch disk;
    size_t garbage_bytes;
    struct shelf *shelf; /* the head as of its last row */
    uint64_t version;
    bool is_failed;
    struct err e;
};

/* What is being packed. */
struct store_rest {
    struct ev_timer timer;
    struct ev_task work;
    uint64_t until; /* what happened up to this version is packed, or to be packed now */
    uint64_t
        committed; /* the version on disk at the last tick: what is older by the next has had its time */
    uint64_t unpacked; /* json_unpack_count when the last sweep began */
    uint64_t swept_ms; /* when that was */
    uint64_t fresh_ms, sweep_ms;
    bool is_soon;          /* the timer runs for what is fresh, not for the next sweep */
    bool is_sweeping;      /* all that is on the head is looked at, */
    unsigned at_kind;      /* from here, */
    struct object *behind; /* and behind this one; or NULL */
};

struct store {
    struct ev_loop *loop;
    struct disk *disk;
    struct history *history;
    struct addresses *addresses;
    struct usage *usage;
    const struct kind *kinds;
    size_t kind_count;
    char **resources; /* by kind: "sandboxes.agents.x-k8s.io", as the file knows them */
    struct shelf *head, *committed;
    uint64_t version; /* the last one that was given away: also to a write whose commit failed */
    uint64_t head_version, committed_version;
    struct row *pending;
    size_t pending_count, pending_cap, pending_bytes;
    size_t cut_count, cut_bytes; /* of the pending rows behind the last full batch */
    struct batch *batch;         /* at the writer; NULL when it rests */
    struct buf bodies;           /* the writer's, of one batch */
    struct ev_task flush_task;
    uint64_t gathers_until_us; /* the next batch waits for more, at most until then */
    struct ev_pool *writer, *checkpointer;
    struct ev_work checkpoint_work, room_work;
    struct err checkpoint_err; /* where is_checkpoint_failed */
    bool is_checkpointing, is_checkpoint_failed, is_looking, is_full, has_room, is_closing;
    bool
        is_garbage_resting; /* the last commit failed: garbage alone is no reason to try again at once */
    struct ev_timer room_timer;
    struct store_rest rest;
    struct store_wait *waits, **waits_end;
    struct stale *stale; /* oldest first, a ring */
    size_t stale_first, stale_count, stale_cap, stale_bytes;
    size_t history_max, history_max_bytes;
    uint64_t room_retry_ms;
    struct store_stats stats;
};

static inline unsigned store_kind_number(const struct store *st, const struct kind *k)
{
    return (unsigned)(k - st->kinds);
}

/* store_rest.c */
void store_rest_open(struct store *st);
/* Something was committed. */
void store_rest_later(struct store *st);
void store_rest_close(struct store *st);

/* store_commit.c */
/* Only deletes from now on, until room is found. */
void store_become_full(struct store *st);
/* What clients are told while it is; -1. */
int store_is_full(struct err *e);
/* After each row: ends the batch that it fills. */
void store_cut_batch(struct store *st);
/* Takes a state that the write `until` superseded: for a delete also its own, which is the last. */
void store_add_stale(struct store *st, struct stale stale);
/* What is pending will be on its way to the disk in a later turn. */
void store_schedule(struct store *st);
/* Writes what is pending, here and now. */
void store_drain(struct store *st);

#endif
