/* prober_impl: what the files of the prober share. */
#ifndef SILICA_NODE_PROBER_IMPL_H
#define SILICA_NODE_PROBER_IMPL_H

#include "node/prober.h"

#include "ev/timer.h"
#include "http/client.h"
#include "http/grpc_frame.h"
#include "sandbox/sandbox.h"

struct prober {
    struct ev_loop *loop;
    enum prober_kind kind;
    prober_fn done;
    void *ctx;
    uint64_t timeout_ms;
    bool takes_any_status;
    struct ev_timer deadline;
    struct ev_task task; /* the end of a try that could not begin; later: of what it used */
    /* What is under way: one of them. */
    struct http_client *client;
    struct http_call *call;
    struct dial *dial;
    struct sandbox_exec *exec;
    /* How messages call it: a URL, an address, the command. */
    char name[512];
    /* gRPC */
    struct grpc_frame frame;
    int health; /* of the answer; -1: none came */
    /* of a command */
    struct buf output;
    bool is_decided;
    bool is_success;
    char message[PROBER_MESSAGE_MAX_BYTES];
};

/* The first verdict stands. fmt NULL: it went well. */
void prober_decide(struct prober *p, const char *fmt, ...) PRINTF(2, 3);
/* Nothing is under way any more. */
void prober_end(struct prober *p);

/* 127.0.0.1 of the sandbox. */
struct net_addr prober_inside(uint16_t port);

/* Each begins the try, or decides and returns false: then nothing is under way. They take fd. */
bool prober_begin_http(struct prober *p, const struct prober_spec *spec, int fd);
bool prober_begin_grpc(struct prober *p, const struct prober_spec *spec, int fd);

#endif
