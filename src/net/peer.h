/* peer: the account at the other end of a local connection, as the kernel says. Loopback is not private: every account of the
 * machine can connect.
 *
 * Owns:     one netlink socket per thread that asked, until that thread's process ends.
 * Cost:     two or three microseconds for a TCP connection, and never waits.
 * Trust:    an orphaned socket (its process closed it, bytes are still under way) has no owner, and the kernel says uid 0 of it.
 *           What a connection sent before its end stays readable; after a reset even its port may be another account's. So an
 *           answer counts only for a socket that a process holds, and only while our end is still connected after that answer:
 *           as long as it is, no other socket can have that address and port.
 *           root is no exception. Its connections are root's; a daemon of another account takes them for another account's.
 */
#ifndef SILICA_NET_PEER_H
#define SILICA_NET_PEER_H

#include "net/addr.h"

/* The user who made the socket at the other end of fd, an accepted TCP connection of this machine or a unix socket. For after
 * accept: before, the answer would be about another moment. False: the kernel names no socket that a process holds. It was closed
 * meanwhile, the peer is another machine, or the kernel does not say. */
bool net_peer_uid(int fd, const struct net_addr *peer, uid_t *ret);
/* It is this process's own user. */
bool net_peer_is_ours(int fd, const struct net_addr *peer);

#endif
