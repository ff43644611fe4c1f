/* unpack: the bytes of an archive become files, directories and links on disk.
 *
 * Owns:     one descriptor per directory being filled, the temporary file of the entry at hand.
 * Used by:  sandbox/copy.c on the host, where the archive is what a hostile PID 1 says, and silica-runtime inside.
 *           Blocks on the disk.
 * Safe:     an entry lands below the destination or is an error: absolute names and `..` are refused, every step is
 *           taken on a descriptor and through no link, whoever plants one meanwhile. Files and links are made under a
 *           temporary name (`.silica-cp-*`) beside their place and renamed to it: none is ever half there.
 * Kept:     modes without set-user-ID, set-group-ID and sticky bits; times of files. Not owners: what is made belongs
 *           to who makes it. A directory that was there keeps its mode; a file that was there is replaced.
 * Kinds:    as pack.h; others are passed over and counted.
 */
#ifndef SILICA_ARCHIVE_UNPACK_H
#define SILICA_ARCHIVE_UNPACK_H

#include "archive/pack.h"

struct unpack;

struct unpack_spec {
    /* Where to. A directory that exists takes the archive's entries by their names; any other path becomes the name of
     * the archive's one top entry, in a directory that exists. A slash behind it: only a directory may. */
    const char *destination;
    /* The only name that the archive's top entry may have, "." for the content of a directory; NULL: any, and several,
     * and the destination must be a directory. */
    struct span top;
    /* Ceilings; then ERR_LIMIT, and what was copied so far stays. */
    uint64_t max_bytes, max_entries;
};

/* -1: there is no such place. */
int unpack_open(const struct unpack_spec *spec, struct unpack **ret, struct err *e);
int unpack_feed(struct unpack *u, struct span bytes, struct err *e);
/* The stream is over. -1: it was cut off, or there was nothing in it. */
int unpack_finish(struct unpack *u, struct err *e);
const struct archive_counts *unpack_counts(const struct unpack *u);
/* Removes the temporary file if there is one. Tolerates NULL. */
void unpack_free(struct unpack *u);

#endif
