#include "runtime/init.h"

#include "base/fd.h"
#include "base/lastwords.h"
#include "base/log.h"
#include "ev/spawn.h"
#include "ev/timer.h"
#include "runtime/exec/exec.h"
#include "runtime/owner.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define KILL_GRACE_MS 2000 /* between TERM and KILL for commands, as sandboxd has it */

extern char **environ;

/* One per process, like PID 1 itself. */
static struct {
    struct ev_child child;
    pid_t pid; /* of the main command, 0 without one or once it ended */
    int exit_status;
    struct ev_timer limit;
} init;

int init_exit_status(void)
{
    return init.exit_status;
}

void init_say_last_words(const struct runtime *rt)
{
    OWN(buf_done) struct buf words = BUF_INIT(LASTWORDS_MAX_BYTES);

    if (!rt->opt.message_file)
        return;
    lastwords_find(rt->opt.message_file, &words);
    if (!words.n)
        return;
    if (getpid() == 1)
        (void)kill(-1, SIGKILL); /* what is left dies with us anyway, and must not write between */
    lastwords_send(2, buf_span(&words));
}

static void stop_loop(void *ctx)
{
    struct runtime *rt = ctx;

    ev_loop_stop(rt->loop);
}

/* Health says 503 while the listeners stay open, so that probes see it; then commands end, then answers are sent. */
static void drain_http(void *ctx)
{
    struct runtime *rt = ctx;

    http_server_drain(rt->http, stop_loop, rt);
}

static void drain(void *ctx)
{
    owner_finish(drain_http, ctx);
}

static void stop(struct runtime *rt, uint64_t grace_ms)
{
    if (rt->is_stopping)
        return;
    log_info("runtime.stop", KV("commands", exec_running(rt->exec)),
             KV("connections", http_server_connections(rt->http)));
    rt->is_stopping = true;
    ev_timer_start(rt->loop, &init.limit, rt->opt.shutdown_timeout_ms, stop_loop, rt);
    exec_kill_all(rt->exec, MIN(grace_ms, rt->opt.shutdown_timeout_ms / 2), drain, rt);
}

/* One short line to the engine; a pipe takes it whole. */
static void tell_status(struct runtime *rt, const char *fmt, int code)
{
    char line[32];
    struct err e;
    int n = snprintf(line, sizeof line, fmt, code);

    if (rt->opt.status_fd != UINT64_MAX)
        (void)fd_write_all((int)rt->opt.status_fd, span_of(line, (size_t)n), &e);
}

static void close_status(struct runtime *rt)
{
    if (rt->opt.status_fd != UINT64_MAX)
        (void)close((int)rt->opt.status_fd);
    rt->opt.status_fd = UINT64_MAX;
}

static void main_ended(void *ctx)
{
    struct runtime *rt = ctx;
    int status = init.child.wait_status;

    init.pid = 0;
    init.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    log_info("runtime.main-exit", KV("code", init.exit_status));
    /* What runs beside the main command is killed with it, as in any container: clients of a Pod take 137 for its end, and
     * who was asked to end politely was the main command. */
    if (!rt->opt.is_staying) {
        stop(rt, 0);
        return;
    }
    tell_status(rt, "exit %d\n", init.exit_status);
    close_status(rt);
    init.exit_status = 0; /* of the command, not of our own end */
}

int init_start(struct runtime *rt, char **command, struct err *e)
{
    struct spawn_spec spec = SPAWN_SPEC_INIT;
    struct spawn_fail fail;
    unsigned epoch;

    spec.argv = command;
    spec.envp = environ;
    spec.search_path = getenv("PATH");
    epoch = ev_child_spawn_begin(rt->children);
    init.pid = spawn(&spec, &fail);
    if (init.pid > 0)
        ev_child_watch(rt->children, &init.child, init.pid, main_ended, rt);
    ev_child_spawn_end(rt->children, epoch);
    if (init.pid > 0) {
        tell_status(rt, "started %d\n", init.pid);
        if (!rt->opt.is_staying)
            close_status(rt);
        return 0;
    }
    init.pid = 0;
    init.exit_status = fail.sys == ENOENT ? 127 : 126; /* as shells report it */
    return spawn_err(e, &spec, fail);
}

void init_stop(struct runtime *rt)
{
    if (init.pid)
        (void)kill(init.pid, SIGTERM);
    stop(rt, KILL_GRACE_MS);
}

void init_signal(void *ctx, int signal_number)
{
    struct runtime *rt = ctx;

    if (signal_number == SIGTERM)
        rt->opt.is_staying = false; /* all of it is to end, when the command has */
    if (init.pid) {
        (void)kill(init.pid, signal_number);
        return;
    }
    if (signal_number == SIGTERM || signal_number == SIGINT)
        stop(rt, KILL_GRACE_MS);
}
