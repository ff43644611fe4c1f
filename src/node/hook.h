/* hook: what a container wants done when it has begun (postStart) and before it is told to end (preStop).
 *
 *     hook_has(container, HOOK_START) -> hook_start -> the container's life says that it is over, and its Pod is looked at
 *
 * Rules:    the kubelet's: a container is not said to run before its postStart is over, and the next one waits for it; one
 *           whose postStart fails is ended, and its restartPolicy says what then. preStop is part of the grace period; that it
 *           failed is told, and changes nothing. A node that is killed meanwhile says postStart is over, and does preStop again.
 * Owns:     each hook itself, until it is over; those of a node that closes are called off.
 * Used by:  work.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_HOOK_H
#define SILICA_NODE_HOOK_H

#include "node/node_impl.h"

enum hook_when { HOOK_START, HOOK_STOP };

bool hook_has(const struct json *container, enum hook_when when);
/* timeout_ms: then it has failed. */
void hook_start(struct record *r, size_t at, enum hook_when when, uint64_t timeout_ms);
/* All of them. */
void hook_close(struct node *n);

#endif
