/* trust: proxies in front of the router whose word on where a request came from counts.
 *
 * Owns:     nothing: a value.
 */
#ifndef SILICA_ROUTER_TRUST_H
#define SILICA_ROUTER_TRUST_H

#include "net/addr.h"

#define TRUST_MAX 64

struct trust {
    size_t n;
    struct trust_range {
        struct net_addr base;
        unsigned bits;
    } ranges[TRUST_MAX];
};

/* Adds "10.0.0.0/8, fd00::/8, 192.0.2.7": commas between; bits behind the mask do not count. ERR_USAGE names what is wrong. */
int trust_add(struct trust *t, const char *text, struct err *e);
bool trust_has(const struct trust *t, const struct net_addr *a);

#endif
