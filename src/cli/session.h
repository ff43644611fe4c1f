/* session: one command in a box from its start to its exit code, with our standard streams, signals and terminal.
 *
 * Owns:     the loop, the control stream, the signals' descriptor. Not the box: it is the caller's, and may be dead
 *           when this returns.
 * Used by:  run.c. Blocks until the command has ended and its output is written.
 */
#ifndef SILICA_CLI_SESSION_H
#define SILICA_CLI_SESSION_H

#include "isolate/box.h"

struct session_spec {
    char *const *argv;
    const char *cwd;     /* inside */
    bool has_tty;        /* the command gets a terminal; ours turns raw */
    uint64_t timeout_ms; /* then the box is killed; 0: none */
};

struct session_result {
    int exit_code; /* what silica returns */
    bool is_timed_out;
    uint64_t ran_ms;
    bool has_error; /* then e says why the code is ours and not the command's */
    struct err e;
};

/* Call before the box is started, so that a signal that comes meanwhile is not lost, and does not end us: blocks the
 * signals that are forwarded. */
void session_block_signals(void);
void session_run(struct box *box, const struct session_spec *spec, struct session_result *ret);

#endif
