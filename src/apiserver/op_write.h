/* op_write: the last steps that all writes share; only for op_*.c. */
#ifndef SILICA_APISERVER_OP_WRITE_H
#define SILICA_APISERVER_OP_WRITE_H

#include "apiserver/op.h"

/* Writes, or for a dry run only looks whether it could be. *ret is the caller's. */
int op_commit(struct op *op, enum store_op what, struct object *o, bool is_freeing,
              struct object **ret, struct status *st);
/* From what there is to what shall be, both in the path's version: keeps what a client may not change, judges, writes.
 * body is changed. */
int op_replace(struct op *op, struct json_edit *ed, struct object *old, struct json_node *body,
               struct object **ret, struct status *st);
/* Nothing holds a deleted object any more: it goes. */
bool op_may_go(const struct object *o);

#endif
