/* pod_log: the log of a container from a file: of the system's own parts, and for tests of `kubectl logs` and its like.
 *
 * Files:    NAMESPACE_POD_UID/CONTAINER/current.log and previous.log, below one directory, in the form that container
 *           runtimes have: "2026-11-16T09:30:00.123456789Z stdout F a line". Whoever tests writes them.
 * Owns:     the open file. One that is followed is looked at until it is removed.
 * Threads:  the loop's. It reads there, which a server for others must not.
 */
#ifndef SILICA_CLI_POD_LOG_H
#define SILICA_CLI_POD_LOG_H

#include "podstream/backend.h"

#include "ev/loop.h"

/* The three of pod_backend_ops. */
int pod_log_open(struct ev_loop *loop, int dir_fd, const struct pod_request *r,
                 const struct pod_log_events *events, void *ctx, struct pod_log **ret,
                 struct err *e);
/* The same of a file in that form that is open already; takes it on success. */
int pod_log_start(struct ev_loop *loop, int fd, const struct pod_request *r,
                  const struct pod_log_events *events, void *ctx, struct pod_log **ret,
                  struct err *e);
void pod_log_pause(struct pod_log *l, bool is_paused);
void pod_log_leave(struct pod_log *l);

#endif
