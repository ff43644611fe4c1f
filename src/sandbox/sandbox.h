/* sandbox: a live sandbox as its owner uses it: commands run inside through PID 1, which is silica-runtime.
 *
 *     sandbox_open(loop, control_fd) -> sandbox_exec(argv) -> on_started, on_output..., on_exit
 *
 * Owns:     the control stream and the commands under way. Not the box: who made it ends it (isolate/box.h).
 * Used by:  src/cli; later the node.
 * Threads:  the loop's.
 * Events:   never inside a verb. Per command: on_started at most once, then output, on_exit exactly once and last,
 *           also after sandbox_exec_cancel and sandbox_close (ERR_CANCELED).
 * Hostile:  PID 1 lives among what the sandbox runs. What it says is checked and bounded (limits.h); an exit code is
 *           0..255 whatever it claims.
 */
#ifndef SILICA_SANDBOX_SANDBOX_H
#define SILICA_SANDBOX_SANDBOX_H

#include "ev/loop.h"

struct sandbox;
struct sandbox_exec;

enum sandbox_output { SANDBOX_STDOUT, SANDBOX_STDERR };

struct sandbox_exec_events {
    /* It runs. */
    void (*on_started)(void *ctx);
    /* A piece of output, borrowed for the call. On a terminal all of it is SANDBOX_STDOUT. */
    void (*on_output)(void *ctx, enum sandbox_output which, struct span piece);
    /* The queue of input is low again; or nobody reads it any more (is_open false), which is said once. */
    void (*on_drain)(void *ctx, bool is_open);
    /* Over. e NULL: it ran and ended with this code, 128 + N when signal N killed it. Else it could not be started
     * (ERR_NOT_FOUND: no such program or directory, ERR_DENIED: it may not be run), or the sandbox is gone. */
    void (*on_exit)(void *ctx, int code, const struct err *e);
};

/* All of it is copied but the events and ctx. */
struct sandbox_exec_spec {
    char *const *argv;   /* NULL-terminated; PID 1 finds the program in the PATH of the sandbox */
    char *const *env;    /* NAME=value on top of the sandbox's environment; NULL: nothing */
    const char *cwd;     /* inside; NULL: the root that PID 1 was given */
    bool has_tty;        /* a terminal of this size; made inside, the caller's never goes there */
    uint16_t cols, rows; /* 0: whatever the system's default is */
    const struct sandbox_exec_events *events;
    void *ctx;
};

/* What PID 1 should be told for `box_spec.runtime_args`: pieces as limits.h wants them, no deadlines of its own on a
 * command that says nothing for long. NULL-terminated. */
extern const char *const sandbox_runtime_args[];

/* Takes control_fd, a connected stream to PID 1; also on failure. */
int sandbox_open(struct ev_loop *loop, int control_fd, struct sandbox **ret, struct err *e);
struct ev_loop *sandbox_loop(const struct sandbox *s);
/* In a later turn, after on_exit of the commands still under way. Tolerates NULL. */
void sandbox_close(struct sandbox *s);

/* -1, and no event: ERR_INVALID (no program, text that is not UTF-8), ERR_LIMIT, ERR_CLOSED. */
int sandbox_exec(struct sandbox *s, const struct sandbox_exec_spec *spec, struct sandbox_exec **ret,
                 struct err *e);
/* Input. Returns how many of the bytes it took into its queue: all while that is not full and they are no more than
 * SANDBOX_STDIN_HIGH_BYTES, else what fits. The rest stays the caller's, who writes it after on_drain and ends the input
 * only then. All are taken, and dropped, when no process reads them any more. */
size_t sandbox_exec_write(struct sandbox_exec *x, struct span bytes)
    __attribute__((warn_unused_result));
bool sandbox_exec_is_full(const struct sandbox_exec *x);
/* End of file after what is queued. A terminal is hung up. */
void sandbox_exec_close_stdin(struct sandbox_exec *x);
/* To the command's process group. One that is given before on_started is sent then. */
void sandbox_exec_signal(struct sandbox_exec *x, int signal_number);
void sandbox_exec_resize(struct sandbox_exec *x, uint16_t cols, uint16_t rows);
/* Back-pressure on output: what is on its way, SANDBOX_WINDOW_BYTES at most, may still come. */
void sandbox_exec_pause(struct sandbox_exec *x, bool is_paused);
/* PID 1 kills the command with all that descends from it. on_exit gets ERR_CANCELED. */
void sandbox_exec_cancel(struct sandbox_exec *x);

#endif
