/* join: the first process of a box that shares another box's user, network, IPC and UTS namespaces: the containers of one
 * Pod. Its mount and PID namespaces are its own, owned by the shared user namespace.
 *
 * Owns:     nothing.
 * Used by:  box.c in place of a plain clone. No process can come back from a user namespace, so one is sent that enters
 *           it, clones from there, and ends.
 */
#ifndef SILICA_ISOLATE_JOIN_H
#define SILICA_ISOLATE_JOIN_H

#include "isolate/box.h"
#include "isolate/inside.h"

/* group_fd: the v2 cgroup it is born in, or -1. The process is our child or our parent's, as the place says. */
int join_clone(const struct inside *in, const struct box_place *place, int group_fd, pid_t *ret_pid,
               int *ret_pidfd, struct err *e);

#endif
