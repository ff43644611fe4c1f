/* local: the client interface (kube/client.h) on the store of this process.
 *
 *     struct kube_client *c = local_client_new(s, "sandbox-controller");
 *
 * Sees:     the head, as soon as it is written: later calls and watches know a write before it is on disk. What then
 *           leaves the process waits for the commit (store_wait).
 * Does:     what the HTTP verbs do, by the same operations: defaults, rules, finalizers, refusals word for word. It acts
 *           for the process itself, which may do everything.
 * When:     a call that concerns one object is done when it is started, in that turn of the loop; its answer comes in a
 *           later one. Lists and deletes of many look at a few objects in each turn, a list at the state it began with.
 * Cancel:   only keeps the answer away from whom it was for: see client.h.
 * Used by:  controllers, node and dashboard parts that live in this process.
 * Life:     freed before its apiserver is closed.
 */
#ifndef SILICA_APISERVER_LOCAL_H
#define SILICA_APISERVER_LOCAL_H

#include "apiserver/apiserver.h"
#include "kube/client.h"

/* manager: whose fields they become where a request names nobody; as a User-Agent over HTTP does. */
struct kube_client *local_client_new(struct apiserver *s, const char *manager);
/* Its user writes what tenants ask for: what is reserved (reserved.h) it may not write either. */
void local_client_be_deputy(struct kube_client *c);

#endif
