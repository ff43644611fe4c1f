/* op_sub: operations below an object, on bodies that are not the object: Scale, TokenRequest, Eviction, Binding.
 *
 * Owns:     nothing; trees are of the given edit. As op.h otherwise.
 * Used by:  sub*.c over HTTP, local_sub.c in this process.
 */
#ifndef SILICA_APISERVER_OP_SUB_H
#define SILICA_APISERVER_OP_SUB_H

#include "apiserver/op.h"

struct pki;

/* *ret: the Scale as it is, and after a write as it is then. */
int op_scale_get(struct op *op, enum store_view view, struct json_edit *ed, struct json_node **ret,
                 struct status *st);
int op_scale_update(struct op *op, struct json_edit *ed, struct json_node *scale,
                    struct json_node **ret, struct status *st);
/* JSON patches, and merge patches of both kinds, which are one on a Scale. */
int op_scale_patch(struct op *op, enum op_patch type, struct span patch, struct json_edit *ed,
                   struct json_node **ret, struct status *st);

/* The body, a TokenRequest, becomes the answer. */
int op_token(struct op *op, const struct pki *pki, struct json_edit *ed, struct json_node *body,
             struct status *st);

int op_evict(struct op *op, struct json_node *body, struct status *st);
/* Gives a Pod its node, once. */
int op_bind(struct op *op, struct json_edit *ed, struct json_node *body, struct status *st);
/* Only a Namespace's spec.finalizers. *ret is the caller's. */
int op_finalize(struct op *op, struct json_edit *ed, struct json_node *body, struct object **ret,
                struct status *st);

/* Copies those members of the metadata `from` that are there; names end with NULL. */
void op_copy_meta(struct json_edit *ed, struct json_node *to, struct json_node *from,
                  const char *const *names);

#endif
