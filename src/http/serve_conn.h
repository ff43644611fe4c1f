/* serve_conn: what the files of the server share; nobody else includes it.
 *
 * A connection starts unknown, and becomes HTTP/1.1 or HTTP/2 with its first bytes. `struct http_carrier_ops` is what
 * an exchange asks of whichever it became.
 */
#ifndef SILICA_HTTP_SERVE_CONN_H
#define SILICA_HTTP_SERVE_CONN_H

#include "ev/timer.h"
#include "http/connection_limit.h"
#include "http/h2.h"
#include "http/http1.h"
#include "http/serve.h"

enum http_conn_kind { HTTP_CONN_NEW, HTTP_CONN_H1, HTTP_CONN_H2 };

struct http_conn {
    struct http_conn *next, **at; /* in the server's list */
    struct http_server *server;
    struct connection_slot slot;
    struct conn *conn;
    enum http_conn_kind kind;
    struct net_addr peer;
    struct http_owner *owner; /* or NULL */
    /* What happens when, unless something else happens first. The timer may stand earlier: it looks at due_ms when it
     * wakes, so that a deadline which moves with every request costs two stores. */
    struct ev_timer timer;
    uint64_t due_ms; /* UINT64_MAX for no deadline */
    ev_fn when_due;
    bool is_head_timed; /* HTTP/1.1: the deadline is the head's */
    uint64_t idle_ms;   /* HTTP/1.1: since when it waits for a request */
    bool is_finished;   /* conn_finish or conn_close was called */
    bool has_peer_eof;
    bool is_given;  /* to on_stranger */
    uint64_t moved; /* bytes in and out at the last look: no change is a standstill */
    uint64_t received;
    /* HTTP/1.1 */
    struct http1 h1;
    struct buf pending;        /* bytes read while they could not be used */
    struct http_exchange *one; /* the request under way */
    bool is_feeding;
    struct ev_task resume;
    http_switch_fn switched; /* another protocol takes over; NULL otherwise */
    void *switched_ctx;
    struct ev_task hand_over;
    /* HTTP/2 */
    struct h2 *h2;
    struct http_exchange *many;
    struct ev_task flush;
    uint64_t active_ms; /* when the peer last sent something, or an answer ended */
};

struct http_carrier_ops {
    void (*continue_100)(struct http_exchange *x);
    void (*body_paused)(struct http_exchange *x); /* is_paused, is_eof_gone or the reader changed */
    void (*body_used)(struct http_exchange *x, size_t n); /* delivered */
    void (*head)(struct http_exchange *x); /* x->answer is complete, but for the stamp */
    void (*whole)(struct http_exchange *x, struct span body);
    void (*write)(struct http_exchange *x, struct span bytes);
    void (*file)(struct http_exchange *x, int file_fd, uint64_t offset, uint64_t n);
    bool (*is_full)(const struct http_exchange *x);
    void (*end)(struct http_exchange *x, const struct http_head *trailers);
    void (*abort)(struct http_exchange *x);
    void (*switch_to)(struct http_exchange *x, http_switch_fn done, void *ctx); /* NULL: cannot */
};

enum http_body_state { HTTP_BODY_COMING, HTTP_BODY_ENDED, HTTP_BODY_FAILED };

struct http_exchange {
    struct http_exchange *next, **at; /* of its HTTP/2 connection */
    const struct http_carrier_ops *ops;
    struct ev_loop *loop;
    struct http_conn *hc;
    const struct http_head *req;
    uint64_t id;
    struct span path, query;
    uint64_t body_length;
    /* body */
    enum http_body_state body;
    const struct http_body_events *reader;
    void *reader_ctx;
    bool is_paused, is_end_told, may_rest;
    bool is_too_large; /* to be told to the collector */
    bool has_continued;
    struct buf
        stash; /* HTTP/2: came before anybody read, or while paused; bounded by the stream's window */
    struct err *body_err;
    uint64_t discarded; /* came after the answer */
    struct ev_task deliver;
    struct buf collected;
    http_collect_fn collect;
    void *collect_ctx;
    /* answer */
    struct http_head answer;
    bool is_eof_gone; /* the handler does not want to go on without a reader */
    bool has_begun, is_over, is_head_method, is_chunked, keep_alive;
    uint64_t length; /* to announce; UINT64_MAX for none */
    uint64_t left;   /* of it */
    ev_fn on_gone, on_drain;
    void *gone_ctx, *drain_ctx;
    /* HTTP/2 */
    struct h2_stream *stream;
    struct http_file_pump *file;
    uint64_t in_bytes, out_bytes; /* out_bytes: given to the stream */
    uint64_t moved;               /* as the connection's */
};

/* serve.c */
const struct http_server_config *http_server_config(const struct http_server *s);
struct ev_loop *http_server_loop(const struct http_server *s);
const struct http1_limits *http_server_h1_limits(const struct http_server *s);
struct span http_server_date(struct http_server *s);
/* Memory for the head of an answer: what the last one left, where it did. */
void http_server_lend_head(struct http_server *s, struct http_head *empty);
void http_server_keep_head(struct http_server *s, struct http_head *done);
bool http_server_is_draining(const struct http_server *s);
void http_conn_set_deadline(struct http_conn *hc, uint64_t ms, ev_fn fn);
void http_conn_clear_deadline(struct http_conn *hc);
bool http_conn_has_deadline(const struct http_conn *hc);
/* Out of the server, which counts it no more; freed in a later turn. Its conn is gone or somebody else's. */
void http_conn_forget(struct http_conn *hc);
/* An ev_fn: gives its connection to hc->switched. */
void http_conn_hand_over(void *hc);
/* Answers an error that no handler will, and closes. HTTP/1.1 only. */
void http_conn_refuse(struct http_conn *hc, int status, const char *message);

/* exchange.c */
struct http_exchange *http_exchange_new(struct http_conn *hc, const struct http_carrier_ops *ops,
                                        const struct http_head *req);
void http_exchange_start(struct http_exchange *x); /* to the handler */
void http_exchange_body(struct http_exchange *x, struct span bytes);
void http_exchange_body_end(struct http_exchange *x, const struct err *e);
bool http_exchange_takes_body(const struct http_exchange *x);
void http_exchange_gone(struct http_exchange *x); /* tells the handler if it is still there */
void http_exchange_free(void *x);
/* The fields every answer has: date, server, content-length. Those the handler set itself stand. */
typedef int (*http_stamp_fn)(void *ctx, struct span name, struct span value, struct err *e);
int http_exchange_stamp(struct http_exchange *x, http_stamp_fn add, void *ctx, struct err *e);

/* {"detail":"..."} */
void http_write_detail(struct buf *body, const char *text);

/* serve_h1.c */
void http_h1_open(struct http_conn *hc);
void http_h1_read(struct http_conn *hc, struct span in);
void http_h1_eof(struct http_conn *hc);
void http_h1_drain(struct http_conn *hc); /* the connection can take more */
void http_h1_close(struct http_conn *hc); /* the connection is gone */
void http_h1_shutdown(struct http_conn *hc);

/* serve_h2.c */
void http_h2_open(struct http_conn *hc);
void http_h2_read(struct http_conn *hc, struct span in);
void http_h2_drain(struct http_conn *hc);
void http_h2_close(struct http_conn *hc);
void http_h2_shutdown(struct http_conn *hc);

#endif
