/* tcp: what every TCP connection of ours is set to, whoever began it.
 *
 * Small messages leave at once. Probes find a peer that is gone without a word. And what never leaves the machine is not
 * paced: the loopback has no queue to fill and nothing to lose, so a model of the path (BBR, where a host has it for its
 * network) only costs time there, on each message and on each bulk.
 */
#ifndef SILICA_NET_TCP_H
#define SILICA_NET_TCP_H

#include "net/addr.h"

struct net_tcp_probes {
    int idle_s, step_s, count;
};

/* fd is a connection to or from end, or listens at it: then the connections it accepts are born so. Does nothing to what is
 * no TCP socket. */
void net_tcp_set(int fd, const struct net_addr *end, const struct net_tcp_probes *probes);

#endif
