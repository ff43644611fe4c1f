/* status: the Status objects of Kubernetes that end a stream or refuse one.
 *
 * Owns:     nothing; each adds one JSON text to `out`, which has room for it.
 */
#ifndef SILICA_PODSTREAM_STATUS_H
#define SILICA_PODSTREAM_STATUS_H

#include "base/buf.h"

#define STATUS_MAX_BYTES 4096 /* of one: an error's texts, every byte of them escaped */

/* How a command ended, for the error channel. Clients read details.causes[0].message as the exit code, whatever else
 * the object says, so it is always there. */
void status_of_exit(struct buf *out, int code);
/* It did not run, or was cut off: with the exit code that a shell would give. */
void status_of_error(struct buf *out, const struct err *why);
int status_exit_code(const struct err *why);
/* The body of an HTTP answer. */
void status_of_refusal(struct buf *out, int http_status, const char *reason, const char *message);

#endif
