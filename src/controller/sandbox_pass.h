/* sandbox_pass: one look at one Sandbox, call by call. For sandbox.c.
 *
 *     VOLUMES -> POD (-> LOOKUP -> POD) -> NOTE -> SERVICE -> STATUS
 *     an expired one: MARK, and in the next pass END_POD -> END_SERVICE -> END_STATUS or END_SANDBOX
 *
 * An error in one part does not skip the others; it is told in the status, and the pass is tried again.
 */
#ifndef SILICA_CONTROLLER_SANDBOX_PASS_H
#define SILICA_CONTROLLER_SANDBOX_PASS_H

#include "controller/sandbox.h"
#include "kube/queue.h"

/* Runs a pass; it ends the work on the item. */
void sandbox_pass_start(const struct sandboxes_config *config, struct queue_item *item);

#endif
