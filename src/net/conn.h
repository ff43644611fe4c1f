/* conn: one byte stream with buffered output: a TCP or unix socket, in clear or through a filter (TLS).
 *
 * Owns:     the descriptor, the queue of bytes and files not sent yet, the filter.
 * Used by:  http/serve, http/client, the router's relay.
 * Threads:  the loop's. Files are sent by a worker (sendfile), while the loop leaves the socket's write side alone.
 * Failures: when a write fails, what the peer sent before is still delivered (a server may refuse an upload and close).
 * Events:   never inside a verb; on_close exactly once, as the last one. After conn_close no event but on_close.
 */
#ifndef SILICA_NET_CONN_H
#define SILICA_NET_CONN_H

#include "ev/loop.h"
#include "ev/worker.h"

struct conn;

struct conn_events {
    /* Bytes, borrowed for the call. */
    void (*on_read)(void *ctx, struct span in);
    /* The peer will send no more. We may still write. */
    void (*on_eof)(void *ctx);
    /* It was full and fell to the low mark, or a file was sent. May be NULL. */
    void (*on_drain)(void *ctx);
    /* Gone: e says why, NULL when we closed it ourselves. The conn is freed after this returns. */
    void (*on_close)(void *ctx, const struct err *e);
};

/* What stands between the socket and the bytes; net/tls makes one. read and write behave as the system calls do:
 * -1 and EAGAIN when they cannot go on now. A write that could not go on is tried again with the same bytes, from
 * another place in memory perhaps, and perhaps with more behind them. */
struct conn_filter {
    const struct conn_filter_ops *ops;
};
struct conn_filter_ops {
    /* Does what has to come before any byte: 0 when that is over, -1 and EAGAIN while it waits for the peer. */
    int (*handshake)(struct conn_filter *f);
    ssize_t (*read)(struct conn_filter *f, void *p, size_t n);
    ssize_t (*write)(struct conn_filter *f, const void *p, size_t n);
    /* EV_READ / EV_WRITE bits it waits for before anything can go on (a handshake), or 0. */
    unsigned (*wants)(const struct conn_filter *f);
    /* Something can be read without the socket becoming readable. */
    bool (*has_pending)(const struct conn_filter *f);
    /* Says goodbye in its protocol. False: the socket is full, `wants` says EV_WRITE, call again. */
    bool (*finish)(struct conn_filter *f);
    /* What went wrong last, in words; "" if nothing. */
    const char *(*error)(const struct conn_filter *f);
    /* The protocol agreed on for the bytes inside (ALPN: "h2"), or "". Known after the handshake. */
    const char *(*protocol)(const struct conn_filter *f);
    void (*free)(struct conn_filter *f);
};

/* Makes filters for new connections: dial and the HTTP client take one, and so need not know of TLS. The filter
 * does not own fd. peer_name may be NULL: then the peer is not asked who it is. */
struct conn_filter_maker {
    int (*make)(struct conn_filter_maker *m, int fd, const char *peer_name,
                struct conn_filter **ret, struct err *e);
};

/* Takes fd (closed on failure) and, on success, the filter (may be NULL). Reading is on. events NULL: as in
 * conn_set_events. */
int conn_new(struct ev_loop *loop, int fd, struct conn_filter *filter,
             const struct conn_events *events, void *ctx, struct conn **ret, struct err *e);

/* Back-pressure: off means the peer's bytes stay in the kernel. */
void conn_want_read(struct conn *c, bool is_wanted);
/* Sends what the socket takes now and queues a copy of the rest; errors arrive as on_close. */
void conn_write(struct conn *c, struct span bytes);
/* The same, taking the block: *bytes is empty afterwards. */
void conn_write_buf(struct conn *c, struct buf *bytes);
/* Queues n bytes of a file; takes file_fd. A file that ends early closes the connection: the peer was promised n. */
void conn_write_file(struct conn *c, struct ev_pool *pool, int file_fd, uint64_t offset,
                     uint64_t n);
/* What it was made with, or NULL. */
const struct conn_filter *conn_filter(const struct conn *c);
size_t conn_queued(const struct conn *c); /* bytes in memory; a queued file counts as full */
bool conn_is_full(const struct conn *c);
/* Something waits to be sent, bytes or a file. */
bool conn_is_sending(const struct conn *c);
/* Bytes the socket has taken since the connection was made. */
uint64_t conn_sent(const struct conn *c);
/* Another number whenever the peer took something: bytes sent, less those the kernel still holds. To a slow reader
 * conn_sent() stands still until a third of the kernel's buffer is free, which can take minutes. */
uint64_t conn_moved(const struct conn *c);

/* After the queue is sent: end our side only. Writes are ignored from now on, reading goes on; conn_finish or conn_close
 * is still to come. */
void conn_finish_writing(struct conn *c);
/* After the queue is sent: end our side, drop what still comes while it comes (half a minute at most), close. No more events but on_close. */
void conn_finish(struct conn *c);
/* At once. */
void conn_close(struct conn *c);

/* Events go to somebody else from now on: a connection changes hands when its protocol does (Upgrade).
 * NULL: to nobody, between two owners, or because it sends its last bytes and closes by itself. */
void conn_set_events(struct conn *c, const struct conn_events *events, void *ctx);

/* Closes those that are nobody's at once, in the next turn: before the loop is freed. */
void conn_close_orphans(struct ev_loop *loop);

int conn_fd(const struct conn *c);
struct ev_loop *conn_loop(const struct conn *c);
struct conn_filter *conn_get_filter(const struct conn *c); /* NULL in clear; the connection's */

#endif
