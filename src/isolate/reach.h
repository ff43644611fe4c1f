/* reach: sockets made inside a sandbox's network namespace, for host code to use. There is no wire between the two: the
 * socket belongs to the inner network from birth, its descriptor to us.
 *
 * Owns:     nothing.
 * Used by:  box.c.
 * Threads:  any; the caller sleeps, all signals blocked, while a child that shares its memory and descriptors goes in,
 *           makes the socket and ends. A process cannot come back from a user namespace, so somebody else has to go.
 */
#ifndef SILICA_ISOLATE_REACH_H
#define SILICA_ISOLATE_REACH_H

#include "base/err.h"

/* `pidfd` is any process in the namespaces. The descriptor closes on exec. */
int reach_socket(int pidfd, int family, int type, int *ret_fd, struct err *e);

#endif
