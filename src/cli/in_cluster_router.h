/* in_cluster_router: the router where a program in a cluster finds it: at port 8080 of an address of its own, which the names
 * of its Service lead to.
 *
 * Owns:     the listener and what goes through it, for as long as the command runs: a listener on 127.x:8080 stands in the
 *           way of those that want 8080 on all addresses, so there is none without need.
 * Used by:  in_cluster.c.
 * Access:   only our own user and root get through, as at the router itself, which sees us in their place.
 * Threads:  the loop's.
 */
#ifndef SILICA_CLI_IN_CLUSTER_ROUTER_H
#define SILICA_CLI_IN_CLUSTER_ROUTER_H

#include "base/err.h"

struct ev_loop;
struct in_cluster_router;

/* url: the router's, as up.json says it. ERR_EXISTS: somebody has port 8080 on all addresses. */
int in_cluster_router_open(struct ev_loop *loop, const char *url, struct in_cluster_router **ret,
                           struct err *e);
/* "127.32.1.2" */
const char *in_cluster_router_ip(const struct in_cluster_router *r);
/* Takes turns of the loop until all is gone. */
void in_cluster_router_close(struct in_cluster_router *r);

#endif
