/* claim_spec: what a claim asks for beyond its pool: labels and annotations, variables, volume claims; and the Sandbox that is
 * made for it when no member of a pool will do.
 *
 * Owns:     nothing. Does no I/O.
 * Errors:   a claim_fault says whether trying again can help. Texts are shown to people as the claim's condition.
 * Used by:  the reconciler of claims.
 */
#ifndef SILICA_CONTROLLER_CLAIM_SPEC_H
#define SILICA_CONTROLLER_CLAIM_SPEC_H

#include "controller/step.h"

enum claim_fault {
    CLAIM_FINE,
    /* Final: only a change of the claim or its template helps. */
    CLAIM_METADATA, /* InvalidMetadata */
    CLAIM_ENV,      /* EnvVarsInjectionRejected */
    CLAIM_VOLUMES,  /* VolumeClaimTemplatesError */
    /* To be tried again. */
    CLAIM_NO_TEMPLATE,
    CLAIM_NO_POOL,
    CLAIM_CONFLICT,  /* AdoptionConflict */
    CLAIM_PENDING,   /* SandboxCreatePending */
    CLAIM_NOT_OWNED, /* the name is another's; final until that goes */
    CLAIM_ERROR,     /* ReconcilerError */
};

/* spec.additionalPodMetadata by the rules; domains: those whose label keys are allowed, ended by NULL. */
enum claim_fault claim_check_metadata(const struct object *claim, const char *const *domains,
                                      struct err *e);

/* labels and annotations of the Pod: the template's, those that tell whose it is, the claim's own. ERR_CONFLICT: the claim says
 * otherwise than the template. */
int claim_pod_metadata(const struct object *claim, const struct object *template,
                       struct json_node *meta, struct err *e);

/* The claim wants what no member of a pool has. */
bool claim_needs_own(const struct object *claim);
/* A Sandbox made for the claim, of its name. */
enum claim_fault claim_make_sandbox(const struct object *claim, const struct object *template,
                                    struct json_edit *ed, struct step *ret, struct err *e);

#endif
