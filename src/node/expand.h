/* expand: $(NAME) in texts of a Pod, as Kubernetes expands it.
 *
 *     $(NAME)  the variable's value; a name that is not known stays as it stands
 *     $$       one dollar, so $$(NAME) is the text $(NAME)
 *     $x, $(   anything else stays; what a value brings in is not looked at again
 *
 * Owns:     nothing. Does no I/O.
 * Used by:  env.c for values, commands and arguments; volumes for subPathExpr.
 */
#ifndef SILICA_NODE_EXPAND_H
#define SILICA_NODE_EXPAND_H

#include "base/buf.h"

/* The value of a name, or p == NULL when there is none. */
typedef struct span (*expand_find_fn)(void *ctx, struct span name);

/* Appends the expanded text. ERR_LIMIT: out's ceiling; out then has a part of it. */
int expand_text(struct span text, expand_find_fn find, void *ctx, struct buf *out, struct err *e);

#endif
