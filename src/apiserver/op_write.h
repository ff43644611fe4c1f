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
/* A patch's text; held by the edit. 400 with the place. */
int op_patch_parse(struct span patch, struct json_edit *ed, const struct json **ret,
                   struct status *st);
/* Why a patch cannot be applied. Returns -1. */
int op_patch_refuse(struct status *st, const struct err *e);
/* What came out of a patch is no object: that is the patch's fault, so st's 400 becomes a cause of it. Returns -1. */
int op_patch_refuse_result(struct json_node *root, struct status *st);
/* Nothing holds a deleted object any more: it goes. */
bool op_may_go(const struct object *o);

#endif
