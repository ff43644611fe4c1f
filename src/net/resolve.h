/* resolve: names to addresses through c-ares, on the loop. A library of its own (net_resolve). Never getaddrinfo: it
 * blocks, and static glibc has no NSS.
 *
 * Owns:     the lookups under way. Each has a c-ares channel of its own, so that a changed resolv.conf holds from the
 *           next lookup on, and source ports are never shared.
 * Order:    /etc/hosts, then DNS with the search list of resolv.conf. A and AAAA together, sorted as RFC 6724 says.
 * Threads:  the loop's.
 */
#ifndef SILICA_NET_RESOLVE_H
#define SILICA_NET_RESOLVE_H

#include "net/dial.h"

struct resolver;

struct resolver_config {
    const char *servers; /* "10.0.0.10,127.0.0.1:5353" instead of resolv.conf's; NULL for those */
    uint64_t try_ms;     /* wait for one server's answer; 0: RESOLVE_TRY_MS */
    unsigned tries;      /* per server; 0: RESOLVE_TRIES */
};

int resolver_new(struct ev_loop *loop, const struct resolver_config *config, struct resolver **ret,
                 struct err *e);
/* For dial_spec.resolver. */
struct dial_resolver *resolver_dial(struct resolver *r);
/* All lookups must have ended. */
void resolver_free(struct resolver *r);

#endif
