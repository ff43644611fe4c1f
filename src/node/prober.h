/* prober: one try of one probe: a request, a connection or a command inside the sandbox, and whether it went well.
 *
 *     prober_kind -> (not exec: a socket made inside, engine_socket) -> prober_start -> done, once
 *
 * Where:    always inside the sandbox. httpGet.host and tcpSocket.host only name it: in Kubernetes they lead the node to other
 *           machines.
 * Owns:     the socket, its connection, the command; until done, which comes exactly once, in a later turn, also after a
 *           cancel. Nothing is kept from one try to the next: two sandboxes never share a connection.
 * Used by:  the lifecycle.
 * Threads:  the loop's. Nothing blocks.
 * Hostile:  what answers is the sandbox. Of an answer the head is looked at (64 KiB at most), of a command's output
 *           PROBER_OUTPUT_MAX_BYTES are kept.
 */
#ifndef SILICA_NODE_PROBER_H
#define SILICA_NODE_PROBER_H

#include "base/json.h"
#include "ev/loop.h"

#define PROBER_OUTPUT_MAX_BYTES  1024 /* of a failed command: it becomes an Event's message */
#define PROBER_MESSAGE_MAX_BYTES 1200

enum prober_kind { PROBER_NONE, PROBER_EXEC, PROBER_HTTP, PROBER_TCP, PROBER_GRPC };

struct prober;
struct sandbox;
struct conn_filter_maker;

/* message: why it failed, in the kubelet's words, printable; "" after success. Borrowed. */
typedef void (*prober_fn)(void *ctx, bool is_success, const char *message);

/* Everything is copied, or used for the call only, but loop, sandbox and maker. */
struct prober_spec {
    struct ev_loop *loop;
    const struct json *probe;     /* of the Pod */
    const struct json *container; /* whose it is: names of ports, variables of commands */
    const char *pod_ip;           /* how messages and the Host field call the sandbox */
    uint64_t timeout_ms;
    int fd; /* takes it: an IPv4 TCP socket made inside, not connected; of exec: -1 */
    struct sandbox *sandbox; /* of exec: outlives the try; NULL: it cannot be reached */
    const char *cwd;         /* of exec, inside */
    bool takes_any_status;   /* of httpGet: every answer is a good one */
    struct conn_filter_maker
        *maker; /* https: a client's that believes everybody; NULL: https fails */
    prober_fn done;
    void *ctx;
};

enum prober_kind prober_kind(const struct json *probe);
/* Never fails here: what is wrong arrives in done. */
struct prober *prober_start(const struct prober_spec *spec);
/* done then gets a failure. Not after done. */
void prober_cancel(struct prober *p);
/* A port by number or by the name that the container gives it; 0: there is none. */
uint16_t prober_port(const struct json *port, const struct json *container);

#endif
