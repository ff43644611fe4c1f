/* address_demand: for which Pods ports are listened on at their addresses: of which namespaces somebody said so, and who.
 *
 *     all of them              node_config.is_every_address
 *     one Pod                  its annotation ADDRESS_NOTE is "true"; from its template or its claim
 *     those of a namespace     as long as a process holds a connection to NODE_ADDRESSES_FILE: `silica in-cluster`
 *
 *     the process sends        one packet, the name of the namespace
 *     it gets                  one packet, "ready": each of its Pods that runs listens, and the API says so. Then nothing more.
 *
 * Life:     the kernel ends the connection with the process, however that ends. When the node ends, the process connects again;
 *           until it did, a Pod whose condition says that its address was asked for keeps its ports for ADDRESS_HOLD_MS, so that
 *           no claim is taken for ready in between that is not.
 * Trust:    who connects must be our own account, by the kernel's word.
 * Owns:     the listener, the connections, the namespaces.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_ADDRESS_DEMAND_H
#define SILICA_NODE_ADDRESS_DEMAND_H

#include "node/record.h"

#define ADDRESS_NOTE "silica.dev/pod-addresses" /* of Pods */

struct address_demand;

struct address_demand *address_demand_new(struct node *n, bool is_every_address);
/* From now on it serves; takes listen_fd (SOCK_SEQPACKET), also on failure. */
int address_demand_listen(struct address_demand *d, int listen_fd, struct err *e);
/* A Pod of an earlier node's: its condition is believed for a while. */
void address_demand_resume(struct address_demand *d, const struct object *pod);
/* Tolerates NULL. */
void address_demand_free(struct address_demand *d);

/* Its address is asked for. */
bool address_demand_has(const struct record *r);
/* The API has this of the Pod: it may be what a connection waits for. */
void address_demand_see(struct record *r, const struct object *pod);
/* The record goes. */
void address_demand_forget(struct record *r);

#endif
