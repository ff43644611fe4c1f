/* quota: a namespace's ResourceQuotas hold: what is made beyond them is refused, and their status says what is used.
 *
 *     op_commit: quota_check -> store_write -> quota_tell
 *
 * Owns:     nothing; the amounts are the book's (quota_book.h), which the store keeps up with each write. Both run in the
 *           turn of the write, so no two writes see the same place free.
 * Used by:  op_commit; whoever deletes past it tells too.
 * Trust:    what this process writes for itself passes; its controllers, who write for tenants, do not.
 */
#ifndef SILICA_APISERVER_QUOTA_H
#define SILICA_APISERVER_QUOTA_H

#include "apiserver/op.h"

/* Would o, made or put in the place of what stands under its name, be too much? 403 in the public server's words. */
int quota_check(const struct op *op, enum store_op what, const struct object *o, struct status *st);
/* Writes what is used into the quotas of the namespace, where they say otherwise. A store that takes no writes is told again
 * with the next one. */
void quota_tell(struct store *store, const char *namespace);
/* After a start: what was written last may have missed its quota. */
void quota_tell_all(struct store *store);

#endif
