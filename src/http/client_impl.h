/* client_impl: what the files of the client share. Not for others.
 *
 * A link is one connection, from its dial to its end; it carries one call at a time (HTTP/1.1) or many (HTTP/2). The
 * engine that speaks on it is behind http_link_ops. client.c owns calls and links, client_h1.c and client_h2.c speak. A
 * site is a target with its links; calls to it find one there.
 */
#ifndef SILICA_HTTP_CLIENT_IMPL_H
#define SILICA_HTTP_CLIENT_IMPL_H

#include "ev/timer.h"
#include "http/client.h"
#include "http/http1.h"

#define HTTP_CLIENT_BUCKETS 256

enum link_state {
    LINK_DIALING,
    LINK_BUSY,    /* HTTP/1.1: with a call */
    LINK_IDLE,    /* HTTP/1.1: kept */
    LINK_MANY,    /* HTTP/2: takes calls */
    LINK_LEAVING, /* takes no more; goes when its connection has closed */
};

struct http_link;
struct h2;
struct h2_stream;

/* Whom calls are for, as http_target says it. Lives as long as a call or a link points to it. */
struct http_site {
    struct http_site **at, *next; /* in its bucket */
    struct ev_loop *loop;
    uint64_t hash;
    size_t refs;
    struct http_link *links; /* all of them */
    struct http_link *idle;  /* those in LINK_IDLE, the one used last first */
    size_t idle_count;
    char *host, *peer_name, *place; /* or NULL */
    uint16_t port;
    struct net_addr addr;
    bool has_addr;
    struct conn_filter_maker *maker;
    enum http_version version;
    char *label;     /* "host:port", for messages */
    char *authority; /* where the caller names none */
};

struct http_link_ops {
    /* Sends the head, and of the body what is there. x->link is set. */
    void (*begin)(struct http_call *x);
    void (*write)(struct http_call *x, struct span bytes);
    void (*end)(struct http_call *x);
    bool (*is_full)(const struct http_call *x);
    /* Any number that changes when bytes of the call went out; and whether some wait to. */
    uint64_t (*progress)(const struct http_call *x);
    bool (*is_sending)(const struct http_call *x);
    void (*pause)(struct http_call *x, bool is_paused);
    /* The call is over before its answer is. */
    void (*drop)(struct http_call *x);
};

struct http_link {
    struct http_link **at, *next; /* of its site */
    struct http_link **idle_at, *idle_next;
    struct http_client *client;
    struct http_site *site;
    enum link_state state;
    const struct http_link_ops *ops; /* NULL while dialing */
    struct dial *dial;
    struct http_call *line; /* calls that wait for the dial, in order */
    struct conn *conn;
    struct ev_timer idle;
    uint64_t kept_ms; /* HTTP/1.1: when it became idle; the timer may be from an earlier time */
    struct ev_task task;
    bool was_used; /* a call was answered on it before */
    /* HTTP/1.1 */
    struct http_call *call;
    struct http1 parser;
    struct http1_limits limits;
    struct buf stash;     /* came while the caller had paused */
    uint64_t sent_before; /* conn_sent() when the call began */
    unsigned interims;
    /* HTTP/2 */
    struct h2 *h2; /* NULL once the session is over */
    struct err why;
    bool is_feeding, is_pinged;
    struct ev_timer ping;
    uint64_t heard_ms, pinged_ms; /* when bytes last came; when we asked for some */
};

enum call_state {
    CALL_WAITING,  /* for a connection */
    CALL_OPEN,     /* on its link */
    CALL_ANSWERED, /* HTTP/2: complete, but the caller has paused */
    CALL_ENDING,   /* the verdict stands; told in a later turn */
    CALL_DONE,
};

struct http_call {
    struct http_call **at, *next; /* in the client's list */
    struct http_call *next_in_line;
    struct ev_loop *loop;
    struct http_client *client;
    struct http_link *link;
    enum call_state state;
    /* what was asked for */
    struct http_site *site; /* until it is over */
    struct dial_plug *plug;
    int fd;
    bool had_fd; /* another socket would not lead there: never again */
    struct http_head head;
    struct http_head *lent; /* whose memory that is; NULL: ours */
    struct buf body;        /* all of it, or what was written before there was a connection */
    struct http_head *trailers;
    uint64_t stream_left; /* of an announced length; HTTP_BODY_CHUNKED */
    bool is_streamed, is_idempotent;
    bool is_ended; /* the caller has given all */
    uint64_t connect_ms, head_ms, idle_ms;
    const struct http_call_events *events;
    void *ctx;
    /* what happened */
    bool has_bytes; /* of an answer */
    bool has_head, is_paused, is_retried, is_fresh_only, has_left;
    uint64_t seen;    /* progress() when the wait was last looked at */
    uint64_t wait_ms; /* until when; the timer may be due before, and then goes on */
    struct ev_timer wait, total;
    struct ev_task task;
    struct err *verdict; /* why it ends; NULL while it goes well */
    /* HTTP/2 */
    struct h2_stream *stream;
    struct buf stash; /* came while paused */
    struct http_head *in_trailers;
};

struct http_client {
    struct ev_loop *loop;
    struct http_client_config config;
    struct http_site *buckets[HTTP_CLIENT_BUCKETS];
    struct http_call *calls;
    size_t call_count, link_count, idle_count;
    bool is_closing;
};

/* The client goes with the last thing that points to it. */
void http_client_let_go(struct http_client *c);

/* The site of a target, new or known, with a reference for the caller. */
struct http_site *http_site_ref(struct http_client *c, const struct http_target *to);
void http_site_unref(struct http_site *s);
/* A link belongs to its site from its dial to its end, and holds a reference. */
void http_site_add(struct http_site *s, struct http_link *l);
void http_site_remove(struct http_link *l);
/* Into the list of idle ones, and out of it. */
void http_site_keep(struct http_link *l);
void http_site_use(struct http_link *l);

/* Finds a connection or makes one; from events only. */
void http_call_connect(struct http_call *x);
/* The answer is complete; from events only. */
void http_call_succeed(struct http_call *x, const struct http_head *trailers);
/* It cannot be; from events only. Detaches the call first if its link still has it. */
void http_call_fail(struct http_call *x, const struct err *e);
/* The same from anywhere, verbs too: it is told in a later turn. */
void http_call_end_soon(struct http_call *x, const struct err *e);
/* The connection went, or the stream was refused: again on a fresh one, or on_done. From events only. */
void http_call_lost(struct http_call *x, bool is_unheard, const struct err *e);
/* The last event was on_upgrade. */
void http_call_forget(struct http_call *x);
/* Starts or moves the deadline that fits what the call waits for. */
void http_call_watch(struct http_call *x);

/* HTTP/1.1: kept for the next call, or closed when enough are. */
void http_link_keep(struct http_link *l);
/* Out of the pool; freed in a later turn. Its conn is gone or somebody else's. */
void http_link_free(struct http_link *l);
/* No more calls; closes the connection. */
void http_link_close(struct http_link *l);

extern const struct http_link_ops http_link_h1;
extern const struct conn_events http_link_h1_events;
void http_link_h1_open(struct http_link *l);
void http_link_h1_done(struct http_link *l);
void http_link_h2_open(struct http_link *l);
/* No more calls; the connection goes with the last it has. */
void http_link_h2_retire(struct http_link *l);
/* An ev_fn: delivers what came while the call was paused. */
void http_call_h2_go_on(void *call);

#endif
