/* fetch: gets what a Pod names (needs.h) from the API server, before a container of it is made.
 *
 * Owns:     the calls, until `done`. What came is the record's.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_FETCH_H
#define SILICA_NODE_FETCH_H

#include "node/record.h"

/* e NULL: all of it that there is has come. Else the server would not say. */
typedef void (*fetch_fn)(void *ctx, const struct err *e);

/* done comes exactly once, in a later turn. The record stays until then. */
void fetch_start(struct record *r, fetch_fn done, void *ctx);

#endif
