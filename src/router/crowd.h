/* crowd: which client a WebSocket is counted for, where there is a limit (kube/key_limit).
 *
 * Owns:     nothing.
 * Threads:  any.
 */
#ifndef SILICA_ROUTER_CROWD_H
#define SILICA_ROUTER_CROWD_H

#include "http/head.h"
#include "router/trust.h"

/* Who asks: the peer; where that is a proxy whose word counts, the last of X-Forwarded-For that is none, or, where all are,
 * the first. "unknown" for a peer without an address. */
void crowd_name(const struct http_head *req, const struct net_addr *peer,
                const struct trust *proxies, char ret[NET_ADDR_TEXT_BYTES]);

#endif
