/* welcome: the objects that a new data directory has: templates and pools that the SDKs' own examples name.
 *
 * Once:     what was given is written down in a ConfigMap, and is not given again: what the user changes or deletes stays
 *           as the user left it, and what a later release adds comes with its first start.
 * Owns:     nothing beyond the call.
 * Used by:  cli/control.c, on the store of its own process.
 * Threads:  the loop's.
 */
#ifndef SILICA_UP_WELCOME_H
#define SILICA_UP_WELCOME_H

#include "kube/client.h"

struct welcome;

/* done: once, in a later turn; e NULL: all is there, or was before. Freed by then. The client must outlive it. */
struct welcome *welcome_start(struct kube_client *client,
                              void (*done)(void *ctx, const struct err *e), void *ctx);

#endif
