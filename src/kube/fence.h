/* fence: a client that writes only while a Lease is held, by the clock of the very moment.
 *
 * A process that stood still (SIGSTOP, a suspended machine, a full swap) wakes in the middle of its work, with answers at hand
 * that it has not looked at. Its timers have not run yet, and still it must not write: another may lead since long.
 *
 * Owns:     itself; the client and the Lease behind it are the caller's and outlive it.
 * Reads:    gets, lists and watches pass. A write that may not be made gets no answer (code 0), in a later turn.
 * Used by:  `silica controller`.
 * Threads:  the loop's.
 */
#ifndef SILICA_KUBE_FENCE_H
#define SILICA_KUBE_FENCE_H

#include "kube/lease.h"

struct kube_client *fence_new(struct kube_client *client, const struct lease *lease);

#endif
