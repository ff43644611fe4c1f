/* identity: our Node object: what this machine is and has, that we are alive (a Lease), written again now and then.
 *
 * Owns:     the calls under way, the Lease.
 * Faults:   what cannot be written is tried again; Pods do not wait for it.
 * Used by:  node.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_IDENTITY_H
#define SILICA_NODE_IDENTITY_H

#include "ev/loop.h"
#include "kube/client.h"

struct identity;

/* pods_max: said in its capacity. unenforced: limits of sandboxes that do not hold here, "memory"; "": all do. Copied. */
struct identity *identity_open(struct kube_client *client, const char *name, uint64_t pods_max,
                               const char *unenforced);
/* Of the Node's condition and Event, with what is unenforced. */
#define IDENTITY_LIMITS_LACK                                                                       \
    "this host cannot enforce for all sandboxes together: %s; 'silica status' says what to do"
/* Lets go of the Lease; closed(ctx) comes when nothing is under way any more. */
void identity_close(struct identity *id, ev_fn closed, void *ctx);

/* The Node as it is made, and what its status says now, and since when; for tests. */
int identity_write_node(const char *name, struct buf *out, struct err *e);
int identity_write_status(const char *name, uint64_t pods_max, const char *unenforced, time_t now,
                          time_t since, struct buf *out, struct err *e);

#endif
