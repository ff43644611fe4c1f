/* sockets: hands sockets out that were made in the network of a Pod (net/inside.h has the words), so that whoever asked
 * connects them to any of its ports, and no byte of the connection passes through here.
 *
 * Trust:    who connects must be our own account, by the kernel's word. Whether somebody may have a Pod was judged by
 *           who asks: the router.
 * Owns:     the listener, the connections, what is asked on them.
 * Used by:  node.c.
 * Threads:  the loop's; sockets are made by the crew.
 */
#ifndef SILICA_NODE_SOCKETS_H
#define SILICA_NODE_SOCKETS_H

#include "ev/loop.h"

struct node;
struct sockets;

/* Takes listen_fd (SOCK_SEQPACKET), also on failure. */
int sockets_open(struct node *n, int listen_fd, struct sockets **ret, struct err *e);
/* What is asked still ends with the crew. Tolerates NULL. */
void sockets_close(struct sockets *s);

#endif
