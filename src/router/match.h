/* match: which sandbox a request is for, by its X-Sandbox-* fields alone. Path and query never say anything about it.
 *
 * Owns:     nothing: a target is a value. Does no I/O.
 * Used by:  the router, first of all.
 * Texts:    of refusals are the contract's: SDKs show them to people.
 */
#ifndef SILICA_ROUTER_MATCH_H
#define SILICA_ROUTER_MATCH_H

#include "http/head.h"
#include "net/addr.h"
#include "router/limits.h"

/* What is answered instead. */
struct refusal {
    int status; /* 0: none */
    char detail[320];
};
void refusal_set(struct refusal *r, int status, const char *fmt, ...) PRINTF(3, 4);

struct target {
    char id[TARGET_NAME_BYTES], namespace[TARGET_NAME_BYTES];
    char uid[TARGET_UID_BYTES]; /* "": not said */
    uint16_t port;
    bool has_ip;
    struct net_addr ip; /* with the port; an IPv4 address in IPv6's clothes is IPv4 */
    uint64_t timeout_ms;
};

struct match_rules {
    bool is_loopback_allowed; /* 127/8 and ::1 as Pod addresses */
    uint64_t timeout_ms;      /* where the request has no wish, or wishes for more */
};

/* True: *ret is whole. False: *why says 400 and the text; of *ret only names that are right are there, else "". A field
 * that comes twice is as wrong as one that cannot be read: two readers must not see two targets. */
bool match_read(const struct http_head *head, const struct match_rules *rules, struct target *ret,
                struct refusal *why);

/* A field that only speaks to the router: it does not go on to the sandbox. */
bool match_is_ours(struct span name);

#endif
