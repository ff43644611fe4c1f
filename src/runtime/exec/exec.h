/* exec: runs commands for every contract: start, output, input, deadline, end.
 *
 * Owns:     the pool owns the spawn threads, the queue and the prepared environment. An exec owns its process
 *           (and the right to end all that descends from it), its pipes or terminal, and what it captured.
 * Used by:  the command handlers of python/, sandboxd/ and pydantic/.
 * Threads:  the loop's. Ending trees happens on threads of their own, and starting terminals, whose exec is waited for;
 *           in the other modes a child is left to itself from its birth.
 * Life:     exec_start gives a handle; on_exit runs exactly once, whatever happens (also when the program
 *           could not be started, or never was), and after it returns the handle is gone. No callback runs
 *           inside exec_start. A handler whose client left calls exec_detach (the command goes on, nobody is
 *           told) or exec_cancel (its whole tree is killed; on_exit still comes).
 * Bounds:   captured output stops growing at its ceiling, but the pipe is read on, so that the command does
 *           not block; what was dropped is counted. In EXEC_STREAM and EXEC_PTY nothing is kept: exec_pause
 *           stops reading, which stops the command.
 */
#ifndef SILICA_RUNTIME_EXEC_H
#define SILICA_RUNTIME_EXEC_H

#include "base/buf.h"
#include "ev/child.h"
#include "ev/spawn.h"

struct exec;
struct exec_pool;

/* clang-format off */
#define EXEC_FOREVER         UINT64_MAX        /* for drain_ms: until the pipes close or the deadline passes */
#define EXEC_SO_FAR          0                 /* for drain_ms: what is in the pipes when the command ends is its output */
#define EXEC_RUNNING_MAX     1024              /* commands at once when the pool is not told */
#define EXEC_QUEUE_MAX       16384             /* commands waiting for their turn; then ERR_BUSY */
#define EXEC_STDIN_MAX_BYTES (8 * 1024 * 1024) /* queued input of one command: two of gRPC's largest messages */
#define EXEC_ARGS_MAX_BYTES  (8 * 1024 * 1024) /* copied arguments and variables; exec itself takes 2 MiB */
#define EXEC_CHUNK_BYTES     4096              /* default piece of streamed output */
#define EXEC_KILL_DRAIN_MS   1000              /* after a kill the pipes close at once; then we stop waiting */
/* clang-format on */

enum exec_mode {
    EXEC_CAPTURE, /* stdout and stderr kept apart; stdin is /dev/null */
    EXEC_MERGED,  /* both in one pipe, in order, kept as `out`; stdin is /dev/null */
    EXEC_STREAM,  /* both delivered as they come; stdin is a pipe, open until exec_close_stdin */
    EXEC_PTY,     /* a terminal: everything comes as EXEC_STDOUT, input is typed */
};

enum exec_stream { EXEC_STDOUT, EXEC_STDERR };

struct exec_var {
    struct span key, value;
};

/* Everything is copied by exec_start. */
struct exec_spec {
    enum exec_mode mode;
    char *const *argv;
    /* Over the pool's environment; of a repeated key the last one wins. */
    const struct exec_var *vars;
    size_t var_count;
    const char *cwd;      /* as text; NULL: ours */
    int cwd_fd;           /* wins over cwd; duplicated. 0 and -1: none */
    uint64_t deadline_ms; /* 0: none. Counts from the spawn, not from exec_start */
    /* How long after the exit a pipe may stay open, held by a background process. A terminal is hung up by the exit. */
    uint64_t drain_ms;
    size_t out_max, err_max; /* ceilings of captured output */
    size_t both_max;         /* and of the two together; 0: no such ceiling */
    size_t chunk_max;        /* largest piece given to on_output; 0: EXEC_CHUNK_BYTES */
    uint16_t cols, rows;     /* EXEC_PTY, when both are > 0: set before the program runs */
};

struct exec_result {
    /* When step is not SPAWN_STEP_NONE it never ran, and nothing below counts but is_canceled. */
    struct spawn_fail fail;
    int code;   /* exit status 0..255; 0 when a signal ended it */
    int signal; /* the signal that ended it, or 0 */
    /* The deadline ended it, or the background processes that held its pipes. */
    bool is_timed_out;
    bool is_canceled;    /* by exec_cancel; or it was still queued at shutdown */
    bool has_open_pipes; /* drain_ms passed while somebody held a pipe */
    /* The ceiling was reached and bytes were dropped. */
    bool is_out_cut, is_err_cut;
    uint64_t out_bytes, err_bytes; /* produced, kept or not */
    struct buf out, err;           /* captured; freed after on_exit unless taken with buf_move */
    uint64_t ran_ms;               /* from spawn to exit, by the loop's clock */
};

struct exec_ops {
    /* It runs, or has run: of a short command it comes right before its output and on_exit. pid is for logs only: signals
     * go through exec_signal. EXEC_STREAM and EXEC_PTY only; may be NULL. */
    void (*on_started)(void *ctx, pid_t pid);
    /* A piece of output, valid for the call. EXEC_STREAM and EXEC_PTY only. */
    void (*on_output)(void *ctx, enum exec_stream which, struct span piece);
    void (*on_exit)(void *ctx, struct exec_result *r);
};

struct exec_pool_spec {
    unsigned running_max;      /* commands at once; more wait in order. 0: EXEC_RUNNING_MAX */
    char *const *environ;      /* what commands get; copied. Its PATH finds programs */
    const char *const *hidden; /* names they never get, NULL-terminated; or NULL */
};

/* Also makes this process a subreaper (unless it is PID 1) and ignores SIGPIPE in it. */
int exec_pool_new(struct ev_loop *loop, struct ev_children *children,
                  const struct exec_pool_spec *spec, struct exec_pool **ret, struct err *e);
/* All commands must have ended: exec_kill_all first, then this after its callback. */
void exec_pool_free(struct exec_pool *pool);
unsigned exec_running(const struct exec_pool *pool);
unsigned exec_queued(const struct exec_pool *pool);

/* -1 and no callback: ERR_BUSY (queue full), ERR_UNAVAILABLE (shutting down), ERR_LIMIT (arguments and variables
 * too large), ERR_INVALID (no program; a name that is empty or holds '=' or NUL; a NUL in a value). */
int exec_start(struct exec_pool *pool, const struct exec_spec *spec, const struct exec_ops *ops,
               void *ctx, struct exec **ret, struct err *e);

/* Stops and resumes on_output; while paused the command blocks once its pipe is full. A flag, not a count. */
void exec_pause(struct exec *x);
void exec_resume(struct exec *x);

/* e is NULL when all was written. */
typedef void (*exec_write_fn)(void *ctx, const struct err *e);

/* Input for the command, copied and written in order. done(ctx) runs once, later: when the last byte is in the
 * pipe, or with ERR_CLOSED (the reader is gone, the terminal was closed, the command ended). -1, and no done:
 * ERR_LIMIT (more than EXEC_STDIN_MAX_BYTES waiting), ERR_CLOSED (closed already), ERR_UNSUPPORTED (no stdin in
 * this mode). */
int exec_write(struct exec *x, struct span bytes, exec_write_fn done, void *ctx, struct err *e);
/* Whoever wrote with this ctx is gone: bytes not yet in the pipe are dropped, done is not called. */
void exec_write_forget(struct exec *x, void *ctx);
/* End of file after what is queued. On a terminal the master is closed at once, which hangs it up.
 * -1: ERR_CLOSED when it is closed already, ERR_UNSUPPORTED where there is no stdin. */
int exec_close_stdin(struct exec *x, struct err *e);

/* To the process group, or to the process when there is none. Nothing happens when it has ended. */
void exec_signal(struct exec *x, int sig);
/* ERR_CONFLICT: no terminal, or it is closed, or the command has ended. */
int exec_resize(struct exec *x, uint16_t cols, uint16_t rows, struct err *e);

/* Kills the whole tree, descendants in other sessions included. on_exit follows, with is_canceled; not inside
 * this call. */
void exec_cancel(struct exec *x);
/* No callback runs any more; the command goes on to its end or deadline. The caller's handle is gone. */
void exec_detach(struct exec *x);

/* Shutdown: nothing starts any more, queued commands end canceled, running ones get SIGTERM; after grace_ms
 * their trees are killed, and what else descends from this process. 0: they are killed at once, unasked. Each on_exit tells how its command really
 * ended. done(ctx) runs once, later, when none is left. */
void exec_kill_all(struct exec_pool *pool, uint64_t grace_ms, ev_fn done, void *ctx);

#endif
