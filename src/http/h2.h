/* h2: one HTTP/2 connection, both roles, without I/O: bytes in, events out, bytes out. nghttp2 does
 * the framing and HPACK; this adds heads as http_head, a send queue per stream, manual flow control
 * and flood limits.
 *
 * Owns:     its streams, their heads and queues. An idle connection holds no buffer of ours.
 * Used by:  the servers (H2_SERVER), the router and the client library (H2_CLIENT).
 * Threads:  belongs to one loop. Reads the clock only to count a frame against a flood limit.
 * Events:   run inside h2_feed, h2_pull and h2_free, never inside the other verbs. Per stream:
 *           on_head, on_data*, on_trailers?, on_end (once when the peer ended its side, also when
 *           on_head said is_end), and on_close exactly once for every stream that on_head announced
 *           or h2_request made. Inside an event every verb may be called but those three.
 * Streams:  a struct h2_stream * is valid until its on_close returned. After h2_reset only on_close
 *           follows.
 * Loop:     h2_pull after each h2_feed and after verbs that send, while h2_wants_write().
 */
#ifndef SILICA_HTTP_H2_H
#define SILICA_HTTP_H2_H

#include "base/buf.h"
#include "http/head.h"

struct h2;
struct h2_stream;

enum h2_role { H2_SERVER, H2_CLIENT };

/* RFC 9113 section 7, the ones we send or branch on; on_close may carry any number. */
enum h2_code {
    H2_NO_ERROR = 0,
    H2_PROTOCOL_ERROR = 1,
    H2_INTERNAL_ERROR = 2,
    H2_FLOW_CONTROL_ERROR = 3,
    H2_STREAM_CLOSED = 5,
    H2_REFUSED_STREAM = 7,
    H2_CANCEL = 8,
    H2_ENHANCE_YOUR_CALM = 11,
};

/* Start from H2_CONFIG_INIT(role) and change what differs. */
struct h2_config {
    enum h2_role role;
    uint32_t max_streams;     /* that the peer may have open at once */
    uint32_t stream_window;   /* bytes a peer may send on a stream before h2_consume */
    uint32_t conn_window;     /* on all together: the most memory unread bodies can take */
    uint32_t head_max_bytes;  /* of one head; then a server answers 431, a client resets */
    uint32_t head_max_fields; /* the same for their number */
    uint32_t send_high;       /* h2_is_full() at or above; nothing is refused */
    uint32_t send_low;        /* on_drain when a full stream falls to it */
    /* Streams the peer may waste (RST_STREAM, or errors that make us send one), and how many it
     * earns back each second. Beyond: GOAWAY ENHANCE_YOUR_CALM. */
    uint32_t reset_burst, reset_per_s;
    /* The same for frames that move nothing: PING, SETTINGS, PRIORITY, empty DATA. */
    uint32_t idle_frame_burst, idle_frame_per_s;
    uint64_t (*now_ms)(void); /* monotonic, for the four above; NULL: the system's */
};

/* clang-format off */
#define H2_STREAM_WINDOW_BYTES (1024 * 1024)     /* 100 MB/s on a 10 ms path */
#define H2_CONN_WINDOW_BYTES   (4 * 1024 * 1024) /* four such uploads */
#define H2_MAX_STREAMS         1000              /* clients wait silently beyond it */
#define H2_HEAD_MAX_BYTES      (64 * 1024)       /* as HTTP/1: bearer tokens grow with groups */
#define H2_HEAD_MAX_FIELDS     256
#define H2_SEND_HIGH_BYTES     (256 * 1024)
#define H2_SEND_LOW_BYTES      (64 * 1024)
#define H2_RESET_BURST         2000              /* deadlines cancel often; rapid reset: 10^5/s */
#define H2_RESET_PER_S         500
#define H2_IDLE_FRAME_BURST    10000             /* gRPC pings to measure bandwidth */
#define H2_IDLE_FRAME_PER_S    2000
#define H2_CONFIG_INIT(role_) {                                                                    \
    .role = (role_), .max_streams = H2_MAX_STREAMS,                                                \
    .stream_window = H2_STREAM_WINDOW_BYTES, .conn_window = H2_CONN_WINDOW_BYTES,                  \
    .head_max_bytes = H2_HEAD_MAX_BYTES, .head_max_fields = H2_HEAD_MAX_FIELDS,                    \
    .send_high = H2_SEND_HIGH_BYTES, .send_low = H2_SEND_LOW_BYTES,                                \
    .reset_burst = H2_RESET_BURST, .reset_per_s = H2_RESET_PER_S,                                  \
    .idle_frame_burst = H2_IDLE_FRAME_BURST, .idle_frame_per_s = H2_IDLE_FRAME_PER_S }
/* clang-format on */

/* All but on_head and on_close may be NULL. */
struct h2_events {
    /* A request (server) or a final response (client; 1xx are dropped). The head lives until
     * on_close. Its target is :path as it came; authority is :authority, else the Host field. */
    void (*on_head)(void *ctx, struct h2_stream *s, const struct http_head *head, bool is_end);
    /* Body bytes, borrowed for the call. The peer gets no credit for them until h2_consume;
     * without on_data they are credited at once. */
    void (*on_data)(void *ctx, struct h2_stream *s, struct span bytes);
    /* Trailing fields; the head lives for the call. */
    void (*on_trailers)(void *ctx, struct h2_stream *s, const struct http_head *trailers);
    void (*on_end)(void *ctx, struct h2_stream *s);
    /* The stream was full and its queue fell to the low mark. */
    void (*on_drain)(void *ctx, struct h2_stream *s);
    /* Both sides ended (H2_NO_ERROR), one reset it, or the connection is freed (H2_CANCEL). */
    void (*on_close)(void *ctx, struct h2_stream *s, uint32_t code);
    /* The peer makes no new streams and serves none of ours above last_id. */
    void (*on_goaway)(void *ctx, uint32_t last_id, uint32_t code);
    /* The answer to h2_ping. */
    void (*on_pong)(void *ctx, uint64_t opaque);
};

enum h2_preface { H2_PREFACE_NO, H2_PREFACE_MORE, H2_PREFACE_YES };

/* Do these first bytes of a connection open HTTP/2? MORE: all of them fit so far, fewer than 24.
 * Nothing is consumed: feed them. */
enum h2_preface h2_preface_match(struct span first);

/* Queues our SETTINGS (and the client's preface) at once. `events` must outlive it. */
struct h2 *h2_new(const struct h2_config *config, const struct h2_events *events, void *ctx);
/* on_close with H2_CANCEL for each stream still open. Tolerates NULL. */
void h2_free(struct h2 *h);

/* Takes all of `in`. -1: the connection is lost (ERR_PROTOCOL, ERR_LIMIT for floods); a GOAWAY
 * may wait: pull once more, send it, close. After a failure every feed fails. Some protocol
 * errors show only in the next h2_pull, as the GOAWAY it adds; then neither reading nor writing
 * is wanted. */
int h2_feed(struct h2 *h, struct span in, struct err *e);
/* Adds frames to out until it holds `want` more bytes (by a frame more at most) or nothing is
 * ready. 1: more is waiting, 0: not now, -1: out reached its ceiling or the connection is lost. */
int h2_pull(struct h2 *h, struct buf *out, size_t want, struct err *e);
bool h2_wants_write(const struct h2 *h);
/* False once the connection is over: GOAWAY either way and no stream left. Close when neither is
 * wanted. */
bool h2_wants_read(const struct h2 *h);

/* A client's request; NULL user is fine. -1 with ERR_UNAVAILABLE when the connection takes no
 * more (GOAWAY, ids used up): make another. Beyond the peer's concurrency limit requests wait in
 * line. */
int h2_request(struct h2 *h, const struct http_head *head, bool is_end, void *user,
               struct h2_stream **ret, struct err *e);
/* A server's answer. Once per stream, but for 1xx heads before it. Connection-bound fields (RFC
 * 9113 8.2.2) are left out. -1: the head cannot go on the wire, nothing was sent. */
int h2_respond(struct h2_stream *s, const struct http_head *head, bool is_end, struct err *e);
/* Queues body bytes: copied, or the block taken from *bytes, which is empty then. Allowed before
 * h2_respond; waits for it. Returns what is queued on the stream now. Ignored after h2_finish
 * and h2_reset. */
size_t h2_send(struct h2_stream *s, struct span bytes);
size_t h2_send_buf(struct h2_stream *s, struct buf *bytes);
/* Ends our side after what is queued; trailers are copied. A server's stream closes (H2_NO_ERROR)
 * when its end was pulled, even if the peer still sends: that is dropped, up to a stream's window,
 * then the stream is reset. -1: bad trailers, the stream is reset. */
int h2_finish(struct h2_stream *s, const struct http_head *trailers, struct err *e);
/* Drops what is queued. on_close follows when the frame was pulled. */
void h2_reset(struct h2_stream *s, uint32_t code);
/* Credits the peer for n bytes of on_data. What is not consumed at close is credited to the
 * connection then. */
void h2_consume(struct h2_stream *s, size_t n);

size_t h2_queued(const struct h2_stream *s);
bool h2_is_full(const struct h2_stream *s);
void h2_set_user(struct h2_stream *s, void *user);
void *h2_user(const struct h2_stream *s);
struct h2 *h2_of(const struct h2_stream *s);
void *h2_ctx(const struct h2 *h);
uint32_t h2_id(const struct h2_stream *s);
/* NULL before on_head (client). */
const struct http_head *h2_head(const struct h2_stream *s);

/* Those whose on_close is still owed. */
size_t h2_stream_count(const struct h2 *h);
/* New streams that fit the peer's limit now (client). */
size_t h2_request_room(const struct h2 *h);
/* Graceful: tells the peer to make no new streams, serves those that crossed the message, then
 * GOAWAYs with the last one's id. The connection ends itself with its last stream: see
 * h2_wants_read. */
void h2_shutdown(struct h2 *h);
/* At once: GOAWAY with this code. Once it was pulled nothing is wanted; h2_free closes the
 * streams. */
void h2_goaway(struct h2 *h, uint32_t code);
void h2_ping(struct h2 *h, uint64_t opaque);

#endif
