/* testside: one end of a connection as a test sees it: what came, what ended it, and a loop to wait in.
 *
 * Used by:  tests only.
 */
#ifndef SILICA_NET_TESTSIDE_H
#define SILICA_NET_TESTSIDE_H

#include "net/conn.h"

#define SIDE_MAX_BYTES (64 << 20)
#define SIDE_WAIT_MS   10000 /* a test that waits longer has failed */

struct side {
    struct ev_loop *loop;
    struct conn *conn; /* NULL once closed */
    struct buf in;
    bool is_eof, is_closed, is_failed; /* is_failed: closed, and err says why */
    unsigned drains, closes;
    struct err err;
    size_t stop_reading_at; /* bytes, then conn_want_read(false) once; 0 never */
    bool close_at_read;
    bool is_in_verb; /* set by the test around a verb: an event now is a bug */
};

typedef bool (*side_fn)(void *ctx);

void side_open(struct side *s, struct ev_loop *loop, int fd, struct conn_filter *filter);
/* Takes over a connection that is somebody else's until now. */
void side_adopt(struct side *s, struct conn *conn);
void side_done(struct side *s); /* after it was closed and told so */
/* Runs the loop until is_over(ctx); false when that takes longer than SIDE_WAIT_MS. */
bool side_wait(struct ev_loop *loop, side_fn is_over, void *ctx);
/* For a while, whatever happens. */
void side_idle(struct ev_loop *loop, uint64_t ms);
bool side_is_closed(void *side);
bool side_is_eof(void *side);

/* Two connected TCP sockets on loopback, non-blocking. */
void side_socket_pair(int fds[2]);
/* Open descriptors of this process: the same before a group of tests and after it, or something leaked. */
size_t side_fd_count(void);
/* n bytes that differ with their place. */
void side_fill(struct buf *b, size_t n);

#endif
