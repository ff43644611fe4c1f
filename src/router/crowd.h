/* crowd: how many WebSockets each client has at once, where there is a limit.
 *
 * Owns:     a row for each client that has some; as many as there are connections at most.
 * Used by:  hop, from the moment a request that wants one may have it until its end.
 * Threads:  the loop's. Each process of a router counts its own.
 */
#ifndef SILICA_ROUTER_CROWD_H
#define SILICA_ROUTER_CROWD_H

#include "http/head.h"
#include "kube/keymap.h"
#include "router/trust.h"

struct crowd {
    uint64_t max; /* 0: any number, and nobody is counted */
    struct keymap clients;
};

struct crowd_client;

/* Who asks: the peer; where that is a proxy whose word counts, the last of X-Forwarded-For that is none, or, where all are,
 * the first. "unknown" for a peer without an address. */
void crowd_name(const struct http_head *req, const struct net_addr *peer,
                const struct trust *proxies, char ret[NET_ADDR_TEXT_BYTES]);
/* One more. False: it has as many as it may. True: *ret is for crowd_leave, or NULL where nobody is counted. */
bool crowd_enter(struct crowd *c, const char *name, struct crowd_client **ret);
void crowd_leave(struct crowd *c, struct crowd_client *client); /* NULL is fine */
/* All have left. */
void crowd_done(struct crowd *c);

#endif
