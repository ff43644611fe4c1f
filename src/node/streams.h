/* streams: exec, attach, port-forward and logs of our Pods, as podstream wants them: commands go through PID 1 of a
 * sandbox, connections are made in its network, logs are what its keeper wrote down.
 *
 * Owns:     the socket, its HTTP server, and what runs for the sessions on it.
 * Trust:    who may come was decided by the API server; the socket is its owner's alone, and who connects must be that
 *           account or root.
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

/* exec.c: the verbs of a process. */
int exec_start(struct node *n, const struct pod_request *r, const struct pod_process_events *events,
               void *ctx, struct pod_process **ret, struct err *e);
void exec_write(struct pod_process *p, struct span bytes);
bool exec_is_full(const struct pod_process *p);
void exec_close_stdin(struct pod_process *p);
void exec_resize(struct pod_process *p, uint16_t cols, uint16_t rows);
void exec_pause(struct pod_process *p, bool is_paused);
void exec_leave(struct pod_process *p);

/* log.c: the verbs of a log. files: threads that read. */
struct ev_pool;
int log_open_of(struct node *n, struct ev_pool *files, const struct pod_request *r,
                const struct pod_log_events *events, void *ctx, struct pod_log **ret,
                struct err *e);
void log_pause(struct pod_log *l, bool is_paused);
void log_leave(struct pod_log *l);

#endif
