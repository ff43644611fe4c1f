/* port_conflict: tells, by an Event of the Pod, which program of this machine has a port that the Pod's address should have.
 *
 * Owns:     the conflicts that are not told yet. A look at the machine may take long: a job of the crew looks for all that wait.
 * Used by:  ports.c.
 * Threads:  the loop's, but for the look.
 */
#ifndef SILICA_NODE_PORT_CONFLICT_H
#define SILICA_NODE_PORT_CONFLICT_H

#include "node/node_impl.h"

struct port_conflicts;

struct port_conflicts *port_conflicts_new(struct node *n);
/* After the crew was closed. Those that were not told are dropped. Tolerates NULL. */
void port_conflicts_free(struct port_conflicts *c);

/* is_told: an Event was written; there is another one only when it is a stranger's now. What is found goes to ports_hear, too. */
void port_conflicts_add(struct port_conflicts *c, const struct record *r, uint16_t port,
                        bool is_told);

#endif
