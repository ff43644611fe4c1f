/* warm: tells when a pool has all the sandboxes that it should have, ready to be claimed.
 *
 * Owns:     a copy of the pools, by a watch.
 * Used by:  cli/control.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_UP_WARM_H
#define SILICA_UP_WARM_H

#include "kube/client.h"

struct warm;

/* Each time a pool becomes warm; pool is borrowed. */
typedef void (*warm_fn)(void *ctx, const struct object *pool, int64_t ready);

int warm_open(struct kube_client *client, warm_fn fn, void *ctx, struct warm **ret, struct err *e);
void warm_close(struct warm *w); /* tolerates NULL */

#endif
