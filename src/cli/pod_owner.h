/* pod_owner: the object of Kubernetes that a node's sandbox belongs to, and the command that ends it there. A sandbox that is killed
 * beside its node leaves a Pod, a Sandbox and a claim that say it runs.
 *
 * Owns:     the Pods and Sandboxes of the API server that is up, listed once, when they are first needed.
 * Used by:  rm.c. The name alone says whose a sandbox is (node/run.h): freeze.c, kept.c and down.c need no more.
 */
#ifndef SILICA_CLI_POD_OWNER_H
#define SILICA_CLI_POD_OWNER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct object;

struct pod_owner_list {
    struct object **v;
    size_t n;
};
struct pod_owners {
    bool is_asked; /* the API server was asked, or is known not to be up */
    bool is_up;
    struct pod_owner_list pods, sandboxes;
};

/* clang-format off */
#define POD_OWNERS_INIT { false, false, { NULL, 0 }, { NULL, 0 } }
/* clang-format on */

void pod_owners_done(struct pod_owners *o);
/* ERR_CONFLICT: names the owner of a sandbox of the data directory `dir`, its hint the command to use. Always -1. */
int pod_owners_refuse(struct pod_owners *o, const char *dir, const char *box, struct err *e);

#endif
