/* in_cluster_addresses: asks the node, for as long as this process lives, to listen at the addresses of the Pods of a namespace
 * (node/address_demand.h). A node that was killed is asked again as soon as there is another.
 *
 * Owns:     the connection, whose end is the end of the wish.
 * Used by:  in_cluster.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_CLI_IN_CLUSTER_ADDRESSES_H
#define SILICA_CLI_IN_CLUSTER_ADDRESSES_H

#include "ev/loop.h"

struct in_cluster_addresses;

/* dir_fd: the data directory; borrowed, as the name is. ready(ctx) comes once, in a later turn: the Pods that run listen. */
struct in_cluster_addresses *in_cluster_addresses_open(struct ev_loop *loop, int dir_fd,
                                                       const char *namespace, ev_fn ready,
                                                       void *ctx);
/* Tolerates NULL. */
void in_cluster_addresses_close(struct in_cluster_addresses *a);

#endif
