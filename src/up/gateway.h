/* gateway: Gateways and HTTPRoutes (gateway.networking.k8s.io) of any class, told what they lead to here: the router.
 *
 *     kubectl get gateway external-http-gateway      ADDRESS 127.63.0.1, PROGRAMMED True
 *
 * Every Gateway has the same address, at which the supervisor has the router listen as long as there is one (gate.h). Who
 * may use it is the router's matter, as at its own address.
 *
 * Owns:     copies of both kinds, by watches.
 * Used by:  cli/control.c, on the store of its own process.
 * Threads:  the loop's.
 */
#ifndef SILICA_UP_GATEWAY_H
#define SILICA_UP_GATEWAY_H

#include "kube/client.h"

struct gateway;

/* want: the first is there (true), or the last is gone; not in gateway_open. The client outlives it. */
int gateway_open(struct kube_client *client, void (*want)(void *ctx, bool is_wanted), void *ctx,
                 struct gateway **ret, struct err *e);
void gateway_close(struct gateway *g); /* tolerates NULL */

/* What became of the listener, as the supervisor wrote it to UP_GATEWAY_FILE in that directory. */
void gateway_hear(struct gateway *g, int dir_fd);

#endif
