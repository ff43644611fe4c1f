/* pass: what one look of a reconciler at one object has in common with any other: its item, its memory, the call that is
 * under way, what went wrong.
 *
 * Owns:     the edit in which decisions are made, and the texts of the faults. Embedded by the reconciler's own struct.
 * Life:     pass_init, any number of calls one after the other, pass_done; then the item is the queue's again. Every call is
 *           answered exactly once, in a later turn, also one that could not be sent.
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

struct pass {
    struct shared *shared;
    const char *manager; /* fieldManager of its writes */
    struct queue_item *item;
    struct json_edit *ed;
    struct timespec now;
    char now_text[40]; /* metav1.Time */
    struct buf faults; /* joined by newlines; empty: none */
    unsigned fault_count;
    bool is_stale;   /* what was decided on has changed: look again */
    bool is_waiting; /* a call is under way */
    kube_done_fn answered;
    void *ctx;
    struct ev_task task; /* a call that could not be sent */
    struct err unsent;
    char doing[160]; /* the step, for messages */
};

void pass_init(struct pass *p, struct shared *shared, const char *manager, struct queue_item *item);
void pass_done(struct pass *p);

/* Starts a write; its answer comes to answered(ctx). What a create or patch answers is in the shared copy by then. */
void pass_call(struct pass *p, const struct step *step, kube_done_fn answered, void *ctx);
/* The same with a look at the server's own state of an object. */
void pass_get(struct pass *p, const struct kind *kind, const char *namespace, const char *name,
              kube_done_fn answered, void *ctx);

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

#endif
