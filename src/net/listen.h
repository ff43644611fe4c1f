/* listen: a socket that accepts.
 *
 * Owns:     its descriptor. Out of descriptors it waits and goes on; it never closes itself.
 * Threads:  the loop's.
 */
#ifndef SILICA_NET_LISTEN_H
#define SILICA_NET_LISTEN_H

#include "ev/loop.h"
#include "net/addr.h"

struct net_listener;

/* Takes fd: non-blocking, close-on-exec, TCP_NODELAY set where it applies. */
typedef void (*net_accept_fn)(void *ctx, int fd, const struct net_addr *peer);

int net_listen(struct ev_loop *loop, const struct net_addr *at, net_accept_fn fn, void *ctx,
               struct net_listener **ret, struct err *e);
/* The socket alone, for another process to accept from; the caller's. */
int net_listen_socket(const struct net_addr *at, int *ret_fd, struct err *e);
/* The same, one of several at that address: the kernel deals connections out among them. */
int net_listen_socket_shared(const struct net_addr *at, int *ret_fd, struct err *e);
/* As net_listen, where other processes of this user may listen too: the kernel deals connections out among them. All of
 * them must ask for it. */
int net_listen_shared(struct ev_loop *loop, const struct net_addr *at, net_accept_fn fn, void *ctx,
                      struct net_listener **ret, struct err *e);
/* The same as net_listen for a socket that listens already (inherited); takes it on success. */
int net_listen_fd(struct ev_loop *loop, int fd, net_accept_fn fn, void *ctx,
                  struct net_listener **ret, struct err *e);
/* The real address: the port is known even where 0 was asked for. */
const struct net_addr *net_listener_addr(const struct net_listener *l);
void net_listener_close(struct net_listener *l);

#endif
