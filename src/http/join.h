/* join: another server agreed to switch protocols. Its 101 is passed on to the client who asked, and from then on bytes go
 * both ways, unread.
 *
 * Owns:     the other server's connection, then both. Ends the exchange.
 * Used by:  http/relay, the router.
 * Threads:  the loop's.
 */
#ifndef SILICA_HTTP_JOIN_H
#define SILICA_HTTP_JOIN_H

#include "http/serve.h"

struct http_join;

/* head, back and rest are what on_upgrade of a call gave; x is an exchange that asks to switch (http_upgrade). Takes both.
 * done(ctx) exactly once, in a later turn, when both connections are gone; the join is freed after it. NULL and
 * ERR_PROTOCOL: the head names no protocol; x and back are still the caller's. */
struct http_join *http_join_start(struct http_exchange *x, const struct http_head *head,
                                  struct conn *back, struct span rest, ev_fn done, void *ctx,
                                  struct err *e);
/* What a WebSocket may; each 0 for no limit. */
struct http_join_limits {
    uint64_t idle_ms;     /* without a whole message, either way: 1001, "idle timeout exceeded" */
    uint64_t lifetime_ms; /* 1001, "max lifetime exceeded" */
    uint64_t message_max; /* bytes of a message, as they are sent: 1009, "message too big" */
};
/* Right behind the start. At a limit both sides are told with a close frame, where one may stand, and then end. */
void http_join_limit(struct http_join *j, const struct http_join_limits *limits);
/* At once; done follows. */
void http_join_close(struct http_join *j);

#endif
