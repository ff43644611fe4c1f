/* disk_room: how much of a disk is free, and how much of it sandboxes leave free.
 *
 * Owns:     nothing; one statfs.
 * Used by:  the node, which freezes what writes below the floor; `silica status` and the status page, which say so.
 */
#ifndef SILICA_BASE_DISK_ROOM_H
#define SILICA_BASE_DISK_ROOM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_FLOOR_BYTES     (1ull << 30)
#define DISK_FLOOR_PART      50 /* or this part of the disk, if that is more */
#define DISK_ROOM_TEXT_BYTES 160

struct disk_room {
    uint64_t free_bytes; /* for us, without what is reserved for root */
    uint64_t floor_bytes;
};

/* fd: something on that disk. floor_bytes: as it was asked for; 0: the larger of DISK_FLOOR_BYTES and a DISK_FLOOR_PART. */
int disk_room_read(int fd, uint64_t floor_bytes, struct disk_room *ret, struct err *e);
bool disk_room_is_short(const struct disk_room *r);
/* "only 12 MiB are free, and sandboxes leave 1024 MiB: those that write most stand still" */
const char *disk_room_text(const struct disk_room *r, char *text, size_t n);

#endif
