/* serve: HTTP servers. Connections come in, requests go to one function, answers go out; HTTP/1.1 and HTTP/2 are
 * told apart by the first bytes, and a handler does not see which it was.
 *
 * Owns:     its connections and exchanges, their deadlines, what waits to be sent.
 * Used by:  runtime, router, API server, controllers' metrics and health.
 * Threads:  the loop's.
 * Life:     an exchange is one request and its answer. It lives until its answer was ended (http_answer,
 *           http_answer_end, http_answer_abort, http_answer_switch) or its on_gone ran, whichever is first; then the
 *           handler must not touch it again. Exactly one of the two happens.
 * Events:   on_request runs when the head is complete. Body events, on_drain and on_gone never run inside a verb.
 * Gone:     an HTTP/1.1 peer that ends its side may still read, so it is answered (but see http_eof_is_gone); that it
 *           went away shows when something is sent to it. An HTTP/2 peer that ends its side, or resets the stream, is
 *           gone.
 */
#ifndef SILICA_HTTP_SERVE_H
#define SILICA_HTTP_SERVE_H

#include "ev/worker.h"
#include "http/head.h"
#include "net/addr.h"
#include "net/conn.h"

struct http_server;
struct http_exchange;

struct http_server_config {
    void (*on_request)(void *ctx, struct http_exchange *x);
    /* The body of an answer to a request that never became an exchange (400, 408, 431, ...). May be NULL: then JSON
     * `{"detail":"..."}`. Sets *ret_type to the content type. */
    void (*error_body)(void *ctx, int status, const char *message, struct buf *body,
                       const char **ret_type);
    ev_fn on_closed; /* a connection ended, whoever ended it; may be NULL */
    /* A connection that begins with a zero byte, which no HTTP does: it is another's from now on, with what it sent so
     * far, as with http_switch_fn. NULL: such a one is refused as bad HTTP. on_closed is not told of it. */
    void (*on_stranger)(void *ctx, struct conn *conn, struct span first);
    void *ctx;
    struct ev_pool *file_pool; /* for http_answer_file */
    const char *server_name;   /* the Server field, or NULL for none */
    uint32_t head_max_bytes;   /* then 431 */
    uint64_t head_timeout_ms;  /* from a request's first byte to the end of its head; then 408 */
    uint64_t idle_timeout_ms;  /* between requests */
    uint64_t
        stall_timeout_ms; /* a body that does not move, either way; noticed within twice this */
    /* Beyond: idle ones are closed, else new ones, by the rules of connection_limit, and it is logged. Fewer where the process may not
     * have the descriptors. 0: no ceiling of ours. */
    uint32_t max_connections;
    uint32_t files_each; /* descriptors for a connection in use; 0: 1 */
};

/* clang-format off */
#define HTTP_SERVER_HEAD_MAX_BYTES  (64 * 1024)
#define HTTP_SERVER_HEAD_TIMEOUT_MS 10000
#define HTTP_SERVER_IDLE_TIMEOUT_MS 60000
#define HTTP_SERVER_STALL_TIMEOUT_MS 60000
/* clang-format on */

struct http_server *http_server_new(struct ev_loop *loop, const struct http_server_config *config);
/* A net_accept_fn: ctx is the server. Takes fd. */
void http_server_accept(void *server, int fd, const struct net_addr *peer);
/* The same with a filter (TLS) in between; takes both. */
void http_server_take(struct http_server *s, int fd, struct conn_filter *filter,
                      const struct net_addr *peer);
/* What a connection stands for beside its address; embedded by who makes it. */
struct http_owner {
    void (*free)(struct http_owner *o);
};
/* The same in clear, for a connection that stands for somebody: takes owner, too, and frees it when the connection has ended
 * or changed hands. */
void http_server_take_as(struct http_server *s, int fd, struct http_owner *owner,
                         const struct net_addr *peer);
/* Answers what is under way and closes each connection after it; idle ones at once. done(ctx) when none is left. */
void http_server_drain(struct http_server *s, ev_fn done, void *ctx);
size_t http_server_connections(const struct http_server *s);
/* Closes everything at once: on_gone for each exchange. Turns the loop until that is done: not for callbacks. */
void http_server_free(struct http_server *s);

/* ---- the request ---- */

const struct http_head *http_req(const struct http_exchange *x);
struct span http_method(const struct http_exchange *x);
bool http_method_is(const struct http_exchange *x, const char *method);
/* The target without its query, as on the wire: not decoded. */
struct span http_path(const struct http_exchange *x);
/* What follows '?', or empty. */
struct span http_query(const struct http_exchange *x);
/* The raw value of a query parameter; p NULL when absent. */
struct span http_query_get(const struct http_exchange *x, const char *name);
struct span http_field(const struct http_exchange *x, const char *name);
bool http_is_h2(const struct http_exchange *x);
/* What stands between this connection and its socket (TLS), or NULL. */
const struct conn_filter *http_filter(const struct http_exchange *x);
const struct net_addr *http_peer(const struct http_exchange *x);
/* Whom its connection stands for, or NULL. Lives as long as the exchange. */
struct http_owner *http_owner(const struct http_exchange *x);
/* Counts up per process: in logs, to tell requests apart. */
uint64_t http_id(const struct http_exchange *x);
struct ev_loop *http_loop(const struct http_exchange *x);
/* The length the peer announced, UINT64_MAX when it did not. 0 without a body. */
uint64_t http_body_length(const struct http_exchange *x);

/* ---- its body ---- */

struct http_body_events {
    /* A piece, borrowed for the call. */
    void (*on_data)(void *ctx, struct span bytes);
    /* Once: NULL when complete, else why not (ERR_CLOSED, ERR_PROTOCOL, ERR_TIMEOUT). The exchange is still there
     * and may be answered. Not called when on_gone is. */
    void (*on_end)(void *ctx, const struct err *e);
};

/* Begins to read the body; a client that waits for "100 Continue" gets it now. */
void http_body_read(struct http_exchange *x, const struct http_body_events *events, void *ctx);
/* Back-pressure: the peer is held up until resumed. */
void http_body_pause(struct http_exchange *x, bool is_paused);
/* The body is one side of a conversation: it may be silent for any time, and no deadline of ours runs for it. */
void http_body_may_rest(struct http_exchange *x);
/* Reads it whole, at most max bytes: done(ctx, body, NULL), or an empty body and ERR_LIMIT etc. The body lives as long
 * as the exchange. */
typedef void (*http_collect_fn)(void *ctx, struct span body, const struct err *e);
void http_body_collect(struct http_exchange *x, size_t max, http_collect_fn done, void *ctx);

/* ---- its answer ---- */

/* The peer went away (or the server closes) before the answer was ended. */
void http_on_gone(struct http_exchange *x, ev_fn fn, void *ctx);
/* From now on a peer that ended its sending side counts as gone. In HTTP/1.1 that is how most clients leave, but a few
 * only say that no more requests follow: for work that is pointless without a reader. HTTP/2 always tells. */
void http_eof_is_gone(struct http_exchange *x);
/* The answer was full and can take more. */
void http_on_drain(struct http_exchange *x, ev_fn fn, void *ctx);

/* Adds a field to the answer, before it begins. A value that may not stand on the wire is dropped and logged. Date and
 * Server come by themselves where the handler gives none; Content-Length always does. */
void http_answer_field(struct http_exchange *x, const char *name, struct span value);
/* The same for a name that somebody else's head has. */
void http_answer_pass(struct http_exchange *x, struct span name, struct span value);
void http_answer_pass_from(struct http_exchange *x, const struct http_head *from, size_t i);
void http_answer_fieldf(struct http_exchange *x, const char *name, const char *fmt, ...)
    PRINTF(3, 4);
/* A whole answer. content_type NULL adds none. */
void http_answer(struct http_exchange *x, int status, const char *content_type, struct span body);
/* A whole answer, JSON: {"detail":"..."}; what servers of ours say that have no error format of their own. */
void http_answer_detail(struct http_exchange *x, int status, const char *text);
/* A whole answer that is nothing but its head, which then ends an HTTP/2 stream without naming a length: gRPC's
 * trailers-only. */
void http_answer_head(struct http_exchange *x, int status);
/* An answer in pieces: length UINT64_MAX when not known yet. */
void http_answer_begin(struct http_exchange *x, int status, uint64_t length);
void http_answer_write(struct http_exchange *x, struct span bytes);
/* The bytes of a file, by a worker; takes file_fd. Only with a known length; nothing else between begin and end. */
void http_answer_file(struct http_exchange *x, int file_fd, uint64_t offset, uint64_t n);
bool http_answer_is_full(const struct http_exchange *x);
bool http_answer_has_begun(const struct http_exchange *x);
/* Ends it. Trailers (HTTP/2, chunked HTTP/1.1) may be NULL. */
void http_answer_end(struct http_exchange *x, const struct http_head *trailers);
/* Ends it so that the peer sees it is not whole: the stream is reset, the connection closed. */
void http_answer_abort(struct http_exchange *x);

/* ---- another protocol on the same connection ---- */

/* What an HTTP/1.1 request asks to switch to, its first choice; p NULL when it does not ask, has a body, or came by
 * another HTTP. */
struct span http_upgrade(const struct http_exchange *x);
/* The connection, and the bytes that came behind the request already, borrowed for the call. Takes the connection:
 * conn_set_events before returning; the server has forgotten it and will neither count nor close it. conn NULL: the peer
 * went first, or the server was freed. */
typedef void (*http_switch_fn)(void *ctx, struct conn *conn, struct span rest);
/* Only where http_upgrade() says something. Answers 101 with the fields added before, and with Upgrade and Connection.
 * Ends the exchange; done(ctx) runs once, in a later turn. */
void http_answer_switch(struct http_exchange *x, const char *protocol, http_switch_fn done,
                        void *ctx);

#endif
