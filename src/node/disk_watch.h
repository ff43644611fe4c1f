/* disk_watch: volumes on this machine's disk are held to their size, and the disk keeps room for what else writes to it.
 *
 *     disk_watch_add (a Pod's first container runs) -> every DISK_LOOK_MS: free space by one statfs; volumes of which more may
 *     have been written than they have room for are measured -> too much: frozen, then evicted -> disk_watch_drop
 *
 * Measuring: only when free space went down since, by as much as the volume has room; or every DISK_FULL_LOOK_MS, if it changed at
 *            all. One walk at a time, on a thread, with pauses: what is looked at is not what costs.
 * Floor:     with less free space than that, what grows most is frozen, one Pod after the other, until there is room again.
 *
 * Owns:      what is known of the volumes; the record points to its own.
 * Used by:   work.c, node.c; record.c drops.
 * Threads:   the loop's; walks and freezing are the crew's.
 */
#ifndef SILICA_NODE_DISK_WATCH_H
#define SILICA_NODE_DISK_WATCH_H

#include "node/record.h"
#include "node/volumes.h"

struct disk_watch;

/* floor_bytes 0: the larger of 1 GiB and 2 % of the disk. */
struct disk_watch *disk_watch_new(struct node *n, uint64_t floor_bytes);
/* After the crew was closed. Tolerates NULL. */
void disk_watch_free(struct disk_watch *w);
/* The Pod's volumes are looked at from now on. held: what its claims held before it ran; NULL: they are measured first. A second
 * container changes nothing. */
void disk_watch_add(struct record *r, const struct volumes_held *held);
/* A sandbox of the Pod stood still when the node started: it goes on when there is room. */
void disk_watch_was_frozen(struct record *r);
/* Nothing of the Pod runs. */
void disk_watch_drop(struct record *r);

#endif
