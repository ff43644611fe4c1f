/* sockets: ways into Pods of this machine. A node makes sockets in a Pod's network and hands them over (net/inside.h); they are
 * connected here, to any port, and no other process stands between us and the sandbox.
 *
 * Owns:     the connection to the node, what is asked on it, sockets made ahead for Pods that are asked for often.
 * Node:     may be killed at any time: what was asked is asked again once it is back; who waits too long is told
 *           ERR_UNAVAILABLE. ERR_NOT_FOUND: it does not have that Pod.
 * Order:    127.0.0.1, then ::1. One made ahead may belong to a network that is gone: who is refused on it gets a new one.
 * Used by:  `silica router --pod-sockets`; each request that needs a new connection (hop).
 * Threads:  the loop's.
 */
#ifndef SILICA_ROUTER_SOCKETS_H
#define SILICA_ROUTER_SOCKETS_H

#include "net/dial.h"

/* at: the node's unix socket; nobody need be there yet. */
struct dial_plug *sockets_new(struct ev_loop *loop, const struct net_addr *at);
/* Nobody waits for one any more. Tolerates NULL. */
void sockets_free(struct dial_plug *p);

#endif
