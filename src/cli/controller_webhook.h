/* controller_webhook: the conversion webhook of `silica controller`, with a certificate that is ours to keep, or with the
 * operator's, whose files are read again when they change.
 *
 * Owns:     webhook, keeper and the files' texts. Serving and options must outlive it.
 * Threads:  the loop's.
 */
#ifndef SILICA_CLI_CONTROLLER_WEBHOOK_H
#define SILICA_CLI_CONTROLLER_WEBHOOK_H

#include "base/buf.h"

struct controller_options;
struct controller_webhook;
struct serving;

/* *ret NULL: it is not wanted. ERR: files that are not there, a port that is taken. */
int controller_webhook_open(struct serving *s, const struct controller_options *o,
                            struct controller_webhook **ret, struct err *e);
/* The following tolerate NULL. */
const char *controller_webhook_address(const struct controller_webhook *w);
/* NULL: nothing is missing; else a line for /readyz. */
const char *controller_webhook_why_not(const struct controller_webhook *w);
int controller_webhook_metrics(const struct controller_webhook *w, struct buf *out, struct err *e);
/* Answers what is under way; done(ctx) once, maybe at once. */
void controller_webhook_drain(struct controller_webhook *w, void (*done)(void *ctx), void *ctx);
void controller_webhook_close(struct controller_webhook *w); /* not for callbacks */

#endif
