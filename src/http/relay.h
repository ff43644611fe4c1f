/* relay: a request to switch protocols, passed on to another server with its answer, and then bytes both ways, unread.
 *
 * Owns:     the call, then both connections. Of the exchange as any handler: it ends with the answer.
 * Used by:  the API server for exec, attach and port-forward: whoever decides that a request may pass does not parse
 *           what it carries.
 * Threads:  the loop's.
 * Passes:   method, target and fields as they came, but for those that say who asks (authorization, cookie,
 *           impersonate-*, x-remote-*) and Host. An answer other than 101 is given back with its body.
 */
#ifndef SILICA_HTTP_RELAY_H
#define SILICA_HTTP_RELAY_H

#include "http/client.h"
#include "http/serve.h"

struct http_relay;

struct http_relay_spec {
    struct http_client *client; /* with a request_max_bytes of what the server takes */
    struct http_target to;      /* HTTP_V1 */
    uint64_t connect_ms, head_ms;
    /* The other server cannot be asked, or answers nonsense: answers x. */
    void (*on_failed)(void *ctx, struct http_exchange *x, const struct err *e);
    /* Over: answered and done with, or both connections are gone. Exactly once, in a later turn; the relay is freed
     * after it. */
    ev_fn on_done;
    void *ctx;
};

/* Only where http_upgrade(x) says something. Copies the spec. */
struct http_relay *http_relay_start(struct http_exchange *x, const struct http_relay_spec *spec);
/* At once; on_done follows. */
void http_relay_close(struct http_relay *r);

#endif
