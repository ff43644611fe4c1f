/* sub: what the files of the subresources share.
 *
 * Owns:     nothing.
 * Used by:  sub*.c alone; the door is sub_answer (call.h).
 */
#ifndef SILICA_APISERVER_SUB_H
#define SILICA_APISERVER_SUB_H

#include "apiserver/call.h"

/* Bytes of JSON that tell of the head: they wait for its commit. Takes what is in body. */
void sub_answer_later(struct call *c, int code, struct buf *body);
/* Copies those members of the metadata `from` that are there; names end with NULL. */
void sub_copy_meta(struct json_edit *ed, struct json_node *to, struct json_node *from,
                   const char *const *names);

/* sub_scale.c */
void sub_scale_get(struct call *c);
void sub_scale_body(struct call *c, struct span bytes, struct json_edit *ed);

#endif
