/* history: what happened to objects lately, and who is told.
 *
 * Owns:     the last events of each kind, each with the object as it was and as it is; the list of watches.
 * Used by:  store.c, which adds, commits and takes back; watches are embedded by their owners.
 * Threads:  the loop's.
 * Who sees what: a watch of the head is told at once; every other one is told of an event only when it is on disk.
 * Memory:   a watch holds no events of its own. One that is behind has a place in the history, and when the history has
 *           moved past that place it is told that it is lost (410 Gone), however slow its reader is.
 * Cost:     an event wakes only the watches that asked for its object, its namespace or its kind. A watch that is up to
 *           date has no place: the others' events cost it nothing.
 */
#ifndef SILICA_APISERVER_HISTORY_H
#define SILICA_APISERVER_HISTORY_H

#include "apiserver/shelf.h"
#include "ev/loop.h"
#include "kube/object.h"

enum event_type { EVENT_ADDED, EVENT_MODIFIED, EVENT_DELETED };

/* One change. Counted; whoever keeps it takes a reference. */
struct store_event {
    uint32_t refs;
    unsigned kind;
    enum event_type type;
    uint64_t version;
    struct object *now;    /* of a delete: its last state, with the version of the delete */
    struct object *before; /* NULL of a create */
    /* What it looks like on the wire, by served version of the kind: made by the first watch that needs it. */
    struct event_text *texts[2];
};

/* Bytes that many connections send. */
struct event_text {
    uint32_t refs;
    struct buf bytes;
};

struct store_event *store_event_ref(struct store_event *ev);
void store_event_unref(struct store_event *ev);

struct history;

struct store_watch {
    /* Set before the start, and left alone until the stop. */
    unsigned kind;
    const char *namespace, *name; /* "": any. Borrowed as long as the watch runs */
    bool is_head;                 /* told before it is on disk: for readers in this process only */
    bool is_keeping;              /* its owner keeps the objects that it is told of */
    /* False: it was taken, but no more until store_watch_resume. May stop this watch or others. */
    bool (*on_event)(void *ctx, struct store_event *ev);
    /* The place is gone; the watch has stopped. The owner lists again. */
    void (*on_lost)(void *ctx);
    void *ctx;
    /* The history's own. */
    struct history *history;
    struct store_watch *next, **link;    /* others of its bucket */
    struct store_watch *later, *earlier; /* others that are ready */
    uint64_t at;                         /* the next event to be told, by its number in its kind */
    bool is_behind, is_ready, is_full;
};

struct history *history_new(struct ev_loop *loop, unsigned kinds);
void history_free(struct history *h); /* all watches have been stopped */

/* Nothing is known of what happened up to this version. Before the first event. */
void history_begin(struct history *h, uint64_t version);
/* Takes the event: it happened, and is not on disk yet. */
void history_add(struct history *h, struct store_event *ev);
/* All up to this version are on disk. */
void history_commit(struct history *h, uint64_t version);
/* What was added and not committed never happened. Watches of the head are lost, and none begins at such a version. */
void history_take_back(struct history *h);
/* The version was given to a write that was taken back: who saw it saw what is not so. */
bool history_is_undone(const struct history *h, uint64_t version);
/* Forgets the oldest events of all kinds up to this version. */
void history_forget(struct history *h, uint64_t version);

/* The next event on disk, up to this version, that this did not give yet; NULL: none. The caller may put objects into it that say
 * the same. */
struct store_event *history_next_old(struct history *h, uint64_t version);
/* What happened to an object of the kind at this version, or NULL. */
struct store_event *history_find(const struct history *h, unsigned kind, uint64_t version);
/* A watch keeps the objects of the kind. */
bool history_is_kept(const struct history *h, unsigned kind);

/* Takes back, in *shelf, what happened to objects of a kind after `version` and is on disk. -1, ERR_GONE: the history
 * begins later, or there is more than can be taken back in a turn of the loop; *shelf is then as it was. */
int history_undo(const struct history *h, unsigned kind, uint64_t version, struct shelf **shelf,
                 struct err *e);
/* What happened to objects of a kind after `version`, on disk or not, oldest first. False: the history begins later. */
bool history_each(const struct history *h, unsigned kind, uint64_t version,
                  void (*fn)(void *ctx, const struct store_event *ev), void *ctx);
/* From the first event after `version`. -1, ERR_GONE: the history begins later, or it was undone. */
int history_watch(struct history *h, struct store_watch *w, uint64_t version, struct err *e);
/* No events until store_watch_resume; the place is kept. */
void store_watch_hold(struct store_watch *w);
void store_watch_resume(struct store_watch *w);
void store_watch_stop(struct store_watch *w); /* harmless when it does not run */
size_t history_watches(const struct history *h);

#endif
