/* expire: objects that nobody deletes: Events, an hour after they last happened, and Leases that nobody has renewed for a
 * day. Of both no more than a ceiling is kept, the oldest go first.
 *
 * Owns:     a sweep at a time, of one kind, a slice in each turn of the loop (slices.h).
 * Used by:  apiserver.c.
 * Threads:  the loop's. Deletes are writes as any other: watches hear of them.
 */
#ifndef SILICA_APISERVER_EXPIRE_H
#define SILICA_APISERVER_EXPIRE_H

#include "apiserver/apiserver.h"

struct expire;

struct expire_config {
    uint64_t event_ttl_ms;
    uint64_t events_max;
};

struct expire *expire_open(struct apiserver *s, const struct expire_config *config);
void expire_close(struct expire *x); /* tolerates NULL */

#endif
