/* dial: a new connection to somebody: name to addresses, addresses to a socket, a handshake if asked for.
 *
 * Owns:     the attempts under way and, until done() took them, the socket and its filter.
 * Used by:  http/client, the router, port-forward.
 * Threads:  the loop's.
 * Events:   done() exactly once and never inside dial_start or dial_cancel.
 * Order:    several addresses are tried in turn, families alternating; the next one begins when one fails, or when it
 *           has not answered for a while, and the first to connect wins (RFC 8305 in short).
 */
#ifndef SILICA_NET_DIAL_H
#define SILICA_NET_DIAL_H

#include "net/addr.h"
#include "net/conn.h"

#define DIAL_ADDRS_MAX 8 /* addresses of one name that are tried; the rest is dropped */

struct dial;
struct dial_lookup;

/* Names to addresses, without blocking. net/resolve has one on c-ares; a program that only dials addresses and
 * localhost needs none. */
struct dial_resolver {
    const struct dial_resolver_ops *ops;
};
/* Borrowed for the call. e is NULL on success, and then n is at least 1. */
typedef void (*dial_lookup_fn)(void *ctx, const struct net_addr *addrs, size_t n,
                               const struct err *e);
struct dial_resolver_ops {
    /* fn runs exactly once, in a later turn. */
    struct dial_lookup *(*start)(struct dial_resolver *r, const char *host, uint16_t port,
                                 dial_lookup_fn fn, void *ctx);
    /* fn then gets ERR_CANCELED. Not after fn ran. */
    void (*cancel)(struct dial_lookup *l);
};

/* Another way in: somebody who makes sockets in the network of a place (a sandbox's) and connects them there. */
struct dial_plug {
    const struct dial_plug_ops *ops;
};
struct dial_errand;
/* fd: connected, the callee's. Else -1 and e; ERR_NOT_FOUND: it does not know the place. */
typedef void (*dial_plug_fn)(void *ctx, int fd, const struct err *e);
struct dial_plug_ops {
    /* fn runs exactly once, in a later turn; `place` is borrowed for the call. */
    struct dial_errand *(*start)(struct dial_plug *p, const char *place, uint16_t port,
                                 dial_plug_fn fn, void *ctx);
    /* fn then gets ERR_CANCELED, in a later turn. Not after fn ran. */
    void (*cancel)(struct dial_errand *x);
};

/* Where to: addr, or host and port. Texts and addr are copied; the pointers to services must outlive the dial. */
struct dial_spec {
    const char *host; /* a name, an IP literal (brackets or not), localhost */
    uint16_t port;
    const struct net_addr *addr; /* wins over host and port; a unix socket is an address */
    int fd; /* takes it: a socket made elsewhere (in a sandbox's network), not connected. 0: make one */
    uint64_t timeout_ms;             /* for all of it; 0 is not allowed */
    struct conn_filter_maker *maker; /* TLS, or NULL for clear */
    const char *peer_name;           /* whom the handshake must meet; NULL means host */
    struct dial_resolver *resolver;  /* or NULL */
    /* Asked of each address before it is connected to; false: it is not, ERR_DENIED where there is no other. NULL: all are. */
    bool (*may_connect)(void *ctx, const struct net_addr *to);
    void *may_ctx;
    /* In clear only: that place and no other, whatever host and addr say. Where it is not known: ERR_NOT_FOUND. */
    struct dial_plug *plug;
    const char *place;
};

struct dial_result {
    int fd;                     /* connected, non-blocking */
    struct conn_filter *filter; /* its handshake is over; NULL in clear */
    struct net_addr peer;
};

/* r on success: takes r->fd and r->filter (conn_new takes both). Else e: ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_NOT_FOUND
 * (no such name), ERR_PROTOCOL (handshake), ERR_CANCELED. */
typedef void (*dial_done_fn)(void *ctx, struct dial_result *r, const struct err *e);

/* The dial is valid until done() was called. */
struct dial *dial_start(struct ev_loop *loop, const struct dial_spec *spec, dial_done_fn done,
                        void *ctx);
/* done() gets ERR_CANCELED. */
void dial_cancel(struct dial *d);

#endif
