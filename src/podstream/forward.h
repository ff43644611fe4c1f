/* forward: one connection to a port of the pod, and the bytes both ways between it and a carrier.
 *
 * Owns:     the dial, the connection, what came before there was one.
 * Used by:  forward_spdy, forward_ws: the carriers, which embed it.
 * Threads:  the loop's.
 * Events:   never inside a verb; on_over exactly once, and last, unless forward_done came before.
 */
#ifndef SILICA_PODSTREAM_FORWARD_H
#define SILICA_PODSTREAM_FORWARD_H

#include "ev/timer.h"
#include "podstream/session.h"

struct forward;

struct forward_ops {
    void (*on_data)(struct forward *f, struct span bytes);
    /* The pod ended its side; we may still write. */
    void (*on_end)(struct forward *f);
    /* It was full and can take more. */
    void (*on_drain)(struct forward *f);
    /* The connection is gone. why: there never was one; NULL otherwise, as how a connection ends is the pod's affair. */
    void (*on_over)(struct forward *f, const struct err *why);
};

struct forward {
    const struct forward_ops *ops;
    struct session *session;
    uint16_t port;
    struct pod_dial *dial;
    struct conn *conn;
    struct buf early;
    struct ev_timer again;
    uint64_t give_up_ms, wait_ms;
    bool is_ended;  /* by forward_end */
    bool has_eof;   /* of the pod */
    bool is_paused; /* before there is a connection */
    bool is_over, was_full;
    bool is_stalled; /* the carrier stopped reading for it */
};

/* Begins to dial. */
void forward_open(struct forward *f, struct session *s, uint16_t port,
                  const struct forward_ops *ops);
void forward_write(struct forward *f, struct span bytes);
bool forward_is_full(const struct forward *f);
/* The client ended its side: so do we, to the pod, behind what is queued. */
void forward_end(struct forward *f);
/* Back-pressure on what the pod sends. */
void forward_pause(struct forward *f, bool is_paused);
/* No event any more. What is queued for the pod is still sent. */
void forward_done(struct forward *f);

#endif
