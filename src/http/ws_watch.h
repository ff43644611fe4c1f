/* ws_watch: looks at the frames of a WebSocket that pass by in one direction, and changes none of them.
 *
 * Owns:     nothing: a value. Does no I/O, reads no clock, unmasks nothing.
 * Used by:  http/join, for what a relay lets through.
 * Lenient:  what a frame may hold is its receiver's to judge; here only its length and whether its message ends count. Bytes
 *           that are compressed count as they are sent.
 */
#ifndef SILICA_HTTP_WS_WATCH_H
#define SILICA_HTTP_WS_WATCH_H

#include "base/buf.h"
#include "http/ws.h"

struct ws_watch {
    uint64_t message_max;   /* 0: any length */
    uint64_t message_bytes; /* of the one under way, as its frames announce them */
    uint64_t left;          /* of the frame's payload */
    uint64_t messages;      /* data messages that passed whole */
    uint8_t head[WS_HEAD_MAX_BYTES], head_n;
    bool is_closed;  /* the sender has said goodbye: nothing may follow */
    bool is_too_big; /* stays so */
};

/* How many of these bytes may pass: all of them, or, with w->is_too_big, those before the frame that makes its message longer
 * than is allowed. */
size_t ws_watch_look(struct ws_watch *w, struct span in);
/* Between two frames, where one of our own may stand. */
bool ws_watch_is_between(const struct ws_watch *w);

#endif
