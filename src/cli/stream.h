/* stream: our standard streams on the loop. They are shared with whoever started us, so their mode stays as it is:
 * each read and write happens when the stream is ready, and moves no more than cannot block then.
 *
 * Owns:     queued output, the registrations; never the descriptors.
 * Threads:  the loop's.
 */
#ifndef SILICA_CLI_STREAM_H
#define SILICA_CLI_STREAM_H

#include "ev/io.h"

struct stream_out {
    struct ev_loop *loop;
    int fd;
    bool is_always_ready; /* a file */
    bool is_broken;       /* nobody reads it any more */
    struct ev_io io;
    struct buf queue;
    ev_fn
        on_change; /* the queue became empty, or the stream broke; never inside stream_out_write */
    void *ctx;
    struct ev_task task;
};

/* max_bytes: ceiling of the queue; what passes it is our bug, and aborts. */
int stream_out_open(struct stream_out *o, struct ev_loop *loop, int fd, size_t max_bytes,
                    ev_fn on_change, void *ctx, struct err *e);
void stream_out_write(struct stream_out *o, struct span bytes);
bool stream_out_is_empty(const struct stream_out *o);
void stream_out_close(struct stream_out *o);

struct stream_in {
    struct ev_loop *loop;
    int fd;
    bool is_always_ready;
    bool is_wanted;
    struct ev_io io;
    struct ev_task task;
    void (*on_read)(void *ctx,
                    struct span bytes); /* an empty span: the end, or it cannot be read */
    void *ctx;
};

/* Nothing is read before stream_in_want. */
int stream_in_open(struct stream_in *i, struct ev_loop *loop, int fd,
                   void (*on_read)(void *ctx, struct span bytes), void *ctx, struct err *e);
void stream_in_want(struct stream_in *i, bool is_wanted);
void stream_in_close(struct stream_in *i);

#endif
