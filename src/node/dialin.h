/* dialin: a connection to a port inside a sandbox: a socket is made in its network, by the engine, and connected there.
 *
 * Owns:     itself, until done was called.
 * Used by:  streams (port-forward), ready, ports.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_DIALIN_H
#define SILICA_NODE_DIALIN_H

#include "node/crew.h"

struct dialin;

/* fd: connected, the callee's; or -1 and e. ERR_UNAVAILABLE: nobody listens there. */
typedef void (*dialin_fn)(void *ctx, int fd, const struct err *e);

/* done comes exactly once, in a later turn. */
struct dialin *dialin_start(struct ev_loop *loop, struct crew *crew, const char *box, uint16_t port,
                            dialin_fn done, void *ctx);
/* done is not called any more. */
void dialin_cancel(struct dialin *d);

#endif
