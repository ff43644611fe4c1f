/* io: readiness of one descriptor.
 *
 * Owns:     what epoll points at, never the descriptor. ev_io_close takes the descriptor out of epoll at
 *           once, before the owner closes it: a sibling between vfork and exec may still hold the description, and
 *           epoll would go on reporting it. The embedding object may be freed right after ev_io_close.
 * Threads:  the loop's.
 */
#ifndef SILICA_EV_IO_H
#define SILICA_EV_IO_H

#include "ev/loop.h"

/* EV_EDGE beside the others: each is reported when it comes to be so, not for as long as it is. What is reported must be used
 * up: until EAGAIN, a read of less than was asked for, or a change of what is wanted. EV_END is reported only: the peer will send
 * no more, and its end stands behind the last byte that can be read. */
enum ev_io_events { EV_READ = 1, EV_WRITE = 2, EV_EDGE = 4, EV_END = 8 };

/* `ready` has the bits that are ready; an error or hang-up shows as all: the next read or write tells. */
typedef void (*ev_io_fn)(void *ctx, unsigned ready);

struct ev_io {
    struct ev_poll *poll; /* NULL while closed */
};

/* The descriptor becomes non-blocking. Nothing is reported before ev_io_want. */
int ev_io_open(struct ev_io *io, struct ev_loop *loop, int fd, ev_io_fn fn, void *ctx,
               struct err *e);
/* The same for a descriptor that others share, such as our standard streams: its mode is left alone, so read or write
 * only what cannot block after it was ready. ERR_UNSUPPORTED: it cannot be waited for, as with files: it is always
 * ready. */
int ev_io_open_shared(struct ev_io *io, struct ev_loop *loop, int fd, ev_io_fn fn, void *ctx,
                      struct err *e);
/* What to report from now on; 0 for nothing. Level-triggered, but for EV_EDGE. */
void ev_io_want(struct ev_io *io, unsigned events);
unsigned ev_io_wanted(const struct ev_io *io);
bool ev_io_is_open(const struct ev_io *io);
void ev_io_close(struct ev_io *io);

/* What epoll points at; for loop.c. Outlives its ev_io until the events of the turn are through. */
struct ev_poll {
    struct ev_poll *next; /* among the closed */
    struct ev_loop *loop;
    ev_io_fn fn;
    void *ctx;
    int fd;
    unsigned wanted;
    bool is_closed;
};
void ev_poll_ready(struct ev_poll *p, uint32_t epoll_events);

#endif
