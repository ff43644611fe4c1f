/* given: objects said as JSON texts, written through the client interface.
 *
 * Owns:     nothing. Texts are borrowed for the call.
 * Used by:  welcome, accounts, presence.
 */
#ifndef SILICA_UP_GIVEN_H
#define SILICA_UP_GIVEN_H

#include "kube/client.h"

#define GIVEN_TEXT_MAX_BYTES (64 * 1024)

struct given {
    const char *group, *plural;
    const char *namespace; /* "" where the kind has none */
    const char *text;      /* without apiVersion and kind */
};

/* The text must be an object of the kind: ours are constants and names that were checked. */
void given_create(struct kube_client *client, const struct given *w, kube_done_fn done, void *ctx);
/* Server-side apply: made, or brought to this; fields of others stay, ours are taken back. */
void given_apply(struct kube_client *client, const struct given *w, const char *name,
                 kube_done_fn done, void *ctx);
/* The status alone, by a merge patch: "{"status":...}". */
void given_status(struct kube_client *client, const struct given *w, const char *name,
                  kube_done_fn done, void *ctx);

#endif
