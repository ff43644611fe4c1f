/* loop: the event loop of a process, on epoll.
 *
 * Owns:     the queue of posted tasks, the timers' heap, the objects waiting to be freed, one read buffer.
 * Rules:    1. a callback never runs inside the call that registered it. 2. every started operation completes
 *           exactly once. 3. nobody frees an object that may be on the stack: ev_free_later. 4. nothing blocks.
 * Threads:  everything belongs to the thread that runs the loop, but ev_post_remote.
 */
#ifndef SILICA_EV_LOOP_H
#define SILICA_EV_LOOP_H

#include "base/buf.h"

struct ev_loop;
struct ev_timer;
struct ev_poll;

typedef void (*ev_fn)(void *ctx);

/* A call to be made in a later turn. Embedded by its owner; queued at most once at a time. */
struct ev_task {
    struct ev_task *next;
    ev_fn fn;
    void *ctx;
    bool is_queued;
    bool is_canceled;
    bool is_aside; /* ev_has_posted does not see it */
};

int ev_loop_new(struct ev_loop **ret, struct err *e);
/* Runs what was posted or is to be freed, then frees the loop. All io, timers and pools must be closed. */
void ev_loop_free(struct ev_loop *loop);
void ev_loop_run(struct ev_loop *loop); /* until ev_loop_stop */
void ev_loop_stop(struct ev_loop *loop);
/* Runs one turn without waiting for events; for tests that drive a loop themselves. */
void ev_loop_turn(struct ev_loop *loop);

/* The loop's idea of now, read once per turn. */
uint64_t ev_now_ms(const struct ev_loop *loop);

/* Calls fn(ctx) in a later turn. */
void ev_post(struct ev_loop *loop, struct ev_task *task, ev_fn fn, void *ctx);
/* The same for long work that goes on turn by turn, a little each time. */
void ev_post_aside(struct ev_loop *loop, struct ev_task *task, ev_fn fn, void *ctx);
/* From within a posted call: others wait for their turn, so what has begun may not be over. Long work is none of it. */
bool ev_has_posted(const struct ev_loop *loop);
/* Takes back a posted task; harmless when it is not queued. */
void ev_post_cancel(struct ev_task *task);
/* The same from any thread. Cannot be taken back. */
void ev_post_remote(struct ev_loop *loop, struct ev_task *task, ev_fn fn, void *ctx);
/* Frees obj with free_fn once nothing of it can be on the stack. */
void ev_free_later(struct ev_loop *loop, void *obj, ev_fn free_fn);

/* Zeroed memory for objects that come and go with every request, beyond the allocator's quick bins when many end at once.
 * Goes back with the same size; some is kept for the next. */
void *ev_block_new(struct ev_loop *loop, size_t size);
void ev_block_free(struct ev_loop *loop, void *block, size_t size);

/* Memory for a text that leaves as soon as it is written, such as a head; the next one then has it. */
void ev_text_take(struct ev_loop *loop, struct buf *empty);
void ev_text_give(struct ev_loop *loop, struct buf *done);

/* EV_SCRATCH_BYTES to read into; valid until the callback that uses it returns. */
uint8_t *ev_scratch(struct ev_loop *loop);

/* For the other files of this room. */
int ev_loop_epoll(const struct ev_loop *loop);
void ev_loop_bury_poll(struct ev_loop *loop,
                       struct ev_poll *p); /* freed after this turn's events */
struct ev_timers *ev_loop_timers(struct ev_loop *loop);

#endif
