/* gate: the router once more, at an address of its own on port 80, for as long as somebody wants a Gateway.
 *
 *     127.63.0.1:80      the first that is free; remembered in DIR/gate-address
 *     DIR/gateway.json   what became of it: {"address":"127.63.0.1"}, {"error":"...","hint":"..."} or {}
 *
 * Why not always: a listener on port 80 of one loopback address keeps others from listening on that port of all addresses.
 * Owns:     the listener, the part that serves it, the file.
 * Faults:   a port that cannot be had is tried again every GATE_RETRY_MS.
 * Used by:  cli/up_run.c, which tells control (gateway.h) when the file is another.
 * Threads:  the loop's.
 */
#ifndef SILICA_UP_GATE_H
#define SILICA_UP_GATE_H

#include "up/part.h"
#include "up/place.h"

struct gate;

struct gate_spec {
    const struct place *place;
    const char *const *argv; /* of the router, which serves its standard input; outlives the gate */
    bool is_loud;            /* as of a part */
    void (*changed)(void *ctx); /* the file is another, or was asked for again */
    void *ctx;
};

struct gate *gate_new(struct ev_loop *loop, struct ev_children *kids, const struct gate_spec *spec);
/* Asked again, it tells again. */
void gate_want(struct gate *g, bool is_wanted);
/* For good; changed() tells when gate_part is NULL. */
void gate_stop(struct gate *g, uint64_t patience_ms);
/* Only while there is no part. Tolerates NULL. */
void gate_free(struct gate *g);

const struct part *gate_part(const struct gate *g); /* NULL: nothing runs */
const char *gate_address(const struct gate *g);     /* "127.63.0.1"; NULL: it does not serve */

#endif
