/* run: the sandbox of one attempt of one container, by its name: UID_CONTAINER_ATTEMPT. So what stands in the engine's
 * directory says by itself whose it is, also to a node that has just begun.
 *
 * Owns:     nothing. Does no I/O.
 * Used by:  whoever makes, finds or clears up sandboxes of Pods.
 */
#ifndef SILICA_NODE_RUN_H
#define SILICA_NODE_RUN_H

#include "base/buf.h"
#include "isolate/limits.h"

#define RUN_UID_BYTES           36 /* of a UUID; a Pod with another uid is refused */
#define RUN_CONTAINER_MAX_BYTES 63 /* a DNS label */
#define RUN_NAME_BYTES          (BOX_NAME_MAX_BYTES + 1)

struct run_id {
    char uid[RUN_UID_BYTES + 1];
    char container[RUN_CONTAINER_MAX_BYTES + 1];
    uint32_t attempt; /* from 0: how often it was started before */
};

/* ERR_INVALID: texts that are no uid, or no name of a container. */
int run_name(char name[RUN_NAME_BYTES], const char *uid, const char *container, uint32_t attempt,
             struct err *e);
/* False: a sandbox that no node made. */
bool run_read(const char *name, struct run_id *ret);

#endif
