/* rpc: gRPC calls to a sandbox's PID 1 on one connected stream, HTTP/2 inside.
 *
 * Owns:     the connection, the HTTP/2 session, the calls under way.
 * Used by:  sandbox.c.
 * Threads:  the loop's.
 * Life:     a call lives until its on_done returned, or until rpc_call_drop. No event runs inside a verb.
 * Hostile:  messages and heads have ceilings (limits.h), texts that become errors hold no control characters.
 */
#ifndef SILICA_SANDBOX_RPC_H
#define SILICA_SANDBOX_RPC_H

#include "ev/loop.h"

struct rpc;
struct rpc_call;

struct rpc_events {
    /* A message, borrowed for the call. NULL drops them. */
    void (*on_message)(void *ctx, struct span msg);
    /* Last. e NULL: the status was OK. ERR_CLOSED: the connection went. */
    void (*on_done)(void *ctx, const struct err *e);
};

/* Takes fd, also on failure. gone(ctx), which may be NULL, runs once when the peer has gone, after the calls were told;
 * not after rpc_close. */
int rpc_open(struct ev_loop *loop, int fd, ev_fn gone, void *ctx, struct rpc **ret, struct err *e);
/* In a later turn: calls that are still open get ERR_CANCELED, then the connection is closed. Tolerates NULL. */
void rpc_close(struct rpc *r);

/* Sends one message and ends our side; answers follow. `framed` has its gRPC prefix already, and is taken. -1:
 * ERR_CLOSED, or ERR_BUSY when SANDBOX_CALLS_MAX wait for answers. */
int rpc_call(struct rpc *r, const char *path, struct buf *framed, const struct rpc_events *events,
             void *ctx, struct rpc_call **ret, struct err *e);
/* Back-pressure: the peer gets no more credit. What it had, SANDBOX_WINDOW_BYTES at most, may still come. */
void rpc_call_pause(struct rpc_call *c, bool is_paused);
/* The peer is told to stop; no event follows. */
void rpc_call_drop(struct rpc_call *c);

/* Copies a text of PID 1 as it may be shown on a terminal: what is no printable UTF-8 becomes '?'. */
void rpc_clean_text(struct span text, struct buf *out);

#endif
