/* pod_server: the pod side on a unix socket that listens already: streams and logs, for a backend.
 *
 * Owns:     the listener, its connections and the sessions on them. Not the backend.
 * Used by:  the node; the CLI for Pods that stand for the system's parts, and in tests. The API server, which comes here,
 *           has decided who may; a client of another account is not served.
 * Threads:  the loop's.
 */
#ifndef SILICA_PODSTREAM_POD_SERVER_H
#define SILICA_PODSTREAM_POD_SERVER_H

#include "podstream/backend.h"

struct ev_loop;
struct pod_server;

/* Takes listen_fd, also where it fails. */
int pod_server_open(struct ev_loop *loop, struct pod_backend *backend, int listen_fd,
                    struct pod_server **ret, struct err *e);
/* Ends all sessions. Turns the loop until that is done: not for callbacks. Tolerates NULL. */
void pod_server_close(struct pod_server *s);

#endif
