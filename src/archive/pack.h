/* pack: a file, a link or a directory with all that is below it, as the bytes of an archive (tar.h).
 *
 * Owns:     one descriptor per directory on the way down, ARCHIVE_DEPTH_MAX at most; nothing else grows.
 * Used by:  sandbox/copy.c on the host and silica-runtime inside: both ends of a copy. Blocks on the disk.
 * Links:    are packed as links, and never followed, whoever swaps them in meanwhile: every step below the start is
 *           taken on a descriptor. The start's own parents are the caller's text and are followed, its last name only
 *           if a slash or /. follows it.
 * Kinds:    files, directories and links. Others (devices, sockets, pipes) are passed over and counted.
 */
#ifndef SILICA_ARCHIVE_PACK_H
#define SILICA_ARCHIVE_PACK_H

#include "base/buf.h"

struct pack;

/* What has been copied so far. */
struct archive_counts {
    uint64_t entries, bytes, passed_over;
};

/* ERR_NOT_FOUND and others say why the start cannot be read. */
int pack_open(const char *path, struct pack **ret, struct err *e);
/* Adds the next bytes to out: about a piece of a file (limits.h), which out must have room for. 0: that was the end.
 * 1: there is more. -1: something cannot be read, or a file changed its size meanwhile. */
int pack_read(struct pack *p, struct buf *out, struct err *e);
const struct archive_counts *pack_counts(const struct pack *p);
/* Tolerates NULL. */
void pack_free(struct pack *p);

/* The name that the start has in the archive: its last component, or "." when that says nothing. Points into path, or
 * to a constant. */
struct span pack_top(const char *path);

#endif
