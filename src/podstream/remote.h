/* remote: a command, or a main process, at the other end of a carrier that has channels for its streams.
 *
 * Owns:     the process, from start to its end; what waits to be given to either side.
 * Used by:  remote_ws, remote_spdy: the carriers, which embed it.
 * Threads:  the loop's.
 * Life:     remote_init, remote_start, ..., then `finish` of the ops exactly once, unless remote_done came before.
 */
#ifndef SILICA_PODSTREAM_REMOTE_H
#define SILICA_PODSTREAM_REMOTE_H

#include "ev/timer.h"
#include "podstream/session.h"

struct remote;

struct remote_ops {
    void (*output)(struct remote *r, enum pod_output which, struct span piece);
    /* The carrier is full: output stops until remote_drained. */
    bool (*is_full)(struct remote *r);
    /* Input was full (remote_is_full) and is not any more. */
    void (*resume)(struct remote *r);
    /* Over. The status goes on the error channel; it is empty where plain text says nothing of success. */
    void (*finish)(struct remote *r, struct span status);
};

struct remote {
    const struct remote_ops *ops;
    struct session *session;
    struct pod_process *process; /* NULL before its start and after its end */
    bool has_status_object;      /* else failures are plain text */
    bool keeps_characters; /* clients decode piece by piece: no piece ends within a character */
    bool has_started, is_over, is_paused, is_stdin_ended, was_full;
    struct pod_resize resize;
    uint16_t cols, rows; /* came before the start */
    struct buf early;    /* input that did, too */
    struct cut {
        uint8_t bytes[3];
        size_t n;
    } cuts[2]; /* the beginning of a character, by enum pod_output */
    struct ev_timer cut_timer;
};

void remote_init(struct remote *r, struct session *s, const struct remote_ops *ops);
void remote_start(struct remote *r);
void remote_stdin(struct remote *r, struct span bytes);
void remote_stdin_end(struct remote *r);
/* Bytes of the resize channel, in any pieces. */
void remote_resize(struct remote *r, struct span bytes);
bool remote_is_full(const struct remote *r);
void remote_drained(struct remote *r);
/* The carrier goes: a process that still runs is left. */
void remote_done(struct remote *r);

#endif
