/* reconciler: a queue of keys, and the copies whose changes put keys into it.
 *
 * Owns:     its queue and what it listens with. Embedded first in each reconciler's own struct.
 * Life:     init, follow and watch; close: no work is begun any more; then, once the copies are closed and nothing can call it,
 *           done.
 * Used by:  sandbox, template, pool and claim; controller.c runs them.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_RECONCILER_H
#define SILICA_CONTROLLER_RECONCILER_H

#include "controller/shared.h"
#include "kube/queue.h"

struct reconciler;

/* One change of a copy. */
struct change {
    const struct object *was; /* NULL: it is new */
    const struct object *now; /* NULL: it is gone */
    bool is_initial;          /* it was there from the start */
};
/* Whichever there is. */
static inline const struct object *change_object(const struct change *c)
{
    return c->now ? c->now : c->was;
}

typedef void (*reconciler_fn)(struct reconciler *r, const struct change *c);

struct reconciler {
    struct shared *shared;
    struct queue *queue;    /* NULL: it is closed */
    struct follow *follows; /* what it listens with */
    void (*free)(struct reconciler *r);
};

/* Passes at a time. */
struct reconciler_workers {
    unsigned most;
    unsigned busy; /* while urgent ones of others are to be made; 0: as many */
    bool is_held;  /* none while few urgent ones are (shared_holds) */
};
/* work(r, item) makes a pass; `free` frees the struct around. */
void reconciler_init(struct reconciler *r, struct shared *shared, const char *name,
                     struct reconciler_workers workers,
                     void (*work)(void *r, struct queue_item *item),
                     void (*free)(struct reconciler *r));
/* Objects of this kind are its keys: each change of one wakes it. */
void reconciler_follow(struct reconciler *r, enum shared_kind kind);
/* The same, but for what its own passes write: they have looked at it. */
void reconciler_follow_others(struct reconciler *r, enum shared_kind kind);
/* The change is its own write. */
bool reconciler_is_echo(const struct reconciler *r, const struct change *c);
/* Each change of one of this kind comes to fn. */
void reconciler_watch(struct reconciler *r, enum shared_kind kind, reconciler_fn fn);
/* The same; wakes the object of this group and kind that is its controller. */
void reconciler_wake(struct reconciler *r, const char *namespace, const char *name,
                     bool is_initial);
/* Wakes the controller of the changed object if it is of this group and kind. False: it is not. */
bool reconciler_wake_owner(struct reconciler *r, const struct change *c, const char *group,
                           const char *kind);

/* `closed` comes when the last pass has ended. */
void reconciler_close(struct reconciler *r, void (*closed)(void *ctx), void *ctx);
void reconciler_done(struct reconciler *r);

#endif
