/* session: what every stream session of a podstream begins with: its place in the list of the living, and its end.
 *
 * Owns:     its place. Embedded, as the first member, by remote_ws, remote_spdy, forward_ws, forward_spdy, log_session.
 */
#ifndef SILICA_PODSTREAM_SESSION_H
#define SILICA_PODSTREAM_SESSION_H

#include "http/serve.h"
#include "podstream/backend.h"

struct podstream;

struct session {
    struct session *next, **at;
    struct podstream *ps;
    struct ev_loop *loop;
    struct pod_backend *backend;
    struct pod_request *req; /* the session's; freed with it */
    /* Ends it at once: the server goes. The session leaves the list in a later turn. */
    void (*close)(struct session *s);
};

/* How a session is spoken. */
enum session_protocol {
    SESSION_CHANNELS_TEXT,        /* channel.k8s.io: failures are plain text */
    SESSION_CHANNELS_TEXT_BASE64, /* base64.channel.k8s.io */
    SESSION_CHANNELS_V4,          /* failures are Status objects */
    SESSION_CHANNELS_V4_BASE64,
    SESSION_CHANNELS_V5, /* and input can be ended */
    SESSION_SPDY_V1,     /* plain text, no resize; v2 differs in nothing here */
    SESSION_SPDY_V3,     /* resize */
    SESSION_SPDY_V4,     /* Status objects */
    SESSION_FORWARD_SPDY,
    SESSION_FORWARD_TUNNEL, /* the same inside a WebSocket */
    SESSION_FORWARD_CHANNELS,
    SESSION_FORWARD_CHANNELS_BASE64,
};

/* What a request has become when its connection changes hands. */
struct session_start {
    struct podstream *ps;
    struct pod_request *req;
    enum session_protocol protocol;
};

/* Puts it on the list; takes start->req. */
void session_init(struct session *s, const struct session_start *start,
                  void (*close)(struct session *s));
/* Takes it off; frees the request. The memory is the caller's to free. */
void session_done(struct session *s);

/* Each takes conn and the request; rest is borrowed. */
void remote_ws_open(const struct session_start *start, struct conn *conn, struct span rest);
void remote_spdy_open(const struct session_start *start, struct conn *conn, struct span rest);
void forward_ws_open(const struct session_start *start, struct conn *conn, struct span rest);
void forward_spdy_open(const struct session_start *start, struct conn *conn, struct span rest);
/* Takes the request, and x on success. -1: the backend has no such log; x is to be refused. */
int log_session_open(const struct session_start *start, struct http_exchange *x, struct err *e);

#endif
