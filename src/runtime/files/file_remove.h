/* file_remove: deleting files and trees, by sandboxd's rules (DELETE /v1/files).
 *
 * Owns:     nothing after the call. Whatever the depth of the tree, at most FILE_REMOVE_OPEN_DIRS descriptors
 *           and no recursion. Blocking, as long as the tree is large: on a worker.
 *
 * Links are never followed: a link inside a tree goes, what it leads to stays. A path that *is* a link has to
 * lead somewhere inside (as for every other call), and then the link goes, not its target: the reference deletes
 * the target and leaves the link dangling, which nobody can want.
 */
#ifndef SILICA_RUNTIME_FILE_REMOVE_H
#define SILICA_RUNTIME_FILE_REMOVE_H

#include "runtime/files/path.h"

/* Directories held open; those above are found again through `..` */
#define FILE_REMOVE_OPEN_DIRS 32
/* Then ERR_LIMIT, as for the names on the way: about 100 MiB of memory */
#define FILE_REMOVE_MAX_DEPTH       1000000
#define FILE_REMOVE_NAMES_MAX_BYTES (64 * 1024 * 1024)
/* Times that someone put new files into what we emptied; then ENOTEMPTY */
#define FILE_REMOVE_MAX_REFILL 100

/* Confinement and existence, the first two checks of DELETE. -1: as path_resolve, or ERR_NOT_FOUND. */
int file_remove_find(const struct path_root *root, struct span path, struct path_at *ret,
                     struct err *e);
/* ERR_CONFLICT with the contract's sentence: a directory that is not empty, or the root, without `recursive`.
 * The root itself is never removed, only emptied. The first failure ends it; what was removed is gone. */
int file_remove(const struct path_at *at, bool recursive, struct err *e);

#endif
