/* ports: a Pod's ports on its own address: whoever connects there is passed on into its sandbox, unread.
 *
 * Which:    those its containers declare, and the runtime's where that is what it runs. Of Pods that wait in a warm pool none:
 *           nobody has business with them, and a listener on 127.x:8080 keeps others from *:8080.
 *           None below node_config.pod_port_min: a Pod's author chooses its numbers, and where the node is root's a listener on
 *           127.x:22 would keep the machine's own server from *:22.
 * Who:      a connection from root or from our own account; loopback is not private.
 * Owns:     the listeners, and the connections made through them, which end with their Pod.
 * Used by:  work.c. A port that is taken is told by an Event; port-forward does not need it.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_PORTS_H
#define SILICA_NODE_PORTS_H

#include "node/record.h"

/* Opens those that are missing, closes those that should not be. ERR_EXISTS (once for each port): one is taken; the others are
 * served. */
int ports_sync(struct record *r, struct err *e);
/* Closes all of them, and what came through them. */
void ports_close(struct record *r);

#endif
