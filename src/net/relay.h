/* relay: two connections whose bytes go to each other, unread unless there is a gate, with back-pressure and each side's end.
 *
 * Owns:     both connections, from start on.
 * Used by:  http/join.
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
/* Who looks at what goes through. */
struct relay_gate {
    /* How many of these bytes may go on; is_from_a says where they came from. Fewer than all: `stop` follows, once those are
     * on their way, and nothing more is asked. */
    size_t (*pass)(void *ctx, bool is_from_a, struct span in);
    void (*stop)(void *ctx); /* relay_end, for example */
    void *ctx;
};
/* From now on; the gate must live as long as the relay. Bytes that were given to relay_start are not looked at. */
void relay_set_gate(struct relay *r, const struct relay_gate *gate);
/* As if these bytes had come from there just now. */
void relay_push(struct relay *r, bool is_from_a, struct span in);
/* Both end, behind what is queued and these last words to each of them. */
void relay_end(struct relay *r, struct span to_a, struct span to_b);
/* At once. */
void relay_close(struct relay *r);

#endif
