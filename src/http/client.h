/* client: HTTP calls. A request goes out, a response comes back in events; connections are kept and shared behind
 * the scenes, and the caller does not see whether HTTP/1.1 or HTTP/2 carried it.
 *
 * Owns:     connections (idle ones too), the calls under way with copies of all they were given.
 * Used by:  kubeclient, router, node, libsilica, image pulls.
 * Threads:  the loop's.
 * Life:     a call lives until its last event returned: on_done, or on_upgrade. Exactly one of the two comes, always,
 *           also after http_call_cancel and http_client_free (ERR_CANCELED). No event runs inside a verb.
 * HTTP/2:   one connection carries all calls to a target, until as many streams are open as the server allows: then
 *           another is made.
 * Retries:  only of what cannot have been answered: a kept connection that closed before the first byte of the
 *           answer, or a stream the server refused; once, on a fresh connection, when the request can be said again
 *           and either repeats harmlessly (GET, HEAD, OPTIONS, is_idempotent) or never left.
 * Bodies:   response bodies have no ceiling here: count in on_data, or use http_fetch.
 */
#ifndef SILICA_HTTP_CLIENT_H
#define SILICA_HTTP_CLIENT_H

#include "http/head.h"
#include "net/conn.h"
#include "net/dial.h"

struct http_client;
struct http_call;

/* clang-format off */
#define HTTP_CLIENT_IDLE_MAX            128   /* connections kept for later, all targets together */
#define HTTP_CLIENT_IDLE_PER_TARGET_MAX 32
#define HTTP_CLIENT_IDLE_MS             30000 /* below what servers usually give up after (60 s): they should not be first */
/* clang-format on */

/* Zeroes mean the numbers above and limits.h's. */
struct http_client_config {
    struct dial_resolver *resolver; /* or NULL: addresses and localhost only */
    /* As in dial_spec, of each new connection. */
    bool (*may_connect)(void *ctx, const struct net_addr *to);
    void *may_ctx;
    uint32_t idle_max, idle_per_target_max;
    uint64_t idle_ms;
    /* HTTP/2: a connection that carries calls and was silent for so long is pinged, and is lost when nothing came for as
     * long as ping_wait_ms after that. It is how a watch learns that its server is gone. 0: never asked. */
    uint64_t ping_idle_ms, ping_wait_ms;
    uint32_t head_max_bytes;    /* of a response; ERR_LIMIT beyond */
    uint32_t request_max_bytes; /* of a request's head: a relay takes what its server took */
};

/* HTTP_BY_ALPN needs a maker whose list offers h2; in clear it means HTTP_V1. HTTP_V2 in clear is prior knowledge. */
enum http_version { HTTP_V1, HTTP_V2, HTTP_BY_ALPN };

/* Whom to call. Calls with equal targets share connections. */
struct http_target {
    const char *host; /* as in dial_spec; also names the server in Host and errors */
    uint16_t port;
    const struct net_addr
        *addr; /* where to connect instead (a unix socket, a pod); host is then only a name */
    struct conn_filter_maker *maker; /* TLS; must outlive the client's connections */
    const char *peer_name;           /* as in dial_spec */
    enum http_version version;
    int fd; /* takes it: a socket to connect if a new connection is needed; 0: none */
    /* As in dial_spec: who connects, and where to, if a new connection is needed. */
    struct dial_plug *plug;
    const char *place;
};

struct http_call_events {
    /* The final response, borrowed for the call; 1xx are skipped. */
    void (*on_head)(void *ctx, const struct http_head *head);
    /* A piece of its body, borrowed for the call. NULL drops it. */
    void (*on_data)(void *ctx, struct span bytes);
    /* A streamed request body may go on: http_call_is_full() is false again. May be NULL. */
    void (*on_drain)(void *ctx);
    /* Last. e NULL: the response is complete. Trailers (or NULL) live for the call. */
    void (*on_done)(void *ctx, const struct http_head *trailers, const struct err *e);
    /* Last, instead of on_done: 101, or a 2xx to CONNECT. Takes the connection: conn_set_events before returning, and
     * `rest` (borrowed) came behind the head already. NULL: a switch is an error. HTTP/1.1 only. */
    void (*on_upgrade)(void *ctx, const struct http_head *head, struct conn *conn,
                       struct span rest);
};

#define HTTP_BODY_CHUNKED UINT64_MAX

/* All of it is copied but ctx, the events and what the target points to for its services. */
struct http_call_spec {
    struct http_target to;
    const struct http_head *head; /* method, target, fields; Host and framing fields are added */
    struct http_head *
        lent_head; /* instead of head: used as it is, not copied. Not to be touched until on_done or
                                  * on_upgrade; then it is empty, with its memory for the next */
    struct span body;       /* the whole body, unless is_streamed */
    bool is_streamed;       /* the body comes through http_call_write, ended by http_call_end */
    uint64_t stream_length; /* of a streamed body; HTTP_BODY_CHUNKED when not known */
    bool is_idempotent;     /* saying it twice does no harm, whatever the method */
    uint64_t connect_ms;    /* 0: 10 s */
    uint64_t head_ms;       /* from the request's last byte to the response's head; 0: none */
    uint64_t idle_ms;       /* silence inside a body, either way; 0: none */
    uint64_t total_ms;      /* 0: none */
    const struct http_call_events *events;
    void *ctx;
};

struct http_client *http_client_new(struct ev_loop *loop, const struct http_client_config *config);
/* Ends all calls (ERR_CANCELED, in a later turn) and connections. */
void http_client_free(struct http_client *c);
/* Closes idle connections: after credentials changed. Those of HTTP/2 take no more calls and end with their last. */
void http_client_forget_idle(struct http_client *c);
size_t http_client_connections(const struct http_client *c);

/* Never fails here: what is wrong arrives as on_done. */
struct http_call *http_call_start(struct http_client *c, const struct http_call_spec *spec);
/* Adds to a streamed body: sent, or queued. */
void http_call_write(struct http_call *x, struct span bytes);
/* Stop writing until on_drain; also while there is no connection yet. */
bool http_call_is_full(const struct http_call *x);
/* Ends a streamed body; trailers may be NULL, and go out only where the length was not announced. */
void http_call_end(struct http_call *x, const struct http_head *trailers);
/* Back-pressure: no on_data, and no end, until resumed. */
void http_call_pause(struct http_call *x, bool is_paused);
/* on_done then gets ERR_CANCELED. */
void http_call_cancel(struct http_call *x);
/* False: nobody can have heard of it, so it was not done. Also in on_done. */
bool http_call_has_left(const struct http_call *x);

/* A whole response; head and body live for the call. With e they are what came before, head may be NULL. */
typedef void (*http_fetch_fn)(void *ctx, const struct http_head *head, struct span body,
                              const struct err *e);
/* A call whose body is collected, at most max_bytes (then ERR_LIMIT). spec->events and ctx are not used. */
struct http_call *http_fetch(struct http_client *c, const struct http_call_spec *spec,
                             size_t max_bytes, http_fetch_fn done, void *ctx);

#endif
