/* schedule: gives each Pod that nobody has to the machine's one node, as a cluster's scheduler does.
 *
 * Here:     it is in the process that has the store, so a Pod goes to disk, and then to its node, bound already: the node
 *           would otherwise hear of it, bind it over HTTPS, and hear of it again when that is on disk.
 * Owns:     a copy of the Pods, by a watch; bindings that no Event tells of yet.
 * Told:     an Event `Scheduled` each, a moment later: nobody waits for it. One that finds no room has a condition that says
 *           so, `Too many pods`, and is looked at again when another has ended.
 * Used by:  cli/control.c, on the store of its own process.
 * Threads:  the loop's.
 */
#ifndef SILICA_UP_SCHEDULE_H
#define SILICA_UP_SCHEDULE_H

#include "kube/client.h"

struct schedule;

/* node: what the machine's node calls itself. max: Pods that it may have, and that have not ended. */
int schedule_open(struct kube_client *client, const char *node, size_t max, struct schedule **ret,
                  struct err *e);
void schedule_close(struct schedule *s); /* tolerates NULL; the client ends what is under way */

#endif
