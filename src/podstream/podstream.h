/* podstream: the pod side of Kubernetes' streams: exec, attach and port-forward, over WebSocket and SPDY/3.1, and logs.
 *
 *     ps = podstream_new(loop, backend);
 *     ... in on_request of an http_server with a head_max_bytes of 1 MiB and more:
 *     if (podstream_serve(ps, x))
 *         return;
 *
 * Owns:     the sessions: connections that were upgraded, and what runs at their other end. Not the backend.
 * Used by:  the node; the test server. Whoever may come here was decided before.
 * Threads:  the loop's.
 * Speaks:   exec, attach: WebSocket v5, v4 and plain `channel.k8s.io` and their base64 forms; SPDY v4 to v1.
 *           portforward: SPDY, SPDY in a WebSocket (`SPDY/3.1+portforward.k8s.io`), WebSocket channels with `ports`.
 */
#ifndef SILICA_PODSTREAM_PODSTREAM_H
#define SILICA_PODSTREAM_PODSTREAM_H

#include "http/serve.h"
#include "podstream/backend.h"

struct podstream;

struct podstream *podstream_new(struct ev_loop *loop, struct pod_backend *backend);
/* Ends all sessions. Turns the loop until that is done: not for callbacks. */
void podstream_free(struct podstream *ps);
/* False when the path is not one of ours, and then x is untouched. Else x is answered: it was switched, or refused with a
 * Status. */
bool podstream_serve(struct podstream *ps, struct http_exchange *x);
size_t podstream_sessions(const struct podstream *ps);

#endif
