/* pass: what one look of a reconciler at one object has in common with any other: its item, its memory, the call that is
 * under way, what went wrong, when to look again.
 *
 *     pass_init(&p->pass, &kind, shared, item, p); pass_go(&p->pass);
 *     static bool act(void *self): switch (p->state) { case AT_X: do_x(p); return true; ... case AT_OVER: finish(p); return false; }
 *
 * Owns:     the edit in which decisions are made, and the texts of the faults. Embedded by the reconciler's own struct.
 * Life:     pass_init, pass_go: then one act follows the other, and after a call its answer first, until one says that it was the
 *           last; it has called pass_end, and the item is the queue's again. Every call is answered exactly once, in a later
 *           turn, also one that could not be sent.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_PASS_H
#define SILICA_CONTROLLER_PASS_H

#include "controller/shared.h"
#include "controller/step.h"
#include "ev/loop.h"
#include "kube/queue.h"

#include <time.h>

/* What reconcilers tell apart in an answer. */
enum outcome {
    OUTCOME_DONE,
    OUTCOME_GONE,    /* 404 */
    OUTCOME_EXISTS,  /* 409: the name is taken */
    OUTCOME_STALE,   /* 409: it has changed since it was looked at */
    OUTCOME_INVALID, /* 422: it will not be taken as it is written */
    OUTCOME_FAILED,  /* anything else, no answer included */
};
enum outcome outcome_of(const struct kube_answer *answer);
/* The same for those who tell less apart. */
enum verdict {
    VERDICT_DONE,
    VERDICT_CHANGED, /* it is not what it was when it was looked at: gone, there, or another */
    VERDICT_REFUSED,
};
enum verdict verdict_of(const struct kube_answer *answer);

/* What passes of one reconciler have in common. */
struct pass_kind {
    const char *manager; /* fieldManager of their writes */
    /* Does what the state of the pass asks for, with at most one call. False: this was the end, and the pass is freed. */
    bool (*act)(void *self);
};

struct pass {
    const struct pass_kind *kind;
    void *self; /* who embeds it */
    struct shared *shared;
    struct queue_item *item;
    struct json_edit *ed;
    struct timespec now;
    char now_text[40]; /* metav1.Time */
    struct buf faults; /* joined by newlines; empty: none */
    unsigned fault_count;
    bool is_stale;     /* what was decided on has changed: look again */
    bool is_waiting;   /* a call is under way */
    uint64_t again_ms; /* something happens by itself then; 0: nothing */
    kube_done_fn answered;
    struct ev_task task; /* a call that could not be sent */
    struct err unsent;
    char doing[160]; /* the step, for messages */
};

void pass_init(struct pass *p, const struct pass_kind *kind, struct shared *shared,
               struct queue_item *item, void *self);
/* Acts until a call is under way, or the pass is over. For those who waited for more than one call: is_waiting is theirs. */
void pass_go(struct pass *p);
/* Gives the item back: to be tried again if it has failed or what was decided on is stale; to be looked at again as said; or
 * done. */
void pass_end(struct pass *p, bool has_failed);

/* It is to be looked at again in so many ms, or earlier. */
void pass_look_again(struct pass *p, uint64_t ms);

/* Starts a write; its answer comes to answered(self), then the pass goes on. What a create or patch answers is in the shared
 * copy by then, and does not wake the object again (shared_is_echo): whoever writes looks at the answer. */
void pass_call(struct pass *p, const struct step *step, kube_done_fn answered);
/* The same with a look at the server's own state of an object. */
void pass_get(struct pass *p, const struct kind *kind, const char *namespace, const char *name,
              kube_done_fn answered);

/* What passes decide by is the same, but for the status and the annotations. A write that is not bound to a version may bring
 * another's change along, of which no event tells then: the pass looks again if there is one. */
bool pass_is_as_seen(const struct object *seen, const struct object *now);
/* *to becomes a reference to o, or NULL; the one that was there is dropped. */
void pass_set(struct object **to, struct object *o);

void pass_fault(struct pass *p, const char *text);
/* "cannot create Pod n/s: <what the server said>" */
void pass_fault_of(struct pass *p, const struct kube_answer *answer);
/* What went wrong so far does not matter any more. */
void pass_forgive(struct pass *p);
/* The answer to a delete: what is gone already, or is another by now, is gone; anything else is a fault. */
void pass_deleted(struct pass *p, const struct kube_answer *answer);
bool pass_has_faults(const struct pass *p);
/* Says what went wrong, if anything did: `event` with the object under its name `what`. A few lines a minute, over all
 * reconcilers: what is wrong with the server is wrong with every object. The others are counted, and debug has them all. */
void pass_say_faults(const struct pass *p, const char *event, const char *what);

#endif
