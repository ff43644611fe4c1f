/* session: one command in a sandbox from its start to its exit code, with our standard streams, signals and terminal.
 *
 * Owns:     the loop, the control stream, the signals' descriptor. Not the sandbox.
 * Used by:  run.c, kept.c. Blocks until the command has ended and its output is written.
 */
#ifndef SILICA_CLI_SESSION_H
#define SILICA_CLI_SESSION_H

#include "base/buf.h"

struct session_spec {
    int control_fd; /* a connected stream to PID 1; taken */
    char *const *argv;
    char *const *env;    /* NAME=value on top of the sandbox's own; NULL: nothing */
    const char *cwd;     /* inside */
    bool has_tty;        /* the command gets a terminal; ours turns raw */
    uint64_t timeout_ms; /* then the command is ended, and the code is 124; 0: none */
    /* Ends the sandbox when the time is up; NULL: only the command, with all that descends from it. */
    int (*kill)(void *ctx, struct err *e);
    /* Called when the command has ended and its output is written, before what is ours is cleared up; may be NULL. */
    void (*ended)(void *ctx);
    void *ctx;
};

struct session_result {
    int exit_code; /* what silica returns */
    bool is_timed_out;
    uint64_t ran_ms;
    bool has_error; /* then e says why the code is ours and not the command's */
    struct err e;
};

/* Call before the sandbox is started, so that a signal that comes meanwhile is not lost, and does not end us: blocks the
 * signals that are forwarded. */
void session_block_signals(void);
void session_run(const struct session_spec *spec, struct session_result *ret);

#endif
