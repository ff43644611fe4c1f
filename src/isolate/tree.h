/* tree: the processes of a sandbox as /proc has them, for hosts that give us no cgroup. PID 1 inherits every orphan of
 * its namespace, so all of them are below it.
 *
 * Owns:     nothing. What it reads may be gone the next moment: a process is signalled by a descriptor, and only if it
 *           still has the parent it was found under.
 * Used by:  box.c, id_range.c.
 */
#ifndef SILICA_ISOLATE_TREE_H
#define SILICA_ISOLATE_TREE_H

#include "isolate/box.h"

/* Stops or continues all of them. Stopping goes round until nobody new is found: what is stopped cannot fork. */
int tree_stop(pid_t top, struct err *e);
int tree_continue(pid_t top, struct err *e);
/* Fills what *ret does not have yet. Memory is the sum of resident sets: shared pages count more than once. */
/* For each process below `top`, itself first. */
void tree_each(pid_t top, void (*fn)(void *ctx, pid_t pid, uint64_t resident_bytes), void *ctx);
void tree_stats(pid_t top, struct box_stats *ret);

/* When it began, in the kernel's ticks since the boot: with the pid, a name no other process has. False: it has ended. */
bool tree_start_ticks(pid_t pid, uint64_t *ret);
bool tree_is_stopped(pid_t pid);
/* Does a process of the machine run as one of these ids? One that has ended and was not reaped does not. Looks at all. */
bool tree_is_of_ids(uid_t base, uint32_t count);

#endif
