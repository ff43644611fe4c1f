/* spdy_link: a SPDY session on a connection, or tunnelled in the binary messages of a WebSocket; the server's side.
 *
 * Owns:     the connection and the session, from open on.
 * Used by:  remote_spdy, forward_spdy.
 * Threads:  the loop's.
 * Events:   the session's own, never inside a verb of the link. on_gone exactly once, and last, also after
 *           spdy_link_close, behind which only on_close comes for the streams still open; the link is freed after it.
 */
#ifndef SILICA_PODSTREAM_SPDY_LINK_H
#define SILICA_PODSTREAM_SPDY_LINK_H

#include "http/spdy.h"
#include "net/conn.h"

struct spdy_link;

struct spdy_link_events {
    struct spdy_events spdy;
    /* It was full and can take more. */
    void (*on_drain)(void *ctx);
    /* Over: the client left, broke the rules or vanished, or we closed it. */
    void (*on_gone)(void *ctx);
};

/* Takes conn; rest came behind the request already. ctx is also that of the session's events. */
struct spdy_link *spdy_link_open(struct conn *conn, struct span rest, bool is_tunnel,
                                 const struct spdy_link_events *events, void *ctx);
/* Call after verbs of the session: what they said goes out in a later turn. */
void spdy_link_flush(struct spdy_link *l);
bool spdy_link_is_full(const struct spdy_link *l);
/* Back-pressure on all streams: what was read already still comes, EV_SCRATCH_BYTES at most. */
void spdy_link_want_read(struct spdy_link *l, bool is_wanted);
/* Sends what the session has said, and closes. */
void spdy_link_close(struct spdy_link *l);
struct spdy *spdy_link_session(struct spdy_link *l);

#endif
