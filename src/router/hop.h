/* hop: one request on its way to a sandbox, and its answer on the way back.
 *
 * Owns:     the exchange as any handler, the call, a switched connection; for as long as any of them is there.
 * Streams:  both bodies as they come, with back-pressure. The client's is not asked for before there is a connection to the
 *           sandbox: until then nothing was used up, and a connection that nobody took can be tried again.
 * Retries:  only those. What may have reached a sandbox is never said twice, but for GET, HEAD and OPTIONS on a kept connection
 *           that closed without an answer (http/client.h).
 * Ends:     exactly once, with one line in the log and one sample.
 */
#ifndef SILICA_ROUTER_HOP_H
#define SILICA_ROUTER_HOP_H

#include "http/client.h"
#include "http/serve.h"
#include "kube/key_limit.h"
#include "router/crowd.h"
#include "router/router.h"
#include "router/tally.h"

struct hop;

/* What requests share; the router's. */
struct hops {
    const struct router_config *config;
    struct ev_loop *loop;
    struct http_client *client;
    struct tally *tally;
    struct hop *first;
    struct tracer *tracer;       /* or NULL */
    struct key_limit websockets; /* WebSockets by client */
    struct hop *spares;          /* memory of those that ended, for the next */
    size_t spare_count;
};

void hop_start(struct hops *hops, struct http_exchange *x);
/* Ends those that switched protocols; the others end with their exchanges. */
void hops_close(struct hops *hops);
/* Behind the end of both sides: waits for the last, and frees what is left. */
void hops_done(struct hops *hops);

#endif
