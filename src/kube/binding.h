/* binding: a Pod that no node has yet, and how it is given to one.
 *
 * Owns:     nothing.
 * Used by:  up/schedule for a whole system, node for one that has no other scheduler.
 */
#ifndef SILICA_KUBE_BINDING_H
#define SILICA_KUBE_BINDING_H

#include "kube/client.h"

/* Nobody has it, and nothing speaks against it: no gate, no other scheduler, no deletion. */
bool binding_is_wanted(const struct object *pod);
/* 409: somebody was faster. */
void binding_start(struct kube_client *client, const struct object *pod, const char *node,
                   kube_done_fn done, void *ctx);

#endif
