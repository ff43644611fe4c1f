/* relay: two connections whose bytes go to each other, unread, with back-pressure and each side's end.
 *
 * Owns:     both connections, from start on.
 * Used by:  http/relay; the router.
 * Threads:  the loop's.
 * Events:   done(ctx) exactly once, in a later turn, when both are gone; the relay is freed after it.
 * Ends:     a is the client's side. When it ends, b is told, and what b sends goes on; when b ends, or either is lost, both
 *           end behind what is queued: nobody waits for a client that holds on to a server which has gone.
 */
#ifndef SILICA_NET_RELAY_H
#define SILICA_NET_RELAY_H

#include "net/conn.h"

struct relay;

/* Takes both. from_a and from_b are bytes that came already and go first. */
struct relay *relay_start(struct conn *a, struct span from_a, struct conn *b, struct span from_b,
                          ev_fn done, void *ctx);
/* At once. */
void relay_close(struct relay *r);

#endif
