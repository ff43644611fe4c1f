/* review: questions to the server about access: created, answered, never kept.
 *
 * Owns:     nothing.
 * Used by:  write.c over HTTP, local_call.c in this process.
 */
#ifndef SILICA_APISERVER_REVIEW_H
#define SILICA_APISERVER_REVIEW_H

#include "apiserver/apiserver.h"
#include "apiserver/op.h"

/* op->user, who must be somebody, asks; the body becomes the answer. */
int review(struct apiserver *s, struct op *op, struct json_edit *ed, struct json_node *body,
           struct status *st);

#endif
