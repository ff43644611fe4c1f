/* in_cluster_hosts: the lines of /etc/hosts that name sandboxes in a session of `silica in-cluster`.
 *
 * Trust:    Pods alone say where a sandbox is, and only with an address that the node gives; it is printed from its number.
 *           A name is printed when it is a DNS name and no other service's. All else gives no line.
 * Owns:     nothing. Does no I/O.
 * Used by:  in_cluster.c.
 */
#ifndef SILICA_CLI_IN_CLUSTER_HOSTS_H
#define SILICA_CLI_IN_CLUSTER_HOSTS_H

#include "kube/object.h"

/* The line of the sandbox whose Pod this is; nothing where there is none. */
void in_cluster_hosts_add(struct buf *text, const struct object *pod);

#endif
