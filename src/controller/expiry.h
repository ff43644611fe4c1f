/* expiry: when a sandbox ends by itself, and what of it goes then.
 *
 * Two passes: the first says so in the status, the second, which sees that, takes the Pod and the Service away and, if
 * the policy says Delete, the Sandbox. So nobody sees a sandbox without its Pod that does not say why.
 *
 * Owns:     nothing. `now` is the caller's.
 */
#ifndef SILICA_CONTROLLER_EXPIRY_H
#define SILICA_CONTROLLER_EXPIRY_H

#include "kube/object.h"

#include <time.h>

struct expiry {
    bool is_set;      /* there is a shutdownTime */
    bool is_over;     /* and it has come */
    uint64_t wait_ms; /* else: how long to wait before looking again */
};

struct expiry expiry_of(const struct json *shutdown_time, struct timespec now);
/* The second pass: the status says that it expired. */
bool expiry_is_marked(const struct object *sandbox);
/* shutdownPolicy is Delete. */
bool expiry_deletes(const struct object *sandbox);

#endif
