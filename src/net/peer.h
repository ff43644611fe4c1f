/* peer: whose the other end of a local connection is, by the kernel's word. Loopback is not private: every user of a machine
 * can connect.
 *
 * Owns:     nothing. Asks the kernel, which takes some microseconds and never waits.
 */
#ifndef SILICA_NET_PEER_H
#define SILICA_NET_PEER_H

#include "net/addr.h"

/* The user who made the socket at the other end of fd, a TCP connection inside this machine or a unix socket. False: nobody
 * can tell; it was closed meanwhile, comes from elsewhere, or the kernel does not say. */
bool net_peer_uid(int fd, const struct net_addr *peer, uid_t *ret);
/* It is our own user's, or root's. */
bool net_peer_is_ours(int fd, const struct net_addr *peer);

#endif
