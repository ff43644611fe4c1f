/* spdy: one SPDY/3.1 connection, both roles, without I/O: bytes in, events out, bytes out. Kubernetes carries exec,
 * attach and port-forward in it, for clients that know no WebSocket.
 *
 * Owns:     its streams, their queues, two zlib streams (about 9 KiB to write, up to 40 to read).
 * Used by:  podstream (SPDY_SERVER); tests and port-forward clients (SPDY_CLIENT).
 * Threads:  belongs to one loop. Does no I/O, reads no clock.
 * Events:   run inside spdy_feed, spdy_pull and spdy_free, never inside the other verbs. Per stream: on_stream or
 *           on_reply, on_data*, on_end once when the peer ended its side, and on_close exactly once, last. Inside an
 *           event every verb may be called but those three.
 * Streams:  a struct spdy_stream * is valid until its on_close returned. After spdy_reset only on_close follows.
 * Windows:  the clients of Kubernetes neither send WINDOW_UPDATE nor wait for one, so has_windows is false there: what
 *           is sent goes out at once, and a peer is held up by not feeding what it sent. With has_windows both sides'
 *           windows hold, per stream and per connection, and data waits in its stream.
 * Silence:  without windows nothing is said before the peer speaks: Go's client loses bytes that come with the 101.
 */
#ifndef SILICA_HTTP_SPDY_H
#define SILICA_HTTP_SPDY_H

#include "http/head.h"

struct spdy;
struct spdy_stream;

enum spdy_role { SPDY_SERVER, SPDY_CLIENT };

/* Of RST_STREAM; those of GOAWAY are the first three. */
enum spdy_status {
    SPDY_OK = 0,
    SPDY_PROTOCOL_ERROR = 1,
    SPDY_INVALID_STREAM = 2, /* in GOAWAY: an internal error */
    SPDY_REFUSED_STREAM = 3,
    SPDY_UNSUPPORTED_VERSION = 4,
    SPDY_CANCEL = 5,
    SPDY_INTERNAL_ERROR = 6,
    SPDY_FLOW_CONTROL_ERROR = 7,
    SPDY_STREAM_IN_USE = 8,
    SPDY_STREAM_ALREADY_CLOSED = 9,
};

/* Start from SPDY_CONFIG_INIT(role) and change what differs. */
struct spdy_config {
    enum spdy_role role;
    bool has_windows;
    uint32_t max_streams;    /* that the peer may have open at once; more are refused */
    uint32_t stream_window;  /* with has_windows: bytes before spdy_consume */
    uint32_t conn_window;    /* the same for all streams together */
    uint32_t head_max_bytes; /* of a head, unpacked; a longer one ends the connection */
    uint32_t head_max_fields;
};

/* clang-format off */
#define SPDY_MAX_STREAMS      512         /* 256 forwarded connections; Kubernetes has no number of its own */
#define SPDY_WINDOW_BYTES     (64 * 1024) /* the protocol's own, until SETTINGS say otherwise */
#define SPDY_CONN_WINDOW_BYTES (256 * 1024)
#define SPDY_HEAD_MAX_BYTES   (16 * 1024) /* heads here are three short fields */
#define SPDY_HEAD_MAX_FIELDS  64
#define SPDY_SEND_HIGH_BYTES  (256 * 1024) /* queued on a stream from which spdy_is_full() says stop */
#define SPDY_SEND_LOW_BYTES   (64 * 1024)  /* on_drain when a full stream falls to it */
#define SPDY_CONFIG_INIT(role_) {                                                                  \
    .role = (role_), .max_streams = SPDY_MAX_STREAMS, .stream_window = SPDY_WINDOW_BYTES,          \
    .conn_window = SPDY_CONN_WINDOW_BYTES, .head_max_bytes = SPDY_HEAD_MAX_BYTES,                  \
    .head_max_fields = SPDY_HEAD_MAX_FIELDS }
/* clang-format on */

/* All but on_stream (of a server) and on_close may be NULL. */
struct spdy_events {
    /* The peer made a stream; the head lives for the call. */
    void (*on_stream)(void *ctx, struct spdy_stream *s, const struct http_head *head);
    /* The answer to spdy_open. */
    void (*on_reply)(void *ctx, struct spdy_stream *s, const struct http_head *head);
    /* Bytes, borrowed for the call. With windows the peer gets no credit for them until spdy_consume. */
    void (*on_data)(void *ctx, struct spdy_stream *s, struct span bytes);
    void (*on_end)(void *ctx, struct spdy_stream *s);
    /* The stream was full and its queue fell to the low mark. */
    void (*on_drain)(void *ctx, struct spdy_stream *s);
    /* Both sides ended (SPDY_OK), one reset it, or the connection is freed (SPDY_CANCEL). */
    void (*on_close)(void *ctx, struct spdy_stream *s, uint32_t status);
    /* The peer makes no new streams and serves none of ours above last_id. */
    void (*on_goaway)(void *ctx, uint32_t last_id, uint32_t status);
    /* The answer to spdy_ping. */
    void (*on_pong)(void *ctx, uint32_t id);
};

struct spdy *spdy_new(const struct spdy_config *config, const struct spdy_events *events,
                      void *ctx);
/* on_close with SPDY_CANCEL for each stream still open. Tolerates NULL. */
void spdy_free(struct spdy *h);

/* Takes all of `in`. -1: the connection is lost (ERR_PROTOCOL, ERR_LIMIT); a GOAWAY waits: pull once more, send it,
 * close. After a failure every feed fails. */
int spdy_feed(struct spdy *h, struct span in, struct err *e);
/* Moves what is to be sent into out (which is empty: it takes the block), and tells what verbs have closed. Call after
 * spdy_feed and after verbs. */
void spdy_pull(struct spdy *h, struct buf *out);
bool spdy_wants_pull(const struct spdy *h);

/* Makes a stream; user may be NULL. -1: ERR_UNAVAILABLE when the connection takes no more (GOAWAY, ids used up),
 * ERR_BUSY beyond the peer's number of streams, ERR_LIMIT for a head that is too long. */
int spdy_open(struct spdy *h, const struct http_head *head, bool is_end, void *user,
              struct spdy_stream **ret, struct err *e);
/* The answer to on_stream, once; head NULL has no fields. */
int spdy_reply(struct spdy_stream *s, const struct http_head *head, bool is_end, struct err *e);
/* Sends or queues bytes: copied. Ignored after spdy_finish and spdy_reset. */
void spdy_send(struct spdy_stream *s, struct span bytes);
/* Ends our side after what is queued. */
void spdy_finish(struct spdy_stream *s);
/* Drops what is queued; on_close follows. */
void spdy_reset(struct spdy_stream *s, uint32_t status);
/* Credits the peer for n bytes of on_data. Without windows it does nothing. */
void spdy_consume(struct spdy_stream *s, size_t n);

/* Always false without windows: the connection is what fills up then. */
bool spdy_is_full(const struct spdy_stream *s);
void spdy_set_user(struct spdy_stream *s, void *user);
void *spdy_user(const struct spdy_stream *s);
struct spdy *spdy_of(const struct spdy_stream *s);
uint32_t spdy_id(const struct spdy_stream *s);
/* Those whose on_close is still owed. */
size_t spdy_stream_count(const struct spdy *h);

uint32_t spdy_ping(struct spdy *h); /* the id that on_pong will have */
/* New streams of the peer are ignored from now on; open ones go on. */
void spdy_goaway(struct spdy *h, uint32_t status);

#endif
