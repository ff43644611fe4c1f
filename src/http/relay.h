/* relay: a request without a body, passed on to another server, and its answer, piece by piece; where that switches
 * protocols, bytes both ways from then on. Nothing of it is read.
 *
 * Owns:     the call, then both connections. Of the exchange as any handler: it ends with the answer.
 * Used by:  the API server for exec, attach, port-forward and logs: whoever decides that a request may pass does not
 *           parse what it carries.
 * Threads:  the loop's.
 * Passes:   method and target, and of a request to switch the fields as they came, but for those that say who asks
 *           (authorization, cookie, impersonate-*, x-remote-*) and Host. Of an answer other than 101: its status, type and body; a refusal
 *           comes whole, so that it has a length, and of its body the first 64 KiB.
 */
#ifndef SILICA_HTTP_RELAY_H
#define SILICA_HTTP_RELAY_H

#include "http/client.h"
#include "http/serve.h"

struct http_relay;

struct http_relay_spec {
    struct http_client *client; /* with a request_max_bytes of what the server takes */
    struct http_target to;      /* HTTP_V1 */
    struct span target;         /* what to ask for there; p NULL: what the client asked for */
    uint64_t connect_ms, head_ms;
    /* The other server cannot be asked, or answers nonsense: answers x. */
    void (*on_failed)(void *ctx, struct http_exchange *x, const struct err *e);
    /* The answer begins: the request is not held any more. In a later turn; may be NULL. */
    ev_fn on_answered;
    /* Over: answered and done with, or both connections are gone. Exactly once, in a later turn; the relay is freed
     * after it. */
    ev_fn on_done;
    void *ctx;
};

/* Copies the spec. A request that does not ask to switch has left when its client ends its side (http_eof_is_gone). */
struct http_relay *http_relay_start(struct http_exchange *x, const struct http_relay_spec *spec);
/* The code of the answer that was passed on; 0: none was. Until on_done returned. */
int http_relay_status(const struct http_relay *r);
/* At once; on_done follows. */
void http_relay_close(struct http_relay *r);

#endif
