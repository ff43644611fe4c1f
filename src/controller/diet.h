/* diet: what is kept of objects where the copies are ours alone (a client over the network): memory, not speed.
 *
 * On the store of this process objects are shared with it, and a smaller copy would be a second one: no diet there.
 * Writes are patches of what a reconciler decides, never whole cached objects, so what is left out is never taken away.
 */
#ifndef SILICA_CONTROLLER_DIET_H
#define SILICA_CONTROLLER_DIET_H

#include "kube/informer.h"

/* Metadata without managedFields and finalizers, of the status phase, addresses and the conditions Ready and PodScheduled, and of
 * the spec the node's name: nothing looks at the rest. */
struct object *diet_pod(struct object *pod);

#endif
