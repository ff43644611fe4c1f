/* connection_limit: which connections a server keeps when there are too many, so that no client can keep the others out.
 *
 * Rules:    a client is the account at the other end of a local connection, else an address (of IPv6 a /64).
 *           The server's own account may have every connection. Another client may have 1/CONNECTION_CLIENT_PART of them, and all
 *           other clients together leave 1/CONNECTION_RESERVE_PART free.
 *           A new connection beyond a ceiling takes the place of an idle one of the same client, the oldest first; where all of the
 *           clients together are at theirs, of the client that has the most. Without an idle one it is refused.
 * Owns:     a row for each client that has connections. The connections are the server's.
 * Threads:  the loop's.
 * Cost:     a lookup for each connection, nothing for a request. connection_key_read asks the kernel once for a local one.
 */
#ifndef SILICA_HTTP_CONNECTION_LIMIT_H
#define SILICA_HTTP_CONNECTION_LIMIT_H

#include "net/addr.h"

#define CONNECTION_BUCKETS 256

struct connection_client;

struct connection_key {
    bool is_owner;     /* the server's own account */
    uint8_t bytes[17]; /* what kind of client, and which */
};

/* One connection; embedded in the server's. Zeroes: it does not count. */
struct connection_slot {
    struct connection_slot *next, **at; /* of its client, the oldest first */
    struct connection_client *client;
};

struct connection_limit {
    size_t max; /* 0: any number, and none is counted */
    /* Closes the connection where no request of it is under way; false: one is. The slot is out of the count already where it is
     * closed; connection_limit_remove may follow. */
    bool (*close_idle)(struct connection_slot *slot);
    size_t count, others; /* all connections; those of other accounts and addresses */
    uint64_t closed, refused;
    struct connection_client *buckets[CONNECTION_BUCKETS];
};

/* The client of an accepted connection. */
void connection_key_read(int fd, const struct net_addr *peer, struct connection_key *ret);

/* Counts a connection. False: it is refused, and does not count. */
bool connection_limit_add(struct connection_limit *l, const struct connection_key *key,
                          struct connection_slot *slot);
/* The connection has ended. One that does not count is fine. */
void connection_limit_remove(struct connection_limit *l, struct connection_slot *slot);

#endif
