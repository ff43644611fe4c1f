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
/* sub_scale.c */
void sub_scale_get(struct call *c);
void sub_scale_body(struct call *c, struct span bytes, struct json_edit *ed);

#endif
