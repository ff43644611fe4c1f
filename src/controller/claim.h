/* claim: what is written on a SandboxClaim and on the Sandbox it gets: the lock, the adoption, the status, the end.
 *
 * Owns:     nothing. Does no I/O; `now` is the caller's.
 * Adoption: two writes, both of what was seen and nothing else: the sandbox's name on the claim, then the claim as owner of the
 *           sandbox. Whoever is killed in between finds the name and goes on; nobody can take the sandbox meanwhile.
 * Used by:  the reconciler of claims.
 */
#ifndef SILICA_CONTROLLER_CLAIM_H
#define SILICA_CONTROLLER_CLAIM_H

#include "controller/claim_spec.h"
#include "controller/expiry.h"

/* ---- the end ---- */

/* shutdownTime, or ttlSecondsAfterFinished after the end of the sandbox: whichever is first. */
struct expiry claim_expiry(const struct object *claim, struct timespec now);
/* The status says that it expired. */
bool claim_is_marked(const struct object *claim);
enum claim_end { CLAIM_END_RETAIN, CLAIM_END_DELETE, CLAIM_END_FOREGROUND };
enum claim_end claim_end_of(const struct object *claim);

/* ---- adoption ---- */

/* The sandbox that was given to it, from the annotation or the label it once was; NULL: none. */
const char *claim_assigned(const struct object *claim);
/* Notes when the claim was ready for the first time, so that its latency is counted once; NULL: nobody saw it. */
struct step claim_stamp(const struct object *claim, const struct timespec *now,
                        struct json_edit *ed);
/* now: when the claim was first seen, if that is to be said; or NULL. */
struct step claim_lock(const struct object *claim, const char *sandbox, const struct timespec *now,
                       struct json_edit *ed);
struct step claim_unlock(const struct object *claim, struct json_edit *ed);
/* The claim becomes the owner; the template (NULL: unreadable) and the claim say what is on the Pod. */
int claim_adopt(const struct object *claim, const struct object *template,
                const struct object *sandbox, struct json_edit *ed, struct step *ret,
                struct err *e);
/* What changed on claim or template since; STEP_NONE: nothing. launch: what it says if it says nothing. */
int claim_follow(const struct object *claim, const struct object *template,
                 const struct object *sandbox, const char *launch, struct json_edit *ed,
                 struct step *ret, struct err *e);

/* ---- status ---- */

/* The reason that Ready has for it. */
const char *claim_fault_reason(enum claim_fault fault);

struct claim_facts {
    const struct object *claim;
    const struct object *sandbox; /* its own, or NULL */
    enum claim_fault fault;
    const char *text; /* of the fault */
    const char *now;
    const struct object *pod; /* the sandbox's, or NULL */
};
struct json_node *claim_status(const struct claim_facts *f, struct json_edit *ed);
/* It has expired. text NULL: as usual. is_gone: the sandbox is, or is not its own. */
struct json_node *claim_status_expired(const struct object *claim, const char *text, bool is_gone,
                                       const char *now, struct json_edit *ed);
/* The write, of the version that was seen; STEP_NONE when it says nothing new. */
struct step claim_status_step(const struct object *claim, struct json_node *status,
                              struct json_edit *ed);

#endif
