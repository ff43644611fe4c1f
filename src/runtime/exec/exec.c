#include "runtime/exec/exec_inside.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define SPAWN_THREADS 2 /* more only wait for the same processors */
#define KILL_THREADS  2 /* one tree that will not die must not keep another from its deadline */
/* Most commands end sooner: their pipes are then read once and never watched. And only so many of them are on the
 * processors at once, one that ends makes room for the next: the loop shares the processors with them, and with all 64 of
 * a busy server the health probe waited 75 ms instead of 3 (p99), for 3 % more commands. One that has lived so long is not
 * counted any more, and its pipes are watched. Each one that is young beside it may take as much again. */
#define YOUNG_MS      2U
#define YOUNG_MAX_MS  20U
#define YOUNG_PER_CPU 2U
/* A streamed command shows that it started by its end, or by being there after so long, which is more than most execs
 * take: a short one so costs its client one answer, with start, output and end. */
#define YOUNG_STREAM_MS 1U
#define YOUNG_MIN       4U /* also on one processor: commands wait for other things too */

static void start_next(struct exec_pool *pool);

static void list_add(struct exec_list *l, struct exec *x)
{
    x->list = l;
    x->next = NULL;
    x->prev = l->tail;
    if (l->tail)
        l->tail->next = x;
    else
        l->head = x;
    l->tail = x;
    l->n++;
}

static void list_remove(struct exec *x)
{
    struct exec_list *l = take_ptr(&x->list);

    if (!l)
        return;
    if (x->prev)
        x->prev->next = x->next;
    else
        l->head = x->next;
    if (x->next)
        x->next->prev = x->prev;
    else
        l->tail = x->prev;
    l->n--;
}

static void exec_free(void *ctx)
{
    struct exec *x = ctx;

    if (x->in_task.is_queued ||
        x->task.is_queued) { /* taken back, but the loop has yet to pass over it */
        ev_free_later(x->pool->loop, x, exec_free);
        return;
    }
    /* A child that was killed before its exec and does not die may still stand on that stack: it is left to it. */
    if (exec_launch_is_over(&x->launch))
        exec_launch_done(&x->launch);
    buf_done(&x->out[0].kept);
    buf_done(&x->out[1].kept);
    buf_done(&x->result.out);
    buf_done(&x->result.err);
    free(x->others);
    free(x);
}

/* The only way out of a command: ended, failed, killed and canceled all come here, once. */
static void finish(struct exec *x)
{
    struct exec_pool *pool = x->pool;
    struct exec_result *r = &x->result;

    assert(x->state != EXEC_FINISHED && !x->is_killing);
    x->state = EXEC_FINISHED;
    ev_timer_stop(pool->loop, &x->deadline);
    ev_timer_stop(pool->loop, &x->timer);
    exec_in_close(x);
    for (size_t i = 0; i < 2; i++)
        exec_out_close(x, i);
    list_remove(x);
    exec_grow_up(x);
    start_next(pool);
    r->out_bytes = x->out[0].total;
    r->err_bytes = x->out[1].total;
    r->is_out_cut = x->out[0].is_cut;
    r->is_err_cut = x->out[1].is_cut;
    buf_move(&r->out, &x->out[0].kept);
    buf_move(&r->err, &x->out[1].kept);
    if (x->ops)
        x->ops->on_exit(x->ctx, r);
    ev_free_later(pool->loop, x, exec_free); /* not now: our caller may still be on the stack */
    pool->unfinished--;
    exec_stop_if_empty(pool);
}

void exec_settle(struct exec *x)
{
    if (x->state == EXEC_DRAINING && !x->is_killing && !exec_out_is_open(x))
        finish(x);
}

static void on_drained(void *ctx)
{
    struct exec *x = ctx;

    if (x->is_paused) { /* the reader is slow, not the pipe: its time begins when it reads again */
        x->is_drain_due = true;
        return;
    }
    x->result.has_open_pipes = true;
    finish(x);
}

/* After a kill nothing should hold the pipes: whatever does, or cannot die, is not waited for. */
static void on_kill_drained(void *ctx)
{
    struct exec *x = ctx;

    if (x->state == EXEC_RUNNING) {
        ev_child_forget(x->pool->children, &x->child);
        x->result.signal = SIGKILL;
    }
    x->result.has_open_pipes = exec_out_is_open(x);
    finish(x);
}

void exec_start_drain(struct exec *x)
{
    if (x->is_killing)
        return; /* on_killed does */
    if (x->is_killed)
        ev_timer_start(x->pool->loop, &x->timer, EXEC_KILL_DRAIN_MS, on_kill_drained, x);
    else if (exec_out_is_open(x) && x->drain_ms != EXEC_FOREVER)
        ev_timer_start(x->pool->loop, &x->timer,
                       x->drain_ms == EXEC_SO_FAR ? EXEC_KILL_DRAIN_MS : x->drain_ms, on_drained,
                       x);
}

void exec_grow_up(struct exec *x)
{
    if (!x->is_young)
        return;
    x->is_young = false;
    x->pool->young--;
    start_next(x->pool);
}

void exec_tell_started(struct exec *x)
{
    if (x->is_told)
        return;
    x->is_told = true;
    if (x->ops && x->ops->on_started)
        x->ops->on_started(x->ctx, x->pid);
}

static void on_child(void *ctx)
{
    struct exec *x = ctx;
    int status = x->child.wait_status;

    exec_grow_up(x);
    if (x->launch.flight)
        x->result.fail = spawn_flight_fail(x->launch.flight);
    exec_launch_done(&x->launch);
    if (!x->result.fail.step)
        exec_tell_started(x);
    x->state = EXEC_DRAINING;
    x->result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    x->result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    x->result.ran_ms = ev_now_ms(x->pool->loop) - x->started_ms;
    ev_timer_stop(x->pool->loop, &x->timer);
    exec_in_close(x);
    for (size_t i = 0; i < 2; i++) {
        if (x->drain_ms == EXEC_SO_FAR && x->mode != EXEC_PTY)
            exec_out_limit(x, i);
        exec_out_read(x, i);
    }
    exec_out_open(
        x); /* what is still open is held by a background process, or has more than we read */
    exec_start_drain(x);
    exec_settle(x);
}

static void on_grown_up(void *ctx)
{
    struct exec *x = ctx;
    bool is_over = exec_launch_is_over(&x->launch);

    exec_grow_up(x);
    if (!is_over && exec_is_streamed(x)) { /* a slow disk */
        ev_timer_start(x->pool->loop, &x->timer, YOUNG_MS, on_grown_up, x);
        return;
    }
    exec_out_open(x);
    if (!is_over || spawn_flight_fail(x->launch.flight).step)
        return; /* a failure is wanted when the child is reaped */
    exec_launch_done(&x->launch);
    exec_tell_started(x);
}

static void on_deadline(void *ctx)
{
    struct exec *x = ctx;

    x->result.is_timed_out = true;
    exec_start_kill(x);
}

/* The process is there. */
static void begin_run(struct exec *x)
{
    struct exec_pool *pool = x->pool;

    x->pid = x->launch.pid;
    ev_child_watch(pool->children, &x->child, x->pid, on_child, x);
    x->state = EXEC_RUNNING;
    x->started_ms = ev_now_ms(pool->loop);
    if (x->deadline_ms)
        ev_timer_start(pool->loop, &x->deadline, x->deadline_ms, on_deadline, x);
    x->is_told = !exec_is_streamed(x);
    x->is_young = !exec_is_streamed(x);
    pool->young += x->is_young;
    if (x->mode == EXEC_PTY)
        exec_out_open(x);
    else
        ev_timer_start(pool->loop, &x->timer,
                       x->is_young ? MIN(YOUNG_MS + pool->young, YOUNG_MAX_MS) : YOUNG_STREAM_MS,
                       on_grown_up, x);
    exec_in_begin(x);
}

static void take_ends(struct exec *x)
{
    x->out[0].fd = take_fd(&x->launch.out_fd);
    x->out[1].fd = take_fd(&x->launch.err_fd);
    x->in_fd = take_fd(&x->launch.in_fd);
}

static void on_spawned(void *ctx)
{
    struct exec *x = ctx;
    struct exec_pool *pool = x->pool;
    struct exec_launch *l = &x->launch;

    take_ends(x);
    if (x->spawn_work.is_canceled)
        l->fail = (struct spawn_fail){ SPAWN_STEP_CLONE, ECANCELED };
    if (l->fail.step != SPAWN_STEP_NONE) {
        ev_child_spawn_end(pool->children, x->epoch);
        x->result.fail = l->fail;
        finish(x);
        return;
    }
    begin_run(x);
    ev_child_spawn_end(pool->children, x->epoch);
    exec_launch_done(l);
    if (x->result.is_canceled || (pool->is_stopping && !pool->has_grace))
        exec_start_kill(x);
    else if (pool->is_stopping)
        exec_signal(x, SIGTERM);
    exec_tell_started(x);
}

static void on_never_ran(void *ctx)
{
    finish(ctx);
}

/* No thread has to wait for the exec: if the program cannot be run, that is known when the child has ended, and that it
 * runs a moment later. A terminal, where people wait for the first sign, is worth one. */
static void launch_here(struct exec *x)
{
    exec_launch_begin(x);
    take_ends(x);
    if (x->launch.fail.step == SPAWN_STEP_NONE) {
        begin_run(x);
        return;
    }
    x->result.fail = x->launch.fail;
    ev_post(x->pool->loop, &x->task, on_never_ran, x); /* not now: we may be inside exec_start */
}

static void launch(struct exec *x)
{
    x->state = EXEC_SPAWNING;
    list_add(&x->pool->live, x);
    if (x->mode != EXEC_PTY) {
        launch_here(x);
        return;
    }
    x->epoch = ev_child_spawn_begin(x->pool->children);
    ev_pool_submit(x->pool->spawners, &x->spawn_work, exec_launch_run, on_spawned, x);
}

static void start_next(struct exec_pool *pool)
{
    while (pool->queue.head && pool->live.n < pool->running_max) {
        struct exec *x = pool->queue.head;

        if (!exec_is_streamed(x) && pool->young >= pool->young_max)
            return; /* in a moment: exec_grow_up */
        list_remove(x);
        launch(x);
    }
}

int exec_start(struct exec_pool *pool, const struct exec_spec *spec, const struct exec_ops *ops,
               void *ctx, struct exec **ret, struct err *e)
{
    struct exec *x;

    if (pool->is_stopping)
        return err_set(e, ERR_UNAVAILABLE, "no command starts any more: shutting down");
    if (pool->queue.n >= EXEC_QUEUE_MAX)
        return err_set(e, ERR_BUSY, "%u commands run and %u wait", pool->live.n, pool->queue.n);
    x = NEW(struct exec);
    x->pool = pool;
    x->mode = spec->mode;
    x->ops = ops;
    x->ctx = ctx;
    x->deadline_ms = spec->deadline_ms;
    x->drain_ms = spec->drain_ms;
    x->both_max = spec->both_max;
    x->chunk_max = spec->chunk_max ? spec->chunk_max : EXEC_CHUNK_BYTES;
    x->cols = spec->cols;
    x->rows = spec->rows;
    x->in_fd = x->out[0].fd = x->out[1].fd = -1;
    x->launch.out_fd = x->launch.err_fd = x->launch.in_fd = x->launch.cwd_fd = -1;
    x->out[0].kept = (struct buf)BUF_INIT(spec->out_max);
    x->out[1].kept = (struct buf)BUF_INIT(spec->err_max);
    if (exec_launch_prepare(x, spec, e) < 0) {
        exec_free(x);
        return -1;
    }
    pool->unfinished++;
    list_add(&pool->queue, x);
    x->state = EXEC_QUEUED;
    start_next(pool);
    *ret = x;
    return 0;
}

void exec_resume(struct exec *x)
{
    if (!x->is_paused)
        return;
    x->is_paused = false;
    if (x->state == EXEC_RUNNING || x->state == EXEC_DRAINING)
        exec_out_open(x);
    if (x->is_drain_due) {
        x->is_drain_due = false;
        exec_start_drain(x);
    }
}

void exec_signal(struct exec *x, int sig)
{
    if (x->state != EXEC_RUNNING)
        return;
    if (kill(-x->pid, sig) < 0) /* not reaped, so the number is its own */
        (void)kill(x->pid, sig);
}

int exec_resize(struct exec *x, uint16_t cols, uint16_t rows, struct err *e)
{
    struct winsize size = { .ws_col = cols, .ws_row = rows };

    if (x->mode != EXEC_PTY)
        return err_set(e, ERR_CONFLICT, "the process has no terminal");
    if (x->state != EXEC_RUNNING || x->out[0].fd < 0)
        return err_set(e, ERR_CONFLICT, "the terminal is closed");
    return ioctl(x->out[0].fd, TIOCSWINSZ, &size) < 0 ? err_sys(e, "cannot resize the terminal")
                                                      : 0;
}

void exec_cancel(struct exec *x)
{
    if (x->state == EXEC_FINISHED || x->result.is_canceled)
        return;
    x->result.is_canceled = true;
    if (x->state == EXEC_QUEUED) {
        list_remove(x);
        x->result.fail = (struct spawn_fail){ SPAWN_STEP_CLONE, ECANCELED };
        ev_post(x->pool->loop, &x->task, on_never_ran, x);
    }
    exec_start_kill(x); /* not while it is being spawned: on_spawned does */
}

void exec_detach(struct exec *x)
{
    x->ops = NULL;
    for (struct exec_in *w = x->in_head; w; w = w->next)
        w->done = NULL;
    for (size_t i = 0; i < 2; i++)
        buf_done(&x->out[i].kept);
    if (x->mode == EXEC_STREAM && x->state == EXEC_RUNNING)
        exec_in_close(x);
    exec_resume(x);
}

unsigned exec_running(const struct exec_pool *pool)
{
    return pool->live.n;
}

unsigned exec_queued(const struct exec_pool *pool)
{
    return pool->queue.n;
}

/* By the processors we may use. */
static unsigned count_young(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return YOUNG_MIN;
    return MAX((unsigned)CPU_COUNT(&set) * YOUNG_PER_CPU, YOUNG_MIN);
}

int exec_pool_new(struct ev_loop *loop, struct ev_children *children,
                  const struct exec_pool_spec *spec, struct exec_pool **ret, struct err *e)
{
    struct exec_pool *pool = NEW(struct exec_pool);

    pool->loop = loop;
    pool->children = children;
    pool->running_max = spec->running_max ? spec->running_max : EXEC_RUNNING_MAX;
    pool->young_max = count_young();
    pool->null_fd = fd_open_null(e);
    if (pool->null_fd < 0 || exec_env_prepare(pool, spec, e) < 0 ||
        ev_pool_new(loop, "spawn", SPAWN_THREADS, &pool->spawners, e) < 0 ||
        ev_pool_new(loop, "kill", KILL_THREADS, &pool->killers, e) < 0) {
        exec_pool_free(pool);
        return -1;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* a command that does not read its stdin must not end us */
    if (getpid() != 1)
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    *ret = pool;
    return 0;
}

void exec_pool_free(struct exec_pool *pool)
{
    if (!pool)
        return;
    assert(pool->unfinished == 0);
    ev_timer_stop(pool->loop, &pool->grace);
    ev_pool_free(pool->spawners);
    ev_pool_free(pool->killers);
    own_fd_close(&pool->null_fd);
    free(pool->envp);
    buf_done(&pool->env_text);
    free(pool);
}
