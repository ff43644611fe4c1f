/* below: a path in a directory whose content may be a stranger's: links on the way count as far as they stay in it.
 *
 * Owns:     nothing.
 * Used by:  mounts.c and cellar.c for what a volume shows; the node for subPath.
 */
#ifndef SILICA_ISOLATE_BELOW_H
#define SILICA_ISOLATE_BELOW_H

#include "base/err.h"

/* What is there, as O_PATH: its descriptor, or -1 with errno. */
int below_open(int dir_fd, const char *path);
/* Makes the directories of the path that are missing, open to all: a volume is for whoever runs inside. */
int below_make(int dir_fd, const char *path, struct err *e);

#endif
