/* registry: the processes that Start runs, by the ids clients know them by: 1, 2, 3 and on, never a pid.
 *
 * Owns:     the numbers; an entry is its owner's memory.
 * Threads:  the loop's. One per process, as the ids are.
 */
#ifndef SILICA_RUNTIME_SANDBOXD_REGISTRY_H
#define SILICA_RUNTIME_SANDBOXD_REGISTRY_H

#include "base/own.h"

struct exec;

struct process {
    int32_t id; /* 0: not registered */
    struct exec *exec;
    struct process *next; /* in its bucket */
};

/* The next id; one that is never registered is used up all the same. */
int32_t registry_next_id(void);
void registry_add(struct process *p, int32_t id, struct exec *exec);
/* Harmless when it is not there. */
void registry_remove(struct process *p);
struct process *registry_find(int32_t id);

#endif
