#include "runtime/exec/exec_inside.h"

#include "base/log.h"
#include "runtime/exec/proc.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* What /proc shows for the other end of our descriptors. */
static void note_links(struct exec *x)
{
    int fds[3] = { x->out[0].fd, x->out[1].fd, x->in_fd };
    struct stat st;
    int number = 0;

    x->tree.link_count = 0;
    for (size_t i = 0; i < LEN(fds); i++) {
        char *link = x->links[x->tree.link_count];

        if (fds[i] < 0)
            continue;
        if (x->mode == EXEC_PTY && ioctl(fds[i], TIOCGPTN, &number) == 0)
            (void)snprintf(link, sizeof x->links[0], "/dev/pts/%d", number);
        else if (x->mode != EXEC_PTY && fstat(fds[i], &st) == 0)
            (void)snprintf(link, sizeof x->links[0], "pipe:[%lu]", (unsigned long)st.st_ino);
        else
            continue;
        x->tree.links[x->tree.link_count++] = link;
    }
}

static void note_others(struct exec *x)
{
    size_t n = 0;

    free(x->others);
    x->others = own_array(x->pool->live.n, sizeof *x->others);
    for (struct exec *other = x->pool->live.head; other; other = other->next) {
        if (other != x && other->state == EXEC_RUNNING)
            x->others[n++] = other->pid;
    }
    x->tree.others = x->others;
    x->tree.other_count = n;
}

static void on_killed(void *ctx)
{
    struct exec *x = ctx;

    x->is_killing = false;
    x->is_killed = true;
    own_fd_close(&x->tree.main_fd);
    if (x->report.left)
        log_warn("exec.left", KV("pid", x->pid), KV("killed", x->report.killed),
                 KV("left", x->report.left));
    exec_start_drain(x);
    exec_settle(x);
}

static void run_kill(void *ctx)
{
    struct exec *x = ctx;

    tree_kill(&x->tree, &x->report);
}

void exec_start_kill(struct exec *x)
{
    if (x->is_killing || x->is_killed || (x->state != EXEC_RUNNING && x->state != EXEC_DRAINING))
        return;
    x->is_killing = true;
    ev_timer_stop(x->pool->loop, &x->timer);
    exec_grow_up(x);
    exec_out_open(x); /* nobody would look at them otherwise, and the kill may take a while */
    /* On this thread a running command is not reaped, so the descriptor is of it and no other. */
    x->tree = (struct tree){ .main = x->pid, .has_main = x->state == EXEC_RUNNING, .main_fd = -1 };
    if (x->tree.has_main)
        x->tree.main_fd = proc_open(x->pid);
    note_links(x);
    note_others(x);
    ev_pool_submit(x->pool->killers, &x->kill_work, run_kill, on_killed, x);
}

static void on_grace(void *ctx)
{
    struct exec_pool *pool = ctx;

    for (struct exec *x = pool->live.head; x; x = x->next)
        exec_start_kill(x);
    /* One that is still being spawned gets its signal at birth; look again until all have ended. */
    if (pool->live.n)
        ev_timer_start(pool->loop, &pool->grace, EXEC_KILL_DRAIN_MS, on_grace, pool);
}

static void run_sweep(void *ctx)
{
    struct exec_pool *pool = ctx;

    tree_kill_rest(&pool->swept);
}

static void on_swept(void *ctx)
{
    struct exec_pool *pool = ctx;

    if (pool->swept.killed || pool->swept.left)
        log_info("exec.swept", KV("killed", pool->swept.killed), KV("left", pool->swept.left));
    pool->stop_done(pool->stop_ctx);
}

void exec_stop_if_empty(struct exec_pool *pool)
{
    if (!pool->is_stopping || pool->unfinished || pool->is_swept)
        return;
    pool->is_swept = true;
    ev_timer_stop(pool->loop, &pool->grace);
    ev_pool_submit(pool->killers, &pool->sweep_work, run_sweep, on_swept, pool);
}

void exec_kill_all(struct exec_pool *pool, uint64_t grace_ms, ev_fn done, void *ctx)
{
    assert(!pool->is_stopping);
    pool->is_stopping = true;
    pool->stop_done = done;
    pool->stop_ctx = ctx;
    while (pool->queue.head)
        exec_cancel(pool->queue.head);
    pool->has_grace = grace_ms > 0;
    for (struct exec *x = pool->live.head; x && grace_ms; x = x->next)
        exec_signal(x, SIGTERM);
    ev_timer_start(pool->loop, &pool->grace, grace_ms, on_grace, pool);
    exec_stop_if_empty(pool);
}
