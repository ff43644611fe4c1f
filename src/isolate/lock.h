/* lock: who keeps a data directory. Held by the keeper as long as it lives, by the kernel's word and no file's.
 *
 * Owns:     the descriptor is the caller's; closing it lets go.
 * Used by:  keeper.c, sweep.c, engine.c.
 */
#ifndef SILICA_ISOLATE_LOCK_H
#define SILICA_ISOLATE_LOCK_H

#include "isolate/dir.h"

/* ERR_EXISTS: another process has it. */
int lock_take(const struct dir *d, int *ret_fd, struct err *e);
bool lock_is_taken(const struct dir *d);

#endif
