/* templates: the reconciler of SandboxTemplates: their label, and the NetworkPolicy of their sandboxes (template.h).
 *
 * Used by:  controller.c. A policy that somebody else made under its name is left alone, and told in the log.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_TEMPLATES_H
#define SILICA_CONTROLLER_TEMPLATES_H

#include "controller/controller.h"
#include "controller/reconciler.h"

struct reconciler *templates_new(struct shared *shared, const struct controller_config *config);

#endif
