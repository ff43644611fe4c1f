/* backend: what a pod can do for a stream: run a command, give its main process, take a connection to a port, show what it
 * wrote.
 *
 * Owns:     the backend owns processes and dials; this room owns the connections and what travels on them.
 * Used by:  podstream; implemented by local_exec (tests) and by the node.
 * Threads:  the loop's.
 * Events:   never inside a verb. Of a process: output, drains, then on_exit exactly once and last, unless `leave` was
 *           called: then nothing more comes. Of a log: output, then on_end, in the same way.
 */
#ifndef SILICA_PODSTREAM_BACKEND_H
#define SILICA_PODSTREAM_BACKEND_H

#include "podstream/request.h"

struct pod_process;
struct pod_dial;
struct pod_log;

enum pod_output { POD_STDOUT, POD_STDERR };

struct pod_process_events {
    /* A piece of output, borrowed for the call. On a terminal all of it is POD_STDOUT. */
    void (*on_output)(void *ctx, enum pod_output which, struct span piece);
    /* Input was full and can take more. */
    void (*on_drain)(void *ctx);
    /* The process has ended, and all of its own output was given; children that hold its pipes are not waited for.
     * e NULL: with this code, 128 + N when signal N ended it. Else it could not be started (ERR_NOT_FOUND: no such
     * program, ERR_DENIED: it may not be run) or the pod is gone. */
    void (*on_exit)(void *ctx, int code, const struct err *e);
};

struct pod_log_events {
    /* A piece as the client shall see it, borrowed for the call. */
    void (*on_output)(void *ctx, struct span piece);
    /* All of it was given, or as much as was wanted. e: what is missing could not be read. */
    void (*on_end)(void *ctx, const struct err *e);
};

/* fd: connected, the callee's; or -1 and e. */
typedef void (*pod_dial_fn)(void *ctx, int fd, const struct err *e);

struct pod_backend {
    const struct pod_backend_ops *ops;
};
struct pod_backend_ops {
    /* May this request be served? -1: *e becomes the HTTP answer (ERR_NOT_FOUND: no such pod or container). */
    int (*admit)(struct pod_backend *b, const struct pod_request *r, struct err *e);
    /* Starts the command (POD_EXEC) or takes the streams of the main process (POD_ATTACH). The request is borrowed for
     * the call. -1, and no event: as on_exit's e. */
    int (*start)(struct pod_backend *b, const struct pod_request *r,
                 const struct pod_process_events *events, void *ctx, struct pod_process **ret,
                 struct err *e);
    /* Input: queued. Stop at is_full until on_drain; POD_EARLY_MAX_BYTES are taken beyond that. Dropped when no process
     * reads it any more. -1: it was not taken (ERR_LIMIT), so what the process gets has a hole: the stream ends. */
    int (*write)(struct pod_process *p, struct span bytes, struct err *e);
    bool (*is_full)(const struct pod_process *p);
    void (*close_stdin)(struct pod_process *p);
    void (*resize)(struct pod_process *p, uint16_t cols, uint16_t rows);
    /* Back-pressure on output. */
    void (*pause)(struct pod_process *p, bool is_paused);
    /* The client went. Closes the streams, which ends a program that writes; one that does not runs on. */
    void (*leave)(struct pod_process *p);
    /* A connection to a port of the pod; done runs once, in a later turn. ERR_UNAVAILABLE: nobody listens (now). */
    struct pod_dial *(*dial)(struct pod_backend *b, const struct pod_request *r, uint16_t port,
                             pod_dial_fn done, void *ctx);
    /* done is not called any more. */
    void (*dial_cancel)(struct pod_dial *d);
    /* What r->container wrote, as r->log wishes (log_filter.h does most of it). -1, and no event: ERR_INVALID: there is
     * none yet, or none any more. NULL, with the two below: no logs are kept here. */
    int (*log)(struct pod_backend *b, const struct pod_request *r,
               const struct pod_log_events *events, void *ctx, struct pod_log **ret, struct err *e);
    void (*log_pause)(struct pod_log *l, bool is_paused);
    void (*log_leave)(struct pod_log *l);
};

#endif
