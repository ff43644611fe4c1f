/* definition: CustomResourceDefinitions on a server whose kinds are fixed.
 *
 *     kubectl apply -f crds.yaml   ->   accepted and kept as an object; what is served does not change
 *
 * The definitions of our four kinds are there from the start, as we made them, which their annotation says. Somebody who
 * creates, applies or changes one makes it his own: his create and his apply meet nothing of ours, as in a cluster that
 * has none. When one is deleted ours is there again a moment later, and the objects of its kind stay.
 *
 * Owns:     nothing; the definitions are part of the program.
 * Used by:  seed.c, collect.c, op_*.c.
 */
#ifndef SILICA_APISERVER_DEFINITION_H
#define SILICA_APISERVER_DEFINITION_H

#include "apiserver/op.h"

bool definition_is_one(const struct kind *k);
/* Makes those that are missing, and those of an older program as they are now. */
int definition_seed(struct store *store, struct err *e);
/* One that nobody but us has written. */
bool definition_is_given(const struct object *o);
/* The definition of `name` that only we have written, borrowed; NULL when there is none. */
struct object *definition_given(const struct op *op, const char *name);

/* A new one, with its defaults: of a kind that is served, or refused. Its status says that its names are accepted. */
int definition_admit(struct op *op, struct json_edit *ed, struct json_node *body,
                     struct status *st);
/* A change: the writer makes it his own. */
void definition_adopt(struct op *op, struct json_node *body, struct json_node *was);
/* A delete: its answer tells that ours will be there again. */
void definition_warn(struct op *op, const char *name);

#endif
