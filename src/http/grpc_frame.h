/* grpc_frame: cuts a byte stream into gRPC messages (a flag, four bytes of length, the payload),
 * and writes the prefix of those we send.
 *
 * Owns:     the partial message between calls, never more than the ceiling given at birth.
 * Used by:  servers for requests, clients for replies. Does no I/O, reads no clock.
 * Threads:  a frame belongs to one loop. Input is borrowed for the call; f->msg lives until the
 *           next feed. Compression is never agreed on (grpc.h refuses encodings): the compressed
 *           flag is ERR_PROTOCOL.
 */
#ifndef SILICA_HTTP_GRPC_FRAME_H
#define SILICA_HTTP_GRPC_FRAME_H

#include "base/buf.h"
#include "http/feed.h"

#define GRPC_PREFIX_BYTES      5
#define GRPC_MESSAGE_MAX_BYTES (4 * 1024 * 1024) /* RESOURCE_EXHAUSTED above; gRPC's own default */
/* A larger block is freed before the next message: a stream may idle for hours */
#define GRPC_MESSAGE_KEEP_BYTES (64 * 1024)

enum grpc_frame_state { GRPC_PREFIX, GRPC_BODY, GRPC_BROKEN };

struct grpc_frame {
    enum grpc_frame_state state;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    size_t have; /* bytes of the prefix, then of nothing */
    size_t left; /* bytes of the body still to come */
    struct buf msg;
};

/* Allocates nothing yet. max_bytes: ceiling of one message. */
void grpc_frame_init(struct grpc_frame *f, size_t max_bytes);
void grpc_frame_done(struct grpc_frame *f);

/* Consumes at most one message. FEED_DONE: f->msg holds it; call again with what follows *ret_used.
 * FEED_BAD: ERR_PROTOCOL or ERR_LIMIT in *e, and the frame stays broken. */
enum feed grpc_frame_feed(struct grpc_frame *f, struct span in, size_t *ret_used, struct err *e);
/* The stream ended here: -1 and ERR_PROTOCOL inside a message. */
int grpc_frame_end(const struct grpc_frame *f, struct err *e);

/* The prefix of a message of n bytes, which the caller adds right after. */
int grpc_frame_add_prefix(struct buf *out, size_t n, struct err *e);
/* Prefix and message. */
int grpc_frame_add(struct buf *out, struct span msg, struct err *e);

#endif
