/* router: one address for all sandboxes. A request says in its fields which one it is for, and goes there.
 *
 * Owns:     the servers clients reach, the connections to sandboxes, every request under way.
 * Path:     a request is matched to a target (match), its client is judged (authorize), the target is found (pick), its
 *           fields are chosen (fields), and both ways are kept going (hop).
 * Used by:  `silica router`.
 * Threads:  the loop's. More of them are more processes that listen on the same port.
 */
#ifndef SILICA_ROUTER_ROUTER_H
#define SILICA_ROUTER_ROUTER_H

#include "base/opt.h"
#include "http/join.h"
#include "router/authorize.h"
#include "router/pick.h"
#include "router/secure.h"
#include "router/trust.h"

#define ROUTER_SERVICE "sandbox-router-svc" /* what the SDKs look for */

struct dial_resolver;
struct overview;
struct router;
struct tally_board;
struct tracer;

/* One of the ways in. */
struct router_door {
    int listen_fd;      /* takes it: a socket that listens already; -1: `listen` says where */
    const char *listen; /* HOST:PORT; NULL or "": closed */
    /* Nobody is asked who they are: pages of other sites are kept out, but for what is allowed beside our own. */
    bool is_guarded;
    bool is_owner_only; /* of this machine's users only ours and root are served */
};

struct router_config {
    struct picker *picker;
    struct authorizer *authorizer;
    struct dial_resolver *resolver; /* for targets by name */
    /* Into Pods of this machine, by their uids: then no address is ever connected to. NULL: addresses are. */
    struct dial_plug *sockets;
    struct match_rules rules;
    struct router_door plain, tls;
    struct router_door tunnel;         /* its listen_fd, a unix socket, if any (tunnel.h) */
    struct secure_config certificates; /* of tls */
    struct trust proxies;              /* whose X-Forwarded-* count */
    struct overview
        *overview; /* the page about this machine, for browsers of the owner at `plain`; or NULL */
    bool is_port_shared;       /* several routers listen there */
    struct tally_board *board; /* where it counts, at that seat; NULL: for itself */
    unsigned seat;
    struct opt_list allow_origin, allow_host;
    const char *cluster_domain; /* of names of ROUTER_SERVICE */
    uint64_t head_ms;           /* for an answer to begin; 0: the request's timeout */
    uint64_t max_body_bytes;    /* of a request; 0: any */
    struct http_join_limits websocket;
    uint64_t websockets_per_client; /* at once; 0: any number */
    unsigned retries;               /* of connections that nobody took */
    uint64_t retry_first_ms, retry_most_ms;
    struct tracer *tracer; /* who is told of each request; or NULL */
    bool has_access_log;
};

/* Listens; serves from the loop's next turn on. */
int router_open(struct ev_loop *loop, const struct router_config *config, struct router **ret,
                struct err *e);
/* The real addresses, which live as long as the router; NULL: closed. */
const char *router_address(const struct router *r);
const char *router_tls_address(const struct router *r);
/* No new connections, what is under way ends; done(ctx) when it has. Switched connections are not waited for. */
void router_drain(struct router *r, ev_fn done, void *ctx);
/* At once. Not for callbacks: turns the loop. The picker must live until it returned. */
void router_close(struct router *r);

/* Appends Prometheus' text. */
int router_metrics_write(const struct router *r, struct buf *out, struct err *e);

#endif
