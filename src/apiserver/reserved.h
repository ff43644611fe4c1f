/* reserved: objects that stand for parts of the system, which only its operator writes. A tenant that may write Pods and
 * Services in a namespace may not write these there, whatever RBAC gives.
 *
 *     config.is_reserved -> op.is_reserved -> op_commit asks reserved_check before any write
 *
 * Owns:     nothing.
 * Trust:    the operator is a user that may do everything in all namespaces, and the process itself. Controllers in this
 *           process write what tenants ask for (op.is_deputy), so they count as tenants here.
 */
#ifndef SILICA_APISERVER_RESERVED_H
#define SILICA_APISERVER_RESERVED_H

#include "apiserver/op.h"

/* True: op's user may not write the object of this name. */
bool reserved_refuses(const struct op *op, const char *namespace, const char *name);
/* 403 where it refuses. */
int reserved_check(const struct op *op, const char *namespace, const char *name, struct status *st);

#endif
