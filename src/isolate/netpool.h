/* netpool: network namespaces made ahead of time, each with its loopback up: making one takes as long as all the rest of a
 * sandbox's namespaces together.
 *
 * Owns:     the descriptors that keep them alive, and one more in which the process itself stays, so that no sandbox's
 *           network lives on in us.
 * Used by:  spawner.c, while it has nothing else to do. They belong to the spawner's user namespace, so nothing inside a
 *           sandbox could change its network even with capabilities.
 * Threads:  one: the process moves from one to the next.
 */
#ifndef SILICA_ISOLATE_NETPOOL_H
#define SILICA_ISOLATE_NETPOOL_H

#include "base/err.h"
#include "isolate/limits.h"

struct netpool {
    bool is_on; /* this process may make them */
    int home_fd;
    int fds[NETPOOL_MAX];
    size_t n;
};

/* For good: the process leaves the network it is in. Where that is not allowed the pool stays empty, and sandboxes make
 * their own. */
void netpool_open(struct netpool *p);
/* Makes one more. False: it is full, or none can be made now. */
bool netpool_fill(struct netpool *p);
/* The caller's to close, or -1. */
int netpool_take(struct netpool *p);
/* Back where we stay. */
void netpool_leave(const struct netpool *p);
void netpool_done(struct netpool *p);

#endif
