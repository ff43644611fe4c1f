#include "runtime/exec/exec_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

/* Notes a text and returns where it starts: the block may still move. */
static int note(struct buf *text, struct span a, struct span b, size_t *ret_at, struct err *e)
{
    size_t at = text->n;

    if (buf_add(text, a, e) < 0 || buf_add(text, b, e) < 0 || buf_addc(text, '\0', e) < 0)
        return -1;
    *ret_at = at;
    return 0;
}

static struct span name_of(const char *entry)
{
    const char *equals = strchr(entry, '=');

    return span_of(entry, equals ? (size_t)(equals - entry) : strlen(entry));
}

static bool is_hidden(const struct exec_pool_spec *spec, const char *entry)
{
    for (const char *const *name = spec->hidden; name && *name; name++) {
        if (span_is(name_of(entry), *name))
            return true;
    }
    return false;
}

int exec_env_prepare(struct exec_pool *pool, const struct exec_pool_spec *spec, struct err *e)
{
    size_t count = 0, at;

    pool->env_text = (struct buf)BUF_INIT(EXEC_ARGS_MAX_BYTES);
    for (char *const *entry = spec->environ; *entry; entry++) {
        if (is_hidden(spec, *entry))
            continue;
        if (note(&pool->env_text, span_cstr(*entry), SPAN_NONE, &at, e) < 0)
            return err_wrap(e, "the environment");
        count++;
    }
    pool->envp = own_array(count + 1, sizeof *pool->envp);
    pool->env_count = count;
    at = 0;
    for (size_t i = 0; i < count; i++) {
        pool->envp[i] = (char *)pool->env_text.p + at;
        at += strlen(pool->envp[i]) + 1;
        if (span_is(name_of(pool->envp[i]), "PATH"))
            pool->search_path = pool->envp[i] + strlen("PATH=");
    }
    return 0;
}

static int check_var(const struct exec_var *v, struct err *e)
{
    if (v->key.n == 0 || span_find(v->key, '=') != SIZE_MAX || span_find(v->key, '\0') != SIZE_MAX)
        return err_set(e, ERR_INVALID, "'%.*s' is not a name for a variable", SPAN_ARG(v->key));
    if (span_find(v->value, '\0') != SIZE_MAX)
        return err_set(e, ERR_INVALID, "the value of '%.*s' holds a NUL", SPAN_ARG(v->key));
    return 0;
}

/* True when a later variable of the request has the same name. */
static bool is_overruled(struct span key, const struct exec_var *vars, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (span_eq(vars[i].key, key))
            return true;
    }
    return false;
}

/* The pool's variables that are not overruled, then the request's. Texts of the request are at at[i]. */
static void merge_env(struct exec *x, const struct exec_spec *spec, const size_t *at)
{
    struct exec_launch *l = &x->launch;
    size_t n = 0;

    l->envp = own_array(x->pool->env_count + spec->var_count + 1, sizeof *l->envp);
    for (size_t i = 0; i < x->pool->env_count; i++) {
        if (!is_overruled(name_of(x->pool->envp[i]), spec->vars, spec->var_count))
            l->envp[n++] = x->pool->envp[i];
    }
    for (size_t i = 0; i < spec->var_count; i++) {
        if (!is_overruled(spec->vars[i].key, spec->vars + i + 1, spec->var_count - i - 1))
            l->envp[n++] = (char *)l->text.p + at[i];
    }
}

static struct span key_with_equals(struct span key, struct buf *scratch, struct err *e)
{
    buf_clear(scratch);
    if (buf_add(scratch, key, e) < 0 || buf_addc(scratch, '=', e) < 0)
        return SPAN_NONE;
    return buf_span(scratch);
}

static int note_vars(struct exec *x, const struct exec_spec *spec, size_t *at, struct err *e)
{
    OWN(buf_done) struct buf key = BUF_INIT(EXEC_ARGS_MAX_BYTES);

    for (size_t i = 0; i < spec->var_count; i++) {
        struct span name;

        if (check_var(&spec->vars[i], e) < 0)
            return -1;
        name = key_with_equals(spec->vars[i].key, &key, e);
        if (!name.n || note(&x->launch.text, name, spec->vars[i].value, &at[i], e) < 0)
            return -1;
    }
    return 0;
}

int exec_launch_prepare(struct exec *x, const struct exec_spec *spec, struct err *e)
{
    struct exec_launch *l = &x->launch;
    OWN_MEM size_t *at = NULL;
    size_t argc = 0, cwd_at = 0, first = 0;

    if (!spec->argv || !spec->argv[0])
        return err_set(e, ERR_INVALID, "there is no program to run");
    l->text = (struct buf)BUF_INIT(EXEC_ARGS_MAX_BYTES);
    for (; spec->argv[argc]; argc++) {
        if (note(&l->text, span_cstr(spec->argv[argc]), SPAN_NONE, &cwd_at, e) < 0)
            return -1;
    }
    if (spec->cwd && note(&l->text, span_cstr(spec->cwd), SPAN_NONE, &cwd_at, e) < 0)
        return -1;
    if (spec->var_count) {
        at = own_array(spec->var_count, sizeof *at);
        if (note_vars(x, spec, at, e) < 0)
            return -1;
        merge_env(x, spec, at);
    }
    if (spec->cwd_fd > 0) {
        l->cwd_fd = fcntl(spec->cwd_fd, F_DUPFD_CLOEXEC, 3);
        if (l->cwd_fd < 0)
            return err_sys(e, "cannot keep the working directory");
    }
    l->argv = own_array(argc + 1, sizeof *l->argv);
    for (size_t i = 0; i < argc; i++) {
        l->argv[i] = (char *)l->text.p + first;
        first += strlen(l->argv[i]) + 1;
    }
    l->cwd = spec->cwd ? (char *)l->text.p + cwd_at : NULL;
    return 0;
}

bool exec_launch_is_over(const struct exec_launch *l)
{
    return !l->flight || spawn_has_left(l->flight);
}

void exec_launch_done(struct exec_launch *l)
{
    spawn_flight_free(take_ptr(&l->flight));
    buf_done(&l->text);
    free(take_ptr(&l->argv));
    free(take_ptr(&l->envp));
    own_fd_close(&l->cwd_fd);
    l->cwd_fd = -1;
}

/* A pipe whose end on our side does not block; the command's end does, as programs expect. */
static int open_pipe(int *ret_ours, int *ret_its, bool is_input)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    *ret_ours = fds[is_input ? 1 : 0];
    *ret_its = fds[is_input ? 0 : 1];
    return fcntl(*ret_ours, F_SETFL, O_NONBLOCK | (is_input ? O_WRONLY : O_RDONLY));
}

/* A new terminal. The slave is opened through the master, so /dev/pts need not be reachable by path. */
static int open_terminal(const struct exec *x, int *ret_master, int *ret_slave)
{
    struct winsize size = { .ws_col = x->cols, .ws_row = x->rows };
    int unlocked = 0;

    *ret_master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (*ret_master < 0 && errno == ENOENT)
        *ret_master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (*ret_master < 0 || ioctl(*ret_master, TIOCSPTLCK, &unlocked) < 0)
        return -1;
    *ret_slave = ioctl(*ret_master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*ret_slave < 0)
        return -1;
    return x->cols && x->rows ? ioctl(*ret_master, TIOCSWINSZ, &size) : 0;
}

/* Fills our ends in l and the command's in fds. -1 with errno. */
static int open_ends(struct exec *x, int fds[3])
{
    struct exec_launch *l = &x->launch;

    switch (x->mode) {
    case EXEC_PTY:
        if (open_terminal(x, &l->out_fd, &fds[0]) < 0)
            return -1;
        fds[1] = fds[2] = fds[0];
        /* A second descriptor for writing, so that input and output are watched apart. */
        l->in_fd = fcntl(l->out_fd, F_DUPFD_CLOEXEC, 3);
        return l->in_fd;
    case EXEC_STREAM:
        if (open_pipe(&l->in_fd, &fds[0], true) < 0)
            return -1;
        break;
    case EXEC_CAPTURE:
    case EXEC_MERGED:
        fds[0] = x->pool->null_fd;
        break;
    }
    if (open_pipe(&l->out_fd, &fds[1], false) < 0)
        return -1;
    if (x->mode != EXEC_MERGED)
        return open_pipe(&l->err_fd, &fds[2], false);
    fds[2] = fds[1];
    return 0;
}

static void fill_spec(struct exec *x)
{
    struct exec_launch *l = &x->launch;

    l->spec = (struct spawn_spec){
        .argv = l->argv,
        .envp = l->envp ? l->envp : x->pool->envp,
        .search_path = x->pool->search_path,
        .cwd = l->cwd,
        .cwd_fd = l->cwd_fd,
        .flags = SPAWN_SESSION | SPAWN_SUBREAPER | (x->mode == EXEC_PTY ? SPAWN_TTY : 0),
    };
}

/* Closes the command's ends, which it has copies of. One descriptor may stand for several. */
static void close_ends(const struct exec *x, int fds[3])
{
    if (fds[0] == x->pool->null_fd)
        fds[0] = -1;
    if (fds[2] == fds[1])
        fds[2] = -1;
    if (fds[1] == fds[0])
        fds[1] = -1;
    for (int i = 0; i < 3; i++)
        own_fd_close(&fds[i]);
}

static void start(struct exec *x, bool is_waited_for)
{
    struct exec_launch *l = &x->launch;
    int fds[3] = { -1, -1, -1 };

    fill_spec(x);
    if (open_ends(x, fds) < 0) {
        l->fail =
            (struct spawn_fail){ x->mode == EXEC_PTY ? SPAWN_STEP_TTY : SPAWN_STEP_STDIO, errno };
    } else {
        memcpy(l->spec.fds, fds, sizeof fds);
        l->pid =
            is_waited_for ? spawn(&l->spec, &l->fail) : spawn_begin(&l->spec, &l->flight, &l->fail);
    }
    close_ends(x, fds);
}

/* Who we are: a spawn thread. The loop waits for us to be done and reads nothing of the launch meanwhile. */
void exec_launch_run(void *ctx)
{
    start(ctx, true);
}

void exec_launch_begin(struct exec *x)
{
    start(x, false);
}
