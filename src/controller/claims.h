/* claims: the reconciler of SandboxClaims: each gets one sandbox, a waiting one of its pool or a new one, and no other.
 *
 * Owns:     the candidates (candidates.h), what is still to be noted (stamps.h) and the passes under way. Decisions are claim.h and claim_spec.h.
 * Used by:  controller.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_CLAIMS_H
#define SILICA_CONTROLLER_CLAIMS_H

#include "controller/candidates.h"
#include "controller/controller.h"
#include "controller/reconciler.h"
#include "controller/stamps.h"

struct reconciler *claims_new(struct shared *shared, const struct controller_config *config);

struct claims {
    struct reconciler base;
    const struct controller_config *config;
    struct candidates *candidates;
    struct stamps *stamps;
};

/* claim_pass.c: one look at one claim; it ends the work on the item. */
void claim_pass_start(struct claims *r, struct queue_item *item);

/* An older claim names a template: it converts to a pool of this name, which need not exist. */
#define CLAIM_SHADOW_PREFIX "shadow-pool-"

/* claim_source.c: where a claim's sandbox may come from. */
struct claim_source {
    const struct object *pool;     /* the one it names, or NULL */
    const struct object *template; /* NULL: there is none */
    const char *template_name;     /* for messages; NULL: nobody says one */
    bool takes_any;                /* a claim of the older API: any pool of the template will do */
};
/* Objects and texts are borrowed from the copies, or from the edit. */
struct claim_source claim_source_of(struct shared *shared, const struct object *claim,
                                    struct json_edit *ed);
/* Takes the best candidate of the pools it may use: borrowed, or NULL. *ret_pending: how many have no address yet; the claim is
 * woken when one of the first such pool gets its own. */
struct object *claim_source_take(struct claims *r, const struct object *claim,
                                 const struct claim_source *source, size_t *ret_pending);
/* The sandbox is one that the claim may complete the adoption of. */
bool claim_source_allows(const struct claim_source *source, const struct object *claim,
                         const struct object *sandbox);

#endif
