#include "kubeclient/plugin.h"

#include "base/fd.h"
#include "ev/child.h"
#include "ev/io.h"
#include "ev/spawn.h"
#include "ev/timer.h"
#include "kubeclient/file.h"
#include "kubeclient/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

struct plugin_run {
    struct ev_loop *loop;
    struct ev_children *children;
    const struct kubeconfig *config;
    bool is_interactive, is_full, is_late;
    char **env; /* ours and its own; a child that has not left yet reads them, so they are copies */
    size_t env_n;
    char **argv;
    struct buf info, output;
    struct spawn_spec spec;
    struct spawn_flight *flight;
    struct ev_child child;
    bool is_running, is_orphan; /* is_orphan: called off, and only waited for */
    int fd;
    struct ev_io io;
    struct ev_timer timeout;
    struct ev_task task;
    struct err failure;
    plugin_done_fn done;
    void *ctx;
};

static void run_free(void *obj)
{
    struct plugin_run *r = obj;

    file_wipe(&r->output);
    buf_done(&r->info);
    spawn_flight_free(r->flight);
    for (size_t i = 0; i < r->env_n; i++)
        free(r->env[i]);
    for (size_t i = 0; r->argv && r->argv[i]; i++)
        free(r->argv[i]);
    free(r->env);
    free(r->argv);
    free(r);
}

/* The only way out. */
static void finish(struct plugin_run *r, struct credential *c, const struct err *e)
{
    ev_timer_stop(r->loop, &r->timeout);
    ev_io_close(&r->io);
    own_fd_close(&r->fd);
    if (!r->is_orphan)
        r->done(r->ctx, c, e);
    ev_free_later(r->loop, r, run_free);
}

static void fail(struct plugin_run *r, struct err *e)
{
    const struct kubeconfig_plugin *p = &r->config->plugin;

    if (r->is_orphan) { /* its config may be gone */
        finish(r, NULL, e);
        return;
    }
    (void)err_wrap(e, "the credential plugin '%s'", p->argv[0]);
    if (p->hint && e->code == ERR_NOT_FOUND)
        err_hint(e, "%s", p->hint);
    finish(r, NULL, e);
}

/* Its output, as far as it goes now: those it started may keep the other end. */
static void take_output(struct plugin_run *r)
{
    uint8_t bytes[4096];
    ssize_t n;

    while ((n = read(r->fd, bytes, sizeof bytes)) > 0) {
        if (buf_add_capped(&r->output, span_of(bytes, (size_t)n)))
            r->is_full = true;
    }
    explicit_bzero(bytes, sizeof bytes);
    if (n == 0 || errno != EAGAIN)
        ev_io_want(&r->io, 0);
}

static void on_output(void *ctx, unsigned ready)
{
    (void)ready;
    take_output(ctx);
}

static int judge_end(struct plugin_run *r, struct err *e)
{
    int status = r->child.wait_status;
    struct spawn_fail f = spawn_flight_fail(r->flight);

    if (r->is_late)
        return err_set(e, ERR_TIMEOUT, "it was not done within %d s", PLUGIN_TIMEOUT_MS / 1000);
    if (f.step != SPAWN_STEP_NONE)
        return spawn_err(e, &r->spec, f);
    if (WIFSIGNALED(status))
        return err_set(e, ERR_UNAUTHORIZED, "it was ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return err_set(e, ERR_UNAUTHORIZED, "it failed with exit code %d", WEXITSTATUS(status));
    if (r->is_full)
        return err_set(e, ERR_LIMIT, "it wrote more than %d bytes", PLUGIN_OUTPUT_MAX_BYTES);
    return 0;
}

static void on_ended(void *ctx)
{
    struct plugin_run *r = ctx;
    struct credential c;
    struct err e;

    r->is_running = false;
    take_output(r);
    if (r->is_orphan || judge_end(r, &e) < 0 ||
        credential_parse(buf_span(&r->output), r->config->plugin.api_version, &c, &e) < 0) {
        fail(r, &e);
        return;
    }
    finish(r, &c, NULL);
    credential_done(&c);
}

static void too_late(void *ctx)
{
    struct plugin_run *r = ctx;

    r->is_late = true;
    (void)kill(r->child.pid, SIGKILL); /* not yet reaped: the pid is its own */
}

/* Our variables, the question, and its own, which win over both. */
static void make_env(struct plugin_run *r)
{
    char **own = r->config->plugin.env;
    size_t ours_n = 0, own_n = 0;

    while (environ && environ[ours_n])
        ours_n++;
    while (own && own[own_n])
        own_n++;
    r->env = own_array(ours_n + own_n + 2, sizeof *r->env);
    for (size_t i = 0; i < own_n; i++)
        r->env[r->env_n++] = own_strdup(own[i]);
    for (size_t i = 0; i < ours_n; i++) {
        size_t name_n = span_find(span_cstr(environ[i]), '=');
        bool is_taken = strncmp(environ[i], "KUBERNETES_EXEC_INFO=", 21) == 0;

        for (size_t j = 0; j < own_n && name_n != SIZE_MAX; j++)
            is_taken = is_taken || strncmp(environ[i], own[j], name_n + 1) == 0;
        if (!is_taken)
            r->env[r->env_n++] = own_strdup(environ[i]);
    }
    r->env[r->env_n++] = own_strdup(buf_cstr(&r->info));
}

static void copy_words(struct plugin_run *r)
{
    char **words = r->config->plugin.argv;
    size_t n = 0;

    while (words[n])
        n++;
    r->argv = own_array(n + 1, sizeof *r->argv);
    for (size_t i = 0; i < n; i++)
        r->argv[i] = own_strdup(words[i]);
}

static int open_ends(struct plugin_run *r, int ends[2], int *ret_null, struct err *e)
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe");
    r->fd = ends[0];
    if (ev_io_open(&r->io, r->loop, r->fd, on_output, r, e) < 0)
        return -1;
    *ret_null = r->is_interactive ? -1 : fd_open_null(e);
    return r->is_interactive || *ret_null >= 0 ? 0 : -1;
}

static int launch(struct plugin_run *r, struct err *e)
{
    int ends[2] = { -1, -1 };
    OWN_FD int null_fd = -1;
    OWN_FD int out_fd = -1;
    struct spawn_fail f;
    unsigned epoch;
    int opened = open_ends(r, ends, &null_fd, e);
    pid_t pid;

    out_fd = ends[1];
    if (opened < 0)
        return -1;
    r->spec = (struct spawn_spec)SPAWN_SPEC_INIT;
    r->spec.argv = r->argv;
    r->spec.envp = r->env;
    r->spec.search_path = getenv("PATH");
    r->spec.fds[0] = null_fd;
    r->spec.fds[1] = out_fd;
    epoch = ev_child_spawn_begin(r->children);
    pid = spawn_begin(&r->spec, &r->flight, &f);
    if (pid > 0) {
        r->is_running = true;
        ev_child_watch(r->children, &r->child, pid, on_ended, r);
    }
    ev_child_spawn_end(r->children, epoch);
    if (pid < 0)
        return spawn_err(e, &r->spec, f);
    ev_io_want(&r->io, EV_READ);
    ev_timer_start(r->loop, &r->timeout, PLUGIN_TIMEOUT_MS, too_late, r);
    return 0;
}

static void fail_later(void *ctx)
{
    struct plugin_run *r = ctx;

    fail(r, &r->failure);
}

static int prepare(struct plugin_run *r, struct err *e)
{
    if (!r->children)
        return err_set(e, ERR_UNSUPPORTED, "this program starts no other programs");
    if (r->config->plugin.mode == PLUGIN_ALWAYS && !r->is_interactive)
        return err_set(e, ERR_UNAUTHORIZED, "it wants to ask somebody, and nobody is there");
    if (buf_addf(&r->info, e, "KUBERNETES_EXEC_INFO=") < 0 ||
        plugin_info(r->config, r->is_interactive, &r->info, e) < 0)
        return -1;
    copy_words(r);
    make_env(r);
    return launch(r, e);
}

struct plugin_run *plugin_start(struct ev_loop *loop, struct ev_children *children,
                                const struct kubeconfig *k, bool is_attended, plugin_done_fn done,
                                void *ctx)
{
    struct plugin_run *r = NEW(struct plugin_run);

    r->loop = loop;
    r->children = children;
    r->config = k;
    r->is_interactive = is_attended && k->plugin.mode != PLUGIN_NEVER;
    r->info.max = 4 * KUBECONFIG_MAX_BYTES;
    r->output.max = PLUGIN_OUTPUT_MAX_BYTES;
    r->fd = -1;
    r->done = done;
    r->ctx = ctx;
    if (prepare(r, &r->failure) < 0)
        ev_post(loop, &r->task, fail_later, r);
    return r;
}

void plugin_cancel(struct plugin_run *r)
{
    struct err e;

    if (!r)
        return;
    r->is_orphan = true;
    if (!r->is_running) {
        ev_post_cancel(&r->task);
        finish(r, NULL, &e);
        return;
    }
    (void)kill(r->child.pid, SIGKILL);
    /* Until it has left, it reads our memory: on_ended frees. */
}
