/* streams: exec, attach, port-forward and logs of our Pods, as podstream wants them: commands go through PID 1 of a
 * sandbox, connections are made in its network, logs are what its keeper wrote down.
 *
 * Owns:     the socket, its HTTP server, and what runs for the sessions on it.
 * Trust:    who may come was decided by the API server; the socket is its owner's alone, and who connects must be that
 *           account.
 * Used by:  node.c.
 * Threads:  the loop's; files are read, and sandboxes reached, by threads.
 */
#ifndef SILICA_NODE_STREAMS_H
#define SILICA_NODE_STREAMS_H

#include "podstream/backend.h"

struct node;
struct streams;

/* Takes listen_fd, also on failure. */
int streams_open(struct node *n, int listen_fd, struct streams **ret, struct err *e);
/* Ends all sessions. Turns the loop: not for callbacks. Tolerates NULL. */
void streams_close(struct streams *s);

/* The directory of a sandbox of the engine. */
struct record;
void streams_box_dir(const struct record *r, size_t at, uint32_t attempt, char *ret, size_t size);

/* What a process is to its client: a command (exec.c), or the main process (attach.c). Embedded first; as backend.h has
 * them. */
struct pod_process {
    const struct process_ops *ops;
};
struct process_ops {
    int (*write)(struct pod_process *p, struct span bytes, struct err *e);
    bool (*is_full)(const struct pod_process *p);
    void (*close_stdin)(struct pod_process *p);
    void (*resize)(struct pod_process *p, uint16_t cols, uint16_t rows);
    void (*pause)(struct pod_process *p, bool is_paused);
    void (*leave)(struct pod_process *p);
};
struct ev_pool;
int exec_start(struct node *n, const struct pod_request *r, const struct pod_process_events *events,
               void *ctx, struct pod_process **ret, struct err *e);
/* files: threads that read. */
int attach_start(struct node *n, struct ev_pool *files, const struct pod_request *r,
                 const struct pod_process_events *events, void *ctx, struct pod_process **ret,
                 struct err *e);

/* log.c: the verbs of a log. */
int log_open_of(struct node *n, struct ev_pool *files, const struct pod_request *r,
                const struct pod_log_events *events, void *ctx, struct pod_log **ret,
                struct err *e);
void log_pause(struct pod_log *l, bool is_paused);
void log_leave(struct pod_log *l);

#endif
