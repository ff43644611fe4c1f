/* welcome: the objects that a new data directory has: templates and pools that the SDKs' own examples name, or those of the
 * operator's file (config.h).
 *
 * Once:     what was given is written down in a ConfigMap, and is not given again: what the user changes or deletes stays
 *           as the user left it, and what a later release or another file adds comes with its first start. Ours that a
 *           file took the place of are not given later, either.
 * Owns:     nothing beyond the call.
 * Used by:  cli/control.c, on the store of its own process.
 * Threads:  the loop's.
 */
#ifndef SILICA_UP_WELCOME_H
#define SILICA_UP_WELCOME_H

#include "kube/client.h"

struct welcome;

/* Rows as of the operator's file, borrowed for the call; NULL: ours. */
struct welcome_wishes {
    const struct json *templates, *pools;
};

/* done: once, in a later turn; e NULL: all is there, or was before. Freed by then. The client must outlive it. */
struct welcome *welcome_start(struct kube_client *client, const struct welcome_wishes *wishes,
                              void (*done)(void *ctx, const struct err *e), void *ctx);

/* Ours, as such a file would say it; the caller unrefs it. */
struct json_doc *welcome_ours(void);

#endif
