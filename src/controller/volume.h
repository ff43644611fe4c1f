/* volume: the PersistentVolumeClaims of a sandbox, one per volumeClaimTemplate.
 *
 * Owns:     nothing. They are made once and never corrected; they outlive suspension and a retained expiry, and go with
 *           the Sandbox.
 * Used by:  the Sandbox reconciler. Does no I/O.
 */
#ifndef SILICA_CONTROLLER_VOLUME_H
#define SILICA_CONTROLLER_VOLUME_H

#include "controller/step.h"

/* `have` is the claim of the template's name, or NULL. *ret is STEP_NONE when it is there. ERR_CONFLICT: it belongs to
 * somebody else. */
int volume_decide(const struct object *sandbox, const struct json *template,
                  const struct object *have, struct json_edit *ed, struct step *ret, struct err *e);

#endif
