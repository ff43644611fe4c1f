/* template: what a SandboxTemplate needs besides itself: its own label, and the NetworkPolicy its sandboxes share.
 *
 * Owns:     nothing. Does no I/O.
 * Used by:  the reconciler of templates (templates.c).
 */
#ifndef SILICA_CONTROLLER_TEMPLATE_H
#define SILICA_CONTROLLER_TEMPLATE_H

#include "controller/step.h"

/* "<template>-network-policy"; the text lives in the edit. */
const char *template_policy_name(struct json_edit *ed, const struct object *template);
/* The label by which the policy finds Pods; STEP_NONE when it is there. */
struct step template_decide_label(const struct object *template, struct json_edit *ed);
/* `have` is the NetworkPolicy of that name, or NULL. ERR_CONFLICT: it is somebody else's, and is left alone. */
int template_decide_policy(const struct object *template, const struct object *have,
                           struct json_edit *ed, struct step *ret, struct err *e);

#endif
