/* lock: who has a data directory, or a part of it. Held by a process as long as it lives, by the kernel's word and no
 * file's.
 *
 * Owns:     the descriptor is the caller's; closing it lets go.
 * Used by:  keeper.c, sweep.c, engine.c; up/place.c.
 */
#ifndef SILICA_ISOLATE_LOCK_H
#define SILICA_ISOLATE_LOCK_H

#include "isolate/dir.h"

/* Any file of a directory. ERR_EXISTS: another process has it. */
int lock_file(int dir_fd, const char *name, int *ret_fd, struct err *e);
bool lock_file_is_taken(int dir_fd, const char *name);

/* The keeper's. ERR_EXISTS: there is one. */
int lock_take(const struct dir *d, int *ret_fd, struct err *e);
bool lock_is_taken(const struct dir *d);

#endif
