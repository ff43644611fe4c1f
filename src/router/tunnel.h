/* tunnel: connections that come with a word on who is behind them: port-forwards through the API server, which knows.
 *
 *     listener (a unix socket)  ->  4 bytes of length, then caller.h's text  ->  HTTP, as that caller
 *
 * Owns:     its listener, and connections until they have said who they are; then they are the server's.
 * Trust:    only processes of our own user (and root) may connect, by the kernel's word: who calls is believed them. So it is
 *           never TCP, where others could.
 * Bounds:   a text has CALLER_MAX_BYTES, a moment to arrive, and few are waited for at once.
 * Used by:  the router. Threads: the loop's.
 */
#ifndef SILICA_ROUTER_TUNNEL_H
#define SILICA_ROUTER_TUNNEL_H

#include "http/serve.h"

struct tunnel;

/* Takes listen_fd, on success. `to` gets the connections: http_owner() of a request is its struct caller's base. */
int tunnel_open(struct ev_loop *loop, int listen_fd, struct http_server *to, struct tunnel **ret,
                struct err *e);
/* Before the server goes. Tolerates NULL. */
void tunnel_close(struct tunnel *t);

#endif
