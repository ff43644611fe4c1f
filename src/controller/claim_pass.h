/* claim_pass: one look at one claim, as the two files that carry it out share it: claim_pass.c and claim_bind.c.
 *
 *     POLICY -> FIND -> FOLLOW -> STATUS     it has its sandbox; STAMP: and is ready for the first time
 *     FIND -> LOCK -> TAKE -> STATUS         it takes one that waits; RESOLVE: others wrote it meanwhile
 *     FIND -> CREATE -> STATUS               it gets a new one
 *     MARK; then END_CLAIM, or END_SANDBOX -> END_STATUS     it has expired
 */
#ifndef SILICA_CONTROLLER_CLAIM_PASS_H
#define SILICA_CONTROLLER_CLAIM_PASS_H

#include "controller/claim.h"
#include "controller/claims.h"
#include "controller/pass.h"

enum claim_state {
    AT_POLICY, /* one that an older controller made for the claim */
    AT_FIND,
    AT_UNLOCK, /* its call is under way */
    AT_LOCK,
    AT_TAKE,
    AT_RESOLVE,
    AT_CREATE,
    AT_FOLLOW,
    AT_STATUS,
    AT_STAMP,
    AT_MARK,
    AT_END_CLAIM,
    AT_END_SANDBOX,
    AT_END_STATUS,
    AT_OVER,
};

struct claim_pass {
    struct pass pass;
    struct claims *r;
    enum claim_state state;
    struct object *claim;     /* ours, as our writes leave it */
    struct object *sandbox;   /* ours: the claim's own, or NULL */
    struct object *candidate; /* ours: the one that is being adopted, or NULL */
    bool is_taken;            /* from the candidates: to be released if it is not adopted */
    unsigned tries;           /* of the adoption */
    const char *launch;       /* how a sandbox was started that does not say */
    enum claim_state after_unlock;
    enum claim_fault fault;
    struct err why;
    char end_text[640]; /* of an expired claim whose sandbox is not its own; or "" */
    bool is_end_gone, is_marking;
    bool became_ready; /* by the status that was written */
};

/* Most answers: it is done; or it must be looked at anew, or is a fault, and the pass goes on to tell so. True: done. */
bool claim_pass_is_done(struct claim_pass *p, const struct kube_answer *answer);
/* The candidate is not ours after all. */
void claim_pass_let_go(struct claim_pass *p);
/* What was decided on has changed: the pass ends, and another begins. */
void claim_pass_start_over(struct claim_pass *p);
/* On to the status, which tells of p->why. */
void claim_pass_fail(struct claim_pass *p, enum claim_fault fault);
/* The same, of a call that was refused for no reason we know. */
void claim_pass_fail_of(struct claim_pass *p, const struct kube_answer *answer);
void claim_pass_tell(struct claim_pass *p, const char *reason, const char *action,
                     const char *note);
/* Borrowed, or NULL. */
struct object *claim_pass_sandbox(struct claim_pass *p, const char *name);

/* claim_bind.c: each state does something, and gets its answer. */
void bind_find(struct claim_pass *p);
void bind_lock(struct claim_pass *p);
void bind_take(struct claim_pass *p);
void bind_resolve(struct claim_pass *p);
void bind_create(struct claim_pass *p);

#endif
