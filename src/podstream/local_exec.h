/* local_exec: a backend without a pod: commands run here, as we are, and ports are ours. For tests of the streams: real
 * processes, pipes, terminals and sockets, and nothing that keeps them apart.
 *
 * Owns:     the processes it started; all of them die with it.
 * Used by:  the test server, and `silica pod-backend` behind `silica apiserver --pod-backend=local-exec`.
 * Threads:  the loop's. It waits for exec, which a server for others must not.
 */
#ifndef SILICA_PODSTREAM_LOCAL_EXEC_H
#define SILICA_PODSTREAM_LOCAL_EXEC_H

#include "ev/child.h"
#include "podstream/backend.h"

/* There is one pod of this name in every namespace, with one container, `main`; NULL: every pod there is, with all its
 * containers. What attach runs, anew each time, stands for its main process; main_argv is borrowed. */
struct pod_backend *local_exec_new(struct ev_loop *loop, struct ev_children *kids, const char *pod,
                                   char *const *main_argv);
/* Kills what still runs. Turns the loop until it is gone: not for callbacks. */
void local_exec_free(struct pod_backend *b);

#endif
