/* exec_inside: what the files of exec share. Nobody else includes it.
 *
 *     exec.c         the pool, the life of a command from start to on_exit
 *     exec_end.c     ends before the end: deadline and cancel kill its tree, shutdown all of them
 *     exec_io.c      its pipes: output in, input out
 *     exec_launch.c  what is prepared for it and how it is started: arguments, variables, pipes, terminal
 */
#ifndef SILICA_RUNTIME_EXEC_INSIDE_H
#define SILICA_RUNTIME_EXEC_INSIDE_H

#include "ev/io.h"
#include "ev/timer.h"
#include "ev/worker.h"
#include "runtime/exec/exec.h"
#include "runtime/exec/tree.h"

enum exec_state {
    EXEC_QUEUED,   /* waits for its turn */
    EXEC_SPAWNING, /* on a spawn thread, or it could not be started and will be told so */
    EXEC_RUNNING,
    EXEC_DRAINING, /* it has ended, a pipe of it has not */
    EXEC_FINISHED, /* on_exit has run; freed when the stack is clear */
};

/* One output. */
struct exec_out {
    int fd; /* -1: closed */
    struct ev_io io;
    struct buf kept;
    uint64_t total;
    bool is_cut;
    bool has_last; /* the command has ended: nothing is read behind the next last_bytes */
    uint64_t last_bytes;
};

/* One exec_write. */
struct exec_in {
    struct exec_in *next;
    struct buf bytes;
    size_t sent;
    exec_write_fn done;
    void *ctx;
};

/* What the spawn thread reads, and where it leaves its results. The loop does not touch it meanwhile. Where no thread is
 * needed the child itself reads it, until it runs its program. */
struct exec_launch {
    struct buf text; /* arguments, variables and directory, each with its NUL */
    char **argv;
    char **envp; /* NULL: the pool's */
    const char *cwd;
    int cwd_fd;
    struct spawn_spec spec;
    struct spawn_fail fail;
    struct spawn_flight *flight; /* NULL: it was waited for */
    pid_t pid;
    int out_fd, err_fd, in_fd; /* our ends */
};

struct exec_list {
    struct exec *head, *tail;
    unsigned n;
};

struct exec {
    struct exec *next, *prev;
    struct exec_list *list; /* the pool's queue, its live ones, or NULL */
    struct exec_pool *pool;
    enum exec_state state;
    enum exec_mode mode;
    const struct exec_ops *ops; /* NULL: detached */
    void *ctx;
    uint64_t deadline_ms, drain_ms;
    size_t both_max, chunk_max;
    uint16_t cols, rows;
    struct exec_launch launch;
    struct ev_work spawn_work, kill_work;
    struct ev_child child;
    unsigned epoch; /* of its spawn, for the reaper */
    pid_t pid;
    uint64_t started_ms;
    struct ev_timer deadline;
    struct ev_timer timer; /* first the end of its youth, later the end of draining */
    bool is_young;         /* may end any moment, and its start still costs */
    bool is_told;          /* on_started has run, or need not */
    struct ev_task task;   /* finishes what never ran */
    bool is_paused, is_drain_due;
    bool is_killing, is_killed; /* its tree is being ended; has been */
    struct exec_out out[2];
    int in_fd;
    struct ev_io in_io;
    struct ev_task in_task;
    struct exec_in *in_head, *in_tail;
    size_t in_bytes;
    bool is_in_closing;
    struct tree tree; /* for the kill thread */
    struct tree_report report;
    char links[TREE_LINKS_MAX][32];
    pid_t *others;
    struct exec_result result;
};

struct exec_pool {
    struct ev_loop *loop;
    struct ev_children *children;
    struct ev_pool *spawners, *killers;
    struct exec_list queue, live;
    unsigned unfinished; /* those whose on_exit is to come, in a list or not */
    unsigned running_max;
    unsigned young,
        young_max; /* started a moment ago; more would only wait for the same processors */
    struct buf env_text;
    char **envp; /* shared by all commands without variables of their own */
    size_t env_count;
    const char *search_path;
    int null_fd;
    bool is_stopping, is_swept;
    bool has_grace; /* while it stops: commands are asked first */
    struct ev_timer grace;
    struct ev_work sweep_work;
    struct tree_report swept;
    ev_fn stop_done;
    void *stop_ctx;
};

/* Output goes on as it comes; else it is kept for the end. */
static inline bool exec_is_streamed(const struct exec *x)
{
    return x->mode == EXEC_STREAM || x->mode == EXEC_PTY;
}

/* exec_launch.c */
int exec_env_prepare(struct exec_pool *pool, const struct exec_pool_spec *spec, struct err *e);
int exec_launch_prepare(struct exec *x, const struct exec_spec *spec, struct err *e);
void exec_launch_run(void *ctx);        /* ctx: the exec; on a spawn thread: waits for its exec */
void exec_launch_begin(struct exec *x); /* on the loop: waits for nothing */
/* True when nobody reads the texts any more, and they can be freed before the command has ended. */
bool exec_launch_is_over(const struct exec_launch *l);
void exec_launch_done(struct exec_launch *l);

/* exec_io.c */
void exec_out_open(struct exec *x); /* begins polling; again is harmless */
void exec_out_read(struct exec *x, size_t which);
/* Nothing is read behind what is in the pipe now. */
void exec_out_limit(struct exec *x, size_t which); /* what is there now, within reason */
void exec_out_close(struct exec *x, size_t which);
bool exec_out_is_open(const struct exec *x);
void exec_in_begin(struct exec *x); /* the process is there: send what was queued before */
void exec_in_close(struct exec *x); /* fails what is queued */

/* exec.c */
void exec_tell_started(struct exec *x); /* once, and before any output */
void exec_grow_up(struct exec *x);      /* it runs for a while now: the next may start */
void exec_settle(struct exec *x);       /* an output ended; perhaps that was all */
void exec_start_drain(struct exec *x);  /* it ended or was killed: its pipes get so long to close */

/* exec_end.c */
void exec_start_kill(struct exec *x);
void exec_stop_if_empty(struct exec_pool *pool); /* at shutdown: one less */

#endif
