/* grant: nobody gives rights that he does not have. Judges roles and bindings before they are written.
 *
 * Owns:     nothing. What the maker may do is read as authz does, what a binding refers to from the head of the store.
 * Used by:  op_create.c, op_update.c. Operations of the process itself (op->user NULL) may give everything.
 */
#ifndef SILICA_APISERVER_GRANT_H
#define SILICA_APISERVER_GRANT_H

#include "apiserver/op.h"

/* body: as it shall be written; old: what is there, or NULL. Kinds that are no RBAC pass. -1: 403, with what is missing. */
int grant_check(struct op *op, struct json_node *body, struct json_node *old, struct status *st);

#endif
