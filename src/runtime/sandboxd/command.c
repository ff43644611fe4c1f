#include "runtime/sandboxd/command.h"

#include "proto/process.pb-c.h"
#include "runtime/files/path.h"
#include "runtime/sandboxd/root.h"

#include <errno.h>
#include <fcntl.h>

static int refuse(struct command_fail *ret, enum grpc_status status, const char *fmt, ...)
    PRINTF(3, 4);

static int refuse(struct command_fail *ret, enum grpc_status status, const char *fmt, ...)
{
    va_list ap;

    ret->status = status;
    va_start(ap, fmt);
    (void)vsnprintf(ret->text, sizeof ret->text, fmt, ap);
    va_end(ap);
    return -1;
}

int command_init(struct command *c, struct runtime *rt, const char *op,
                 const Process__V1__ProcessConfig *config, struct command_fail *ret)
{
    *c = (struct command){ .rt = rt, .op = op, .cwd_fd = -1 };
    if (!config || config->n_command == 0)
        return refuse(ret, GRPC_INVALID_ARGUMENT, "command is required");
    memcpy(c->program, config->command[0],
           strnlen(config->command[0], sizeof c->program - 1)); /* the rest is zeros */
    if (config->cwd && *config->cwd)
        c->cwd = own_strdup(config->cwd);
    return 0;
}

void command_done(struct command *c)
{
    own_fd_close(&c->cwd_fd);
    free(c->cwd);
    free(c->cwd_abs);
}

/* ---- the working directory ---- */

/* Where the engine put PID 1, which is where its owner's commands begin unless they say otherwise: it was found with care
 * then, and the command goes there by itself. */
static bool is_home(const struct command *c)
{
    return c->cwd && c->rt->home && strcmp(c->cwd, c->rt->home) == 0;
}

bool command_needs_lookup(const struct command *c)
{
    return (c->cwd && !is_home(c)) || !root_is_known(c->rt);
}

static int find_directory(struct command *c, const struct path_root *root, struct err *e)
{
    OWN(path_at_done) struct path_at at = PATH_AT_NONE;
    struct span cwd = span_cstr(c->cwd);

    if (path_resolve(root, PATH_SANDBOXD, cwd, 0, &at, e) < 0) {
        c->status = path_is_escape(e) ? GRPC_PERMISSION_DENIED : GRPC_INTERNAL;
        return err_wrap(e, "cwd");
    }
    c->cwd_abs = own_strdup(at.abs);
    if (path_open(root, PATH_SANDBOXD, cwd, O_PATH | O_DIRECTORY, NULL, &c->cwd_fd, e) == 0)
        return 0;
    c->status = e->sys == ENOENT   ? GRPC_NOT_FOUND
                : e->sys == EACCES ? GRPC_PERMISSION_DENIED
                                   : GRPC_INTERNAL;
    return err_wrap(e, e->sys == ENOENT ? "%s: command or path not found" : "%s", c->op);
}

static void look_up_run(void *ctx)
{
    OWN(path_root_close) struct path_root root = PATH_ROOT_NONE;
    struct command *c = ctx;

    c->status = GRPC_INTERNAL;
    if (root_open(&root, c->rt, &c->err) < 0)
        (void)err_wrap(&c->err, "%s", c->op);
    else if (c->cwd)
        (void)find_directory(c, &root, &c->err);
}

static void look_up_done(void *ctx)
{
    struct command *c = ctx;

    if (c->work.is_canceled) {
        c->status = GRPC_UNAVAILABLE;
        (void)err_set(&c->err, ERR_CANCELED, "%s: sandboxd is shutting down", c->op);
    } else if (!c->err.code) {
        root_set_known(true);
    }
    c->ready(c->ctx);
}

void command_look_up(struct command *c, ev_fn ready, void *ctx)
{
    c->ready = ready;
    c->ctx = ctx;
    ev_pool_submit(c->rt->files, &c->work, look_up_run, look_up_done, c);
}

/* ---- the start ---- */

/* PWD comes first, so that the request's own wins. Shells correct a stale one, other programs believe it. */
static size_t collect_vars(const struct command *c, const Process__V1__ProcessConfig *config,
                           struct exec_var *vars)
{
    size_t n = 0;

    if (c->cwd_abs)
        vars[n++] = (struct exec_var){ SPAN("PWD"), span_cstr(c->cwd_abs) };
    for (size_t i = 0; i < config->n_env_vars; i++)
        vars[n++] = (struct exec_var){ span_cstr(config->env_vars[i]->key),
                                       span_cstr(config->env_vars[i]->value) };
    return n;
}

static enum grpc_status status_of_start(const struct err *e)
{
    return e->code == ERR_LIMIT ? GRPC_INTERNAL : grpc_status_of(e->code);
}

int command_start(struct command *c, const Process__V1__ProcessConfig *config,
                  struct exec_spec *spec, const struct exec_ops *ops, void *ctx, struct exec **ret,
                  struct command_fail *ret_fail)
{
    OWN_MEM char **argv = NULL;
    OWN_MEM struct exec_var *vars = NULL;
    struct err e;

    if (c->err.code)
        return refuse(ret_fail, c->status, "%s", c->err.msg);
    if (is_home(c) && !c->cwd_abs)
        c->cwd_abs = own_strdup(c->cwd);
    argv = own_array(config->n_command + 1, sizeof *argv);
    memcpy(argv, config->command, config->n_command * sizeof *argv);
    if (config->n_env_vars || c->cwd_abs)
        vars = own_array(config->n_env_vars + 1, sizeof *vars);
    spec->argv = argv;
    spec->vars = vars;
    spec->var_count = vars ? collect_vars(c, config, vars) : 0;
    spec->cwd = is_home(c) ? c->cwd : runtime_root(&c->rt->opt, CONTRACT_SANDBOXD);
    spec->cwd_fd = c->cwd_fd;
    if (exec_start(c->rt->exec, spec, ops, ctx, ret, &e) == 0)
        return 0;
    return refuse(ret_fail, status_of_start(&e), "%s: %s", c->op, e.msg);
}

/* ---- the end ---- */

void command_spawn_failed(const struct command *c, struct spawn_fail fail, struct command_fail *ret)
{
    bool is_cwd = fail.step == SPAWN_STEP_CHDIR;
    const char *root = runtime_root(&c->rt->opt, CONTRACT_SANDBOXD);
    const char *subject = !is_cwd ? c->program : c->cwd ? c->cwd : root;
    const char *why = strerrordesc_np(fail.sys) ? strerrordesc_np(fail.sys) : "unknown error";

    if (is_cwd && !c->cwd && fail.sys == ENOENT)
        root_set_known(false); /* it was deleted; the next command makes it again */
    if (fail.sys == ECANCELED)
        (void)refuse(ret, GRPC_UNAVAILABLE, "%s: sandboxd is shutting down", c->op);
    else if (!is_cwd && !c->program[0])
        (void)refuse(ret, GRPC_INTERNAL, "%s: the program's name is empty", c->op);
    else if (fail.sys == ENOENT)
        (void)refuse(ret, GRPC_NOT_FOUND, "%s: command or path not found: '%s': %s", c->op, subject,
                     why);
    else
        (void)refuse(ret, fail.sys == EACCES ? GRPC_PERMISSION_DENIED : GRPC_INTERNAL,
                     "%s: '%s': %s", c->op, subject, why);
}

int command_exit_code(const struct exec_result *r)
{
    return r->signal ? -1 : r->code;
}
