/* collect: what follows from deletes: dependents of owners that are gone, foreground and orphan finalizers, namespaces
 * that take what is in them along, volume claims that nobody uses any more; and what every new namespace gets.
 *
 * Owns:     an index from owner to dependents, kept by watches of the head: the work of an event does not depend on how
 *           many objects there are. A queue of what is to be looked at, worked off a few at a time.
 * Used by:  apiserver.c. Acts through the operations, as any other client would.
 * Threads:  the loop's.
 */
#ifndef SILICA_APISERVER_COLLECT_H
#define SILICA_APISERVER_COLLECT_H

#include "apiserver/apiserver.h"

struct collect;

struct collect *collect_open(struct apiserver *s);
void collect_close(struct collect *c); /* tolerates NULL */

#endif
