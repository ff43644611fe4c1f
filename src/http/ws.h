/* ws: WebSocket frames (RFC 6455), both roles, no extensions: bytes in, pieces of messages out, and writers for frames.
 *
 *     while ((ev = ws_feed(&w, in, &used, &data, &e)) != WS_NEED_MORE) {
 *         in = span_skip(in, used);
 *         switch (ev) { ... WS_GOT_PING: answer WS_PONG with data ... WS_IS_BAD: close with w.close_code }
 *     }
 *
 * Owns:     one block of WS_PIECE_BYTES to unmask into, while a message is under way; never a message.
 * Used by:  podstream; tests as clients. Does no I/O, reads no clock, makes no random numbers.
 * Threads:  belongs to one loop. Input is borrowed for the call; data lives until the next feed or the end of `in`.
 * Strict:   reserved bits, unknown opcodes, lengths not in their shortest form, masks where none belong, control
 *           frames that are long or in pieces, text that is not UTF-8: all are refused with the code RFC 6455 names.
 *           Where the stream is cut changes the pieces, never the messages or the verdict.
 */
#ifndef SILICA_HTTP_WS_H
#define SILICA_HTTP_WS_H

#include "base/buf.h"

enum ws_role { WS_SERVER, WS_CLIENT }; /* which side we are */

enum ws_opcode {
    WS_CONTINUATION = 0,
    WS_TEXT = 1,
    WS_BINARY = 2,
    WS_CLOSE = 8,
    WS_PING = 9,
    WS_PONG = 10,
};

/* RFC 6455 7.4.1. */
enum ws_code {
    WS_NORMAL = 1000,
    WS_GOING_AWAY = 1001,
    WS_PROTOCOL_ERROR = 1002,
    WS_UNACCEPTABLE = 1003, /* a kind of data nobody here takes */
    WS_NO_CODE = 1005,      /* the close frame had none; never sent */
    WS_BAD_DATA = 1007,     /* text that is not UTF-8 */
    WS_POLICY = 1008,
    WS_TOO_BIG = 1009,
    WS_INTERNAL_ERROR = 1011,
};

enum ws_event {
    WS_NEED_MORE, /* all input is used */
    WS_GOT_DATA, /* *ret_data is a piece of a message: w->opcode, w->is_first, w->is_last. Empty only as the last */
    WS_GOT_PING, /* *ret_data is to be sent back as WS_PONG */
    WS_GOT_PONG,
    WS_GOT_CLOSE, /* w->close_code; *ret_data is the reason, UTF-8. What follows is dropped */
    WS_IS_BAD,    /* *e says why; send w->close_code and close. Stays so */
};

#define WS_CONTROL_MAX_BYTES 125         /* payload of a control frame: the protocol's number */
#define WS_HEAD_MAX_BYTES    14          /* of a frame */
#define WS_PIECE_BYTES       (16 * 1024) /* unmasked at a time */

enum ws_state { WS_AT_HEAD, WS_AT_PAYLOAD, WS_AT_CONTROL, WS_AT_CLOSED, WS_AT_BROKEN };

struct ws {
    enum ws_state state;
    enum ws_role role;
    uint64_t
        message_max; /* a message that would be longer is WS_TOO_BIG, at the head that says so */
    enum ws_opcode opcode;  /* of the message under way: WS_TEXT or WS_BINARY */
    bool is_first, is_last; /* of the piece just given */
    uint16_t close_code;    /* behind WS_GOT_CLOSE what came; behind WS_IS_BAD what to send */
    bool is_in_message;     /* its last frame has not begun */
    bool has_given;         /* a piece of it */
    bool is_final;          /* the frame under way ends its message */
    uint8_t frame_opcode;
    uint8_t head[WS_HEAD_MAX_BYTES], head_n, mask[4];
    uint8_t control[WS_CONTROL_MAX_BYTES], control_n;
    uint8_t utf8_left, utf8_low, utf8_high; /* of the sequence under way in a text */
    uint64_t message_bytes;                 /* announced so far */
    uint64_t left, at;                      /* of the frame's payload: to come, and seen */
    struct buf piece;
};

/* Allocates nothing yet. */
void ws_init(struct ws *w, enum ws_role role, uint64_t message_max);
void ws_done(struct ws *w);

/* Consumes some of `in`, returns one event. Call again with the rest until WS_NEED_MORE. */
enum ws_event ws_feed(struct ws *w, struct span in, size_t *ret_used, struct span *ret_data,
                      struct err *e);

struct ws_frame {
    enum ws_opcode opcode;
    bool is_partial;     /* the message goes on in a WS_CONTINUATION */
    const uint8_t *mask; /* four random bytes from a client; NULL from a server */
};

/* The head of a frame of n bytes, which the caller adds right after; only a server's, as nothing is masked here. */
int ws_write_head(struct buf *out, enum ws_opcode opcode, uint64_t n, struct err *e);
/* A whole frame. */
int ws_write(struct buf *out, const struct ws_frame *f, struct span payload, struct err *e);
/* A close frame; the reason is cut to what fits, between characters. WS_NO_CODE sends neither. */
int ws_write_close(struct buf *out, const uint8_t *mask, uint16_t code, struct span reason,
                   struct err *e);

#endif
