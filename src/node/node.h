/* node: makes the Pods of an API server real: each container becomes a sandbox of the isolation engine.
 *
 *     a Pod is seen -> it is bound to this node -> what it names is fetched -> sandboxes are made -> its status says so
 *     exec, attach, port-forward, logs: asked for on a socket of our own, by the API server, which decided who may
 *     sockets inside Pods: asked for on NODE_SOCKETS_FILE of the data directory, by the router
 *
 * Owns:     the copy of Pods, what is known of their sandboxes, the streams into them, our Node object and its Lease.
 *           Not the sandboxes: they are the keeper's, and outlive us. What we know stands in the engine's directory and in the
 *           API; nothing is in our memory alone.
 * Used by:  `silica node`.
 * Threads:  the loop's; the engine is called by threads of its own (crew.h).
 */
#ifndef SILICA_NODE_NODE_H
#define SILICA_NODE_NODE_H

#include "ev/loop.h"
#include "isolate/box.h"
#include "kube/client.h"

#define NODE_SOCKETS_FILE    "sockets.sock"
#define NODE_ADDRESSES_FILE  "addresses.sock"
#define NODE_ADDRESSES_READY "ready" /* what is answered there (address_demand.h) */

struct node;

struct node_config {
    struct kube_client *client; /* outlives the node */
    const char *name;           /* of the Node object */
    const char *data;           /* the directory; made where it is missing */
    int listen_fd;              /* where streams are asked for: listens already; taken */
    struct box_limits
        limits; /* of a sandbox that asks for none; 0: a part of the machine (default_limits.h) */
    struct box_limits all;     /* of all together; 0: likewise */
    uint64_t disk_floor_bytes; /* free space that sandboxes leave; 0: the larger of 1 GiB and 2 % */
    bool is_scheduler;         /* Pods without a node are bound to this one */
    bool
        is_every_address; /* ports are listened on at the addresses of all Pods, asked for or not */
    uint64_t pods_max;    /* that the Node says it takes */
    uint16_t pod_port_min; /* no port below it is listened on at Pods' addresses */
    /* The Pods that were there have been looked at once. */
    ev_fn started;
    void *ctx;
};

#define NODE_NAME_BYTES 65 /* a host name and its end */
/* What a node is called that was given no name: as the machine is. */
void node_own_name(char name[NODE_NAME_BYTES]);

/* Blocks until a keeper serves. */
int node_open(struct ev_loop *loop, const struct node_config *config, struct node **ret,
              struct err *e);
/* Lets go of everything, and ends nothing that runs. closed(ctx) comes when no work is under way any more; then
 * node_free. */
void node_close(struct node *n, ev_fn closed, void *ctx);
/* Turns the loop: not for callbacks. Tolerates NULL. */
void node_free(struct node *n);

#endif
