/* pod: which Pod is a sandbox's, and what is to be done about it.
 *
 *     the Sandbox, the Pods that could be its -> create, adopt, correct, delete, wait, refuse
 *
 * Owns:     nothing: objects are borrowed, what is made lives in the edit.
 * Rule:     one sandbox, one Pod. Its controller's uid makes a Pod a sandbox's, nothing else. A Pod that exists keeps
 *           its spec for ever: only its labels and annotations follow the sandbox.
 * Used by:  the Sandbox reconciler. Does no I/O, reads no clock.
 */
#ifndef SILICA_CONTROLLER_POD_H
#define SILICA_CONTROLLER_POD_H

#include "controller/step.h"

struct pod_view {
    const struct object *sandbox;
    struct object *const *tracked; /* the Pods that carry the sandbox's tracking label */
    size_t tracked_count;
    struct object *named; /* the Pod of the name pod_name_of() says, or NULL */
};

struct pod_verdict {
    struct step step;
    struct object *pod;         /* the sandbox's Pod before the step, or NULL */
    const char *note;           /* what the annotation pod-name becomes; "": it goes; NULL: stays */
    const char *note_if_failed; /* the same, when the step fails */
    struct err fault;           /* why there is nothing to be done; code ERR_NONE: none */
    bool is_conflict;           /* the fault is that several Pods are its own */
    bool is_metadata_only;      /* the step corrects labels and annotations; it may wait a little */
};

/* The annotation pod-name, else the sandbox's own name. */
const char *pod_name_of(const struct object *sandbox);
bool sandbox_is_suspended(const struct object *sandbox);

void pod_decide(const struct pod_view *v, struct json_edit *ed, struct pod_verdict *ret);

/* The claim made from a volumeClaimTemplate: "<template>-<sandbox>". The text lives in the edit. */
const char *volume_claim_name(struct json_edit *ed, const struct json *template,
                              const struct object *sandbox);

#endif
