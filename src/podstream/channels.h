/* channels: numbered channels in the messages of a WebSocket. A message is one byte of channel and what goes there; in
 * the base64 protocols it is a text, a digit and the rest in base64.
 *
 * Owns:     the WebSocket, from open on; in base64 the message under way.
 * Used by:  remote_ws, forward_ws.
 * Threads:  the loop's.
 * Events:   never inside a verb. on_gone exactly once, and last, also after channels_close.
 */
#ifndef SILICA_PODSTREAM_CHANNELS_H
#define SILICA_PODSTREAM_CHANNELS_H

#include "podstream/ws_link.h"

struct channels;

struct channels_events {
    /* Bytes of a channel, borrowed for the call; a long message comes in pieces. */
    void (*on_bytes)(void *ctx, unsigned channel, struct span bytes);
    /* It was full and can take more. */
    void (*on_drain)(void *ctx);
    /* Of channels_ask; NULL where nobody asks. */
    void (*on_echo)(void *ctx);
    void (*on_gone)(void *ctx);
};

/* Takes conn; rest came behind the request already. */
struct channels *channels_open(struct conn *conn, struct span rest, bool is_base64,
                               const struct channels_events *events, void *ctx);
void channels_send(struct channels *c, unsigned channel, struct span bytes);
bool channels_is_full(const struct channels *c);
void channels_want_read(struct channels *c, bool is_wanted);
/* As ws_link_ask. */
void channels_ask(struct channels *c);
void channels_close(struct channels *c, enum ws_code code, const char *reason);

#endif
