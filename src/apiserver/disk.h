/* disk: the store's file: every write as one row, in the order of resource versions, in SQLite with a write-ahead log.
 *
 * Owns:     the lock of the data directory, two connections (one writes, one checkpoints, so that a checkpoint is in
 *           nobody's way), and a reserve of space that is given up when the disk is full, so that deletes still work.
 * Used by:  store.c.
 * Threads:  disk_write and disk_has_room on one worker at a time, disk_checkpoint on another; the rest on the loop's, when
 *           neither runs. Bytes come in, never trees.
 * Durable:  disk_write returns 0 only after the sync that covers all of it.
 * Damage:   each row has a checksum, and a sealed row has their number and their sum: a file that lost, changed or kept a
 *           row too many is refused, and so is a log with transactions behind a broken one (wal.h). What is refused is left
 *           as it was, byte for byte.
 */
#ifndef SILICA_APISERVER_DISK_H
#define SILICA_APISERVER_DISK_H

#include "base/buf.h"

struct disk;

enum disk_op { DISK_PUT = 1, DISK_DELETE = 2 };

/* Which object, and what became of it. The body of a delete is its last state, or nothing where it will not be told. */
struct disk_row {
    uint64_t version;
    enum disk_op op;
    struct span resource; /* "sandboxes.agents.x-k8s.io" */
    struct span namespace, name;
    struct span body;
};

struct disk_batch {
    struct disk_row *rows;
    size_t row_count;
    uint64_t *garbage; /* versions whose rows go */
    size_t garbage_count;
    uint64_t compacted; /* what happened up to here can no longer be told in full */
};

struct disk_config {
    const char *dir;      /* exists */
    const char *vfs;      /* SQLite's name of a file system, NULL for the usual; for tests */
    int checkpoint_pages; /* 0: DISK_CHECKPOINT_PAGES */
};

/* An older format becomes today's. ERR_BUSY: another process has it. ERR_UNSUPPORTED: made by a newer version. ERR_INVALID:
 * not a store, or damaged. disk_load comes next: damage is looked for there too. */
int disk_open(const struct disk_config *config, struct disk **ret, struct err *e);
void disk_close(struct disk *d); /* tolerates NULL */
/* Calls fn for each row, oldest first; spans are borrowed for the call. Stops at fn's first -1. */
int disk_load(struct disk *d, int (*fn)(void *ctx, const struct disk_row *row, struct err *e),
              void *ctx, struct err *e);
uint64_t disk_compacted(const struct disk *d);
/* All of it or nothing. ERR_NO_SPACE: the disk is full. */
int disk_write(struct disk *d, const struct disk_batch *batch, struct err *e);
bool disk_wants_checkpoint(const struct disk *d);
int disk_checkpoint(struct disk *d, struct err *e);
/* After disk_load. False: there was no room for the reserve. */
bool disk_is_reserved(const struct disk *d);
/* Gives the reserve up: the disk is full. */
void disk_release(struct disk *d);
/* Writes go on: the reserve could be taken again, and there is room on the disk or within the file. */
bool disk_has_room(struct disk *d);

#endif
