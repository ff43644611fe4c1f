/* presence: the parts of the system as objects of its own API, where clients look for them.
 *
 *     every namespace          Service sandbox-router-svc, its EndpointSlice, Pod sandbox-router: the SDKs forward a port to it
 *     agent-sandbox-system     Deployment and Pod agent-sandbox-controller: people read its log
 *
 * Heeded:   --zap-log-level among the arguments of Deployment agent-sandbox-controller is the level of this process's log.
 * Kept up:  namespaces that come later get theirs, what is deleted comes back. A Service of that name that somebody else
 *           made stays as it is: it selects the same Pods.
 * Owns:     copies of these objects, by watches.
 * Used by:  cli/control.c, on the store of its own process.
 * Threads:  the loop's.
 */
#ifndef SILICA_UP_PRESENCE_H
#define SILICA_UP_PRESENCE_H

#include "kube/client.h"

struct presence;

/* The client outlives it. */
int presence_open(struct kube_client *client, struct presence **ret, struct err *e);
void presence_close(struct presence *p); /* tolerates NULL */

/* Is it one of these objects, by its kind and place? Tenants write none of them, and make none of these names. */
bool presence_has(const struct kind *kind, const char *namespace, const char *name);
/* Which part of the system a Pod stands for: "router", "controller"; NULL: none. */
const char *presence_part(const struct object *pod);

#endif
