/* namespace_limit: a namespace has so many objects and bytes at most, so that one tenant cannot take the memory of all.
 *
 * Owns:     nothing. The ceiling is the server's (--namespace-max-objects, --namespace-max-bytes) unless the Namespace has
 *           annotations, which only those write who may write Namespaces.
 * Used by:  op_commit, for each write.
 * Trust:    what this process writes for itself passes, so that a full namespace does not keep the system from starting. What
 *           its controllers write for tenants is judged when it is made, and may be changed and deleted always.
 */
#ifndef SILICA_APISERVER_NAMESPACE_LIMIT_H
#define SILICA_APISERVER_NAMESPACE_LIMIT_H

#include "apiserver/op.h"

#define NAMESPACE_MAX_OBJECTS "silica.dev/max-objects"
#define NAMESPACE_MAX_BYTES   "silica.dev/max-bytes"

/* Would o, made or put in the place of what stands under its name, be too much? 403 in the words of a quota. */
int namespace_limit_check(const struct op *op, enum store_op what, const struct object *o,
                          struct status *st);

#endif
