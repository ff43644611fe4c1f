/* holder: a map of ids as a descriptor, for mounts. The kernel knows such maps only as those of user namespaces, and writes them
 * only to a process in one: a process that does nothing else is made, its maps are written, and it is ended.
 *
 * Owns:     at most one process in reserve, without maps yet, and the last one that was ended: a user namespace takes the
 *           kernel a quarter of a millisecond to make, and a process as long to end.
 * Used by:  idmap.c, cellar.c, ranged.c, userns.c; the spawner makes the reserve.
 * Threads:  holder_open_map any, in a process that makes no reserve; one that does has a single thread.
 */
#ifndef SILICA_ISOLATE_HOLDER_H
#define SILICA_ISOLATE_HOLDER_H

#include "isolate/userns.h"

/* A user namespace with these ids, kept alive by its descriptor; -1. */
int holder_open_map(const struct ids *ids, struct err *e);
/* Whether one was asked for and none is in reserve. */
bool holder_wants_spare(void);
/* The same is not tried again before the next is asked for. */
void holder_make_spare(void);

#endif
