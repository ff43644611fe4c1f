/* crowd: no more Events than a ceiling, and no more Leases, at any time: they are in memory, and a controller may write a thousand
 * a second.
 *
 *     written -> lean (store_lean), in line -> beyond the ceiling: the oldest of the namespace that has most of them go, those
 *     that only say that something went well first
 *
 * Owns:     a reference to each object as it was written, in the order of writing, by namespace; one that was written again or
 *           deleted since is passed over when its turn comes. Twice the objects that there are, at most.
 * Used by:  expire.c, whose sweeps take those that grew old.
 * Threads:  the loop's. Deletes are writes as any other, some in each turn of the loop: watches hear of them.
 */
#ifndef SILICA_APISERVER_CROWD_H
#define SILICA_APISERVER_CROWD_H

#include "apiserver/store.h"

struct crowd;

/* What is on the head already is in line by its version. */
struct crowd *crowd_open(struct ev_loop *loop, struct store *store, unsigned kind, size_t max);
void crowd_close(struct crowd *c); /* tolerates NULL */

#endif
