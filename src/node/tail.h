/* tail: the log of a sandbox's command as its keeper writes it, in two files, the older one first; cut into entries, and
 * followed until the command has ended, if that is wanted. Files are read by threads.
 *
 * Owns:     the open file, a piece of it, the reader.
 * Used by:  log.c, attach.c.
 * Threads:  the loop's.
 * Events:   never inside a verb. Entries, after each piece of them on_piece, then on_end exactly once and last, unless
 *           tail_leave was called: then nothing more comes.
 */
#ifndef SILICA_NODE_TAIL_H
#define SILICA_NODE_TAIL_H

#include "ev/worker.h"
#include "sandbox/logs.h"

struct tail;

struct tail_events {
    /* The first one: lines that come before the last `lines` ones, which are passed on all the same. */
    void (*on_begin)(void *ctx, uint64_t skip);
    logs_fn on_entry;
    /* What was read at once has been passed on. False: no more is wanted, and on_end follows. */
    bool (*on_piece)(void *ctx);
    /* e: what is missing could not be read. */
    void (*on_end)(void *ctx, const struct err *e);
};

struct tail_spec {
    struct ev_loop *loop;
    struct ev_pool *files;
    const char *dir;  /* of the sandbox; copied */
    bool is_followed; /* until its command has ended, or all of it is gone */
    bool is_from_end; /* only what comes from now on */
    uint64_t lines;   /* for on_begin's skip; UINT64_MAX: all */
    const struct tail_events *events;
    void *ctx;
};

struct tail *tail_start(const struct tail_spec *spec);
void tail_pause(struct tail *t, bool is_paused);
void tail_leave(struct tail *t);

#endif
