/* grpc: the protocol's vocabulary on top of heads: statuses, timeouts, what a request must look
 * like, what heads and trailers say. Messages are cut by grpc_frame.
 *
 * Owns:     nothing. Does no I/O, reads no clock.
 * Used by:  servers and clients of gRPC. Heads given in must have been initialised, with room.
 */
#ifndef SILICA_HTTP_GRPC_H
#define SILICA_HTTP_GRPC_H

#include "http/head.h"

enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};

#define GRPC_STATUS_COUNT       17
#define GRPC_TIMEOUT_TEXT_BYTES 12   /* eight digits, a unit, a terminator */
#define GRPC_MESSAGE_TEXT_BYTES 1024 /* of grpc-message before encoding; longer ones are cut */

/* "NOT_FOUND"; "UNKNOWN" for numbers nobody assigned. */
const char *grpc_status_name(enum grpc_status status);
/* How our errors look to a client, and the reverse. */
enum grpc_status grpc_status_of(enum err_code code);
enum err_code grpc_err_code(enum grpc_status status);
/* What a reset (h2's error code) means to a call that had no trailers. */
enum grpc_status grpc_status_of_reset(uint32_t h2_code);
/* What a proxy's answer without grpc-status means. */
enum grpc_status grpc_status_of_http(int http_status);

/* grpc-message: bytes outside space..~, and '%', are percent-encoded. Decoding leaves bad
 * escapes as they are. */
int grpc_message_encode(struct span text, struct buf *out, struct err *e);
int grpc_message_decode(struct span value, struct buf *out, struct err *e);

/* grpc-timeout: one to eight digits and a unit of H M S m u n. Parts of a millisecond count as
 * one, so that a short deadline does not become none. */
bool grpc_timeout_parse(struct span value, uint64_t *ret_ms);
/* The other way, rounded up to what fits in eight digits. */
const char *grpc_timeout_format(char text[GRPC_TIMEOUT_TEXT_BYTES], uint64_t ms);

/* application/grpc, +proto, parameters allowed. */
bool grpc_content_type_is_ours(struct span value);
/* Is this request a gRPC call, whatever its method and path? The server's first question. */
bool grpc_is_call(const struct http_head *request);
/* "/package.Service/Method" in two. Nothing is decoded: gRPC compares paths as they are. */
bool grpc_path_split(struct span path, struct span *ret_service, struct span *ret_method);

/* What of the request's head a call depends on. */
struct grpc_call {
    struct span service, method; /* into the head; empty when the path is no "/service/method" */
    bool has_timeout;
    uint64_t timeout_ms;
};
/* -1: the status for the client stands in *e through grpc_status_of (ERR_PROTOCOL: not POST, bad
 * grpc-timeout; ERR_UNSUPPORTED: a grpc-encoding other than identity, malformed path). */
int grpc_call_read(const struct http_head *request, struct grpc_call *ret, struct err *e);

/* Server. Each clears the head first. */
int grpc_response_head(struct http_head *head, struct err *e);
int grpc_trailers(struct http_head *trailers, enum grpc_status status, struct span message,
                  struct err *e);
/* The whole answer in one head, for calls that end before their first message. */
int grpc_trailers_only(struct http_head *head, enum grpc_status status, struct span message,
                       struct err *e);

/* Client: the head of a call; timeout_ms 0 is none. */
int grpc_request_head(struct http_head *head, struct span authority, struct span path,
                      uint64_t timeout_ms, struct err *e);
/* Reads the end of a call from its trailers, or from a head that is all (trailers-only). Decodes
 * the message into *message (its ceiling cuts). Without a grpc-status: GRPC_UNKNOWN, or what the
 * HTTP status means. */
enum grpc_status grpc_status_read(const struct http_head *trailers, struct buf *message);
/* The same as an error: 0 when it is GRPC_OK. */
int grpc_status_err(const struct http_head *trailers, struct err *e);

#endif
