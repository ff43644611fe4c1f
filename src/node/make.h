/* make: one attempt of one container becomes a sandbox.
 *
 * Owns:     all that the sandbox's spec points to, until `done` returned.
 * Used by:  work.c. What the Pod names was fetched before.
 * Threads:  the loop's; the engine is called by the crew.
 */
#ifndef SILICA_NODE_MAKE_H
#define SILICA_NODE_MAKE_H

#include "node/node_impl.h"
#include "node/volumes.h"

struct make;

struct make_result {
    int rc; /* 0: it runs */
    struct err e;
    bool is_command; /* the sandbox was made, its command cannot be run */
    /* Else: the container's waiting reason, and the Event's. */
    const char *wait_reason, *event;
    struct engine_info info;
    struct volumes_held held; /* by its claims, before it ran */
    struct engine_created made;
    const struct notes *notes; /* what to tell about it */
    bool is_server;            /* silica-runtime is what it runs */
};

typedef void (*make_fn)(void *ctx, const struct make_result *r);

/* done comes exactly once, in a later turn. -1: *ret_reason is the container's waiting reason, e its message. */
int make_start(struct record *r, size_t at, make_fn done, void *ctx, const char **ret_reason,
               struct err *e);
/* The ports by which the container's server is known to be up, any of them; 0: it runs none of ours. */
#define MAKE_PORTS_MAX 32
size_t make_server_ports(struct record *r, size_t at, uint16_t ports[MAKE_PORTS_MAX]);
/* The Pod's volumes, as they are made for its first container; `pod` must outlive *ret. */
int make_volumes(struct record *r, struct object *pod, struct volumes_spec *ret, struct err *e);
/* Where its commands start. */
const char *make_cwd(struct record *r, size_t at);

#endif
