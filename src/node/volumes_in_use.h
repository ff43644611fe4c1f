/* volumes_in_use: which claims' directories a Pod's sandboxes have mounted, or are about to.
 *
 *     volumes_in_use_add (before a container is made) or volumes_in_use_adopt (a sandbox that was there when the node started)
 *     -> volumes_in_use_find, before a claim's directory is removed
 *     -> volumes_in_use_release, when nothing of the Pod runs
 *
 * The API keeps a claim by a finalizer as long as a Pod names it, and a tenant may take the finalizer away: what is mounted
 * decides.
 *
 * Owns:     the places, in the record.
 * Used by:  make.c, node.c and work_api.c; claims.c asks.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_VOLUMES_IN_USE_H
#define SILICA_NODE_VOLUMES_IN_USE_H

#include "node/record.h"

/* The claims that the Pod names, as they were fetched. ERR_CONFLICT: the directory of one is being removed. */
int volumes_in_use_add(struct record *r, struct err *e);
/* Those that a sandbox in the engine's directory was made with. */
void volumes_in_use_adopt(struct record *r, const char *box);
/* Sandboxes of some Pod have it. */
bool volumes_in_use_find(const struct node *n, const char *place);
/* Nothing of the Pod runs. Claims that went meanwhile are removed now, unless another Pod has them. */
void volumes_in_use_release(struct record *r);

#endif
