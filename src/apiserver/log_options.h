/* log_options: what a client wants of a container's log, judged as the public server does.
 *
 * Used by:  stream.c, which passes it on to the pod side.
 */
#ifndef SILICA_APISERVER_LOG_OPTIONS_H
#define SILICA_APISERVER_LOG_OPTIONS_H

#include "apiserver/call.h"

/* Appends them as the pod side reads them (pods.h), each behind a '&'. -1 with c->status: 400, or 422 with causes. */
int log_options_read(struct call *c, struct buf *out);

#endif
