/* ports: a Pod's ports on its own address: who connects there is passed on into its sandbox, unread.
 *
 * When:     only while its address is asked for (address_demand.h): a listener on 127.x:8080 keeps other programs from *:8080.
 *           Pods that wait in a warm pool have none even then. What holds is a condition of the Pod, which claims wait for.
 * Which:    those its containers declare, and the runtime's where that is what it runs.
 *           None below node_config.pod_port_min: a Pod's author chooses its numbers, and where the node is root's a listener on
 *           127.x:22 would keep the machine's own server from *:22.
 * Who:      a connection from our own account; loopback is not private.
 * Owns:     the listeners, and the connections made through them, which end with their Pod.
 * Events:   PortTaken names the program that has a port (port_holder.h), which is tried again; PortNotServed says which are
 *           too low. port-forward and the router need no listener.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_PORTS_H
#define SILICA_NODE_PORTS_H

#include "node/record.h"

/* Opens those that are missing, closes those that should not be, and sets r->ports_state. */
void ports_sync(struct record *r);
/* Whether the program that has a port is a stranger's: then claims wait for the port, as their clients would reach that program.
 * True: that is news. */
bool ports_hear(struct record *r, uint16_t port, bool is_strangers);
/* How it stands, as POD_STATUS_ADDRESSES says it; NULL: nothing asks for them. */
const char *ports_reason(const struct record *r);
/* Closes all of them, and what came through them. */
void ports_close(struct record *r);
/* Until a port that is taken is tried again; UINT64_MAX: none is. */
uint64_t ports_wait_ms(const struct record *r);

#endif
