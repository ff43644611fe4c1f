/* runtime: what every handler of the runtime reaches: the loop, the pools, the options.
 *
 * Owns:     all of it; one per process, made in main.c.
 */
#ifndef SILICA_RUNTIME_RUNTIME_H
#define SILICA_RUNTIME_RUNTIME_H

#include "ev/child.h"
#include "ev/worker.h"
#include "http/serve.h"
#include "runtime/options.h"

struct exec_pool;

struct runtime {
    struct ev_loop *loop;
    struct ev_children *children;
    struct ev_pool *files; /* blocking file work */
    struct exec_pool *exec;
    struct http_server *http;
    struct runtime_options opt;
    bool is_local_only; /* no token and loopback listeners: Host is checked too */
    bool is_stopping;   /* health says 503 */
    char *home; /* with a control socket and / as root: where the engine put us; else NULL */
    uint64_t started_ms;
    size_t store_bytes; /* of all uploads, in memory on their way to the disk */
};

/* gate.c: true when the request may go on; else it was answered. */
bool gate_admits(struct runtime *rt, struct http_exchange *x);
/* True for GET / , /health, /v1/health: what a kubelet asks without credentials. */
bool gate_is_health(const struct http_exchange *x);

/* route.c: an http_server's on_request; ctx is the runtime. */
void route_request(void *ctx, struct http_exchange *x);

#endif
