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
/* At once; done follows. */
void http_join_close(struct http_join *j);

#endif
