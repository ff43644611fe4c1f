/* ws_link: a WebSocket on a connection, the server's side. Pings are answered, closes returned, violations refused.
 *
 * Owns:     the connection, from open on.
 * Used by:  remote_ws, forward_ws, spdy_link (as a tunnel).
 * Threads:  the loop's.
 * Events:   never inside a verb. on_gone exactly once, and last, also after ws_link_close, behind which nothing else comes;
 *           the link is freed after it.
 */
#ifndef SILICA_PODSTREAM_WS_LINK_H
#define SILICA_PODSTREAM_WS_LINK_H

#include "http/ws.h"
#include "net/conn.h"

struct ws_link;

struct ws_link_events {
    /* A piece of a message; w says of which kind, and whether it is the first or last. */
    void (*on_piece)(void *ctx, const struct ws *w, struct span piece);
    /* It was full and can take more. */
    void (*on_drain)(void *ctx);
    /* The answer to ws_link_ask, or none in time; NULL where nobody asks. */
    void (*on_echo)(void *ctx);
    /* Over: the client closed it, broke the rules or vanished, or we closed it. */
    void (*on_gone)(void *ctx);
};

/* Takes conn; rest came behind the request already. */
struct ws_link *ws_link_open(struct conn *conn, struct span rest, uint64_t message_max,
                             const struct ws_link_events *events, void *ctx);
/* One message: `channel` in front of the bytes, unless it is negative. */
void ws_link_send(struct ws_link *l, enum ws_opcode opcode, int channel, struct span bytes);
bool ws_link_is_full(const struct ws_link *l);
/* Back-pressure: what was read already still comes, EV_SCRATCH_BYTES at most. */
void ws_link_want_read(struct ws_link *l, bool is_wanted);
/* Asks for a sign that all before this was read (a ping): on_echo is called once, POD_ECHO_REST_MS after it came, or when
 * POD_ECHO_PATIENCE_MS are over. One at a time. */
void ws_link_ask(struct ws_link *l);
/* Says goodbye behind what is queued, and closes. */
void ws_link_close(struct ws_link *l, enum ws_code code, const char *reason);

#endif
