/* command: from a request's ProcessConfig to a command of runtime/exec.h, and from what goes wrong to a gRPC status.
 *
 * Owns:     the working directory it looked up.
 * Used by:  Execute and Start.
 * Threads:  the loop's; looking up a directory happens on a worker.
 * Order:    command_check, then, if command_needs_lookup, command_look_up, then command_start.
 */
#ifndef SILICA_RUNTIME_SANDBOXD_COMMAND_H
#define SILICA_RUNTIME_SANDBOXD_COMMAND_H

#include "http/grpc.h"
#include "runtime/exec/exec.h"
#include "runtime/runtime.h"
#include "runtime/sandboxd/limits.h"

struct Process__V1__ProcessConfig; /* protobuf-c's name */

struct command {
    struct runtime *rt;
    const char *op; /* "failed to execute command": what every message begins with */
    char program[SANDBOXD_PROGRAM_MAX_BYTES]; /* for messages and logs; a long one is cut */
    /* looked up */
    char *cwd;  /* as sent, NULL for the root */
    int cwd_fd; /* -1: the root, by its text */
    char *cwd_abs;
    struct ev_work work;
    ev_fn ready;
    void *ctx;
    enum grpc_status status; /* of a failed lookup */
    struct err err;
};

/* A failure is a status and a text for the client. */
struct command_fail {
    enum grpc_status status;
    char text[GRPC_MESSAGE_TEXT_BYTES];
};

/* Fills *c. -1: the request asks for nothing that can be run. Until command_done. */
int command_init(struct command *c, struct runtime *rt, const char *op,
                 const struct Process__V1__ProcessConfig *config, struct command_fail *ret);
void command_done(struct command *c);

/* A working directory was asked for, or the root has not been seen yet: a worker has to look. */
bool command_needs_lookup(const struct command *c);
/* ready(ctx) runs later, once; command_start then tells if it failed. The command must live until then. */
void command_look_up(struct command *c, ev_fn ready, void *ctx);

/* Starts it: exec_start with argv, environment and directory of the request, and the rest from *spec. Everything is
 * copied. */
int command_start(struct command *c, const struct Process__V1__ProcessConfig *config,
                  struct exec_spec *spec, const struct exec_ops *ops, void *ctx, struct exec **ret,
                  struct command_fail *ret_fail);
/* Why it did not run. */
void command_spawn_failed(const struct command *c, struct spawn_fail fail,
                          struct command_fail *ret);
/* What clients get to know of an end: 0..255, and -1 for a signal. */
int command_exit_code(const struct exec_result *r);

#endif
