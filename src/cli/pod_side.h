/* pod_side: the pod side of `silica apiserver --pod-backend=local-exec`: a process of its own, `silica pod-backend`, started
 * again whenever it dies. All Pods are there.
 *
 * Owns:     the socket it serves, which waits while it is dead: who connects then is served by the next one; the process.
 * Used by:  cli/apiserver.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_CLI_POD_SIDE_H
#define SILICA_CLI_POD_SIDE_H

#include "apiserver/pods.h"
#include "ev/child.h"

struct pod_side;

/* -1: it is not a test that runs us. */
int pod_side_is_allowed(struct err *e);
struct pod_side *pod_side_new(struct ev_loop *loop, struct ev_children *kids,
                              const char *log_level);
/* For the API server, from the start; it leads somewhere once pod_side_start has. */
struct pods *pod_side_pods(struct pod_side *p);
/* In the data directory, which is ours by now: a socket is made there, and logs of containers are read below it. */
int pod_side_start(struct pod_side *p, const char *data, struct err *e);
/* Ends the process. Turns the loop until that is done: not for callbacks. Tolerates NULL. */
void pod_side_free(struct pod_side *p);

#endif
