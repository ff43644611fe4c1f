/* grpc_serve: a gRPC call on top of an exchange: messages instead of bytes, a deadline, a status at the end.
 *
 * Owns:     the partial message, the deadline. Takes over the exchange it is opened on.
 * Used by:  the runtime's process service and reflection; later AX.
 * Threads:  the loop's.
 * Ends:     exactly one of: grpc_stream_finish (ours), or on_gone (the client cancelled, the connection went, or the
 *           deadline passed: the client then got DEADLINE_EXCEEDED already). Do not touch the stream after either.
 */
#ifndef SILICA_HTTP_GRPC_SERVE_H
#define SILICA_HTTP_GRPC_SERVE_H

#include "http/grpc.h"
#include "http/serve.h"

struct grpc_stream;

struct grpc_stream_events {
    void (*on_message)(void *ctx, struct span msg); /* borrowed for the call */
    void (*on_half_close)(void *ctx);               /* the client sends no more */
    void (*on_drain)(void *ctx);                    /* it was full; may be NULL */
    void (*on_gone)(void *ctx);
};

/* The whole answer to a call that cannot begin. */
void grpc_refuse(struct http_exchange *x, enum grpc_status status, const char *message);

/* Begins to read messages, each at most max_bytes. NULL: the request was no proper call and was refused. */
struct grpc_stream *grpc_stream_open(struct http_exchange *x, size_t max_bytes,
                                     const struct grpc_stream_events *events, void *ctx);
/* Sends the response's head if it was not sent yet: a client waiting for it sees that the call was accepted. */
void grpc_stream_accept(struct grpc_stream *s);
void grpc_stream_send(struct grpc_stream *s, struct span msg);
bool grpc_stream_is_full(const struct grpc_stream *s);
/* Back-pressure: no message comes until resumed, and the client is held up. */
void grpc_stream_pause(struct grpc_stream *s, bool is_paused);
/* Ends the call; the stream is freed. */
void grpc_stream_finish(struct grpc_stream *s, enum grpc_status status, const char *message);
/* Time left, UINT64_MAX without a deadline. */
uint64_t grpc_stream_left_ms(const struct grpc_stream *s);

/* A unary call: one message in, then handle(ctx, stream, msg), who sends one and finishes. Before that a client that
 * goes away is nobody's business; from handle on gone(ctx2) is told, where ctx2 is what handle returned. The message is
 * borrowed for the call. gone may be NULL. */
typedef void *(*grpc_unary_fn)(void *ctx, struct grpc_stream *s, struct span msg);
void grpc_unary(struct http_exchange *x, size_t max_bytes, grpc_unary_fn handle, void *ctx,
                ev_fn gone);

#endif
