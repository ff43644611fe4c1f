/* Commands in a container, through PID 1 of its sandbox. */
#include "node/limits.h"
#include "node/make.h"
#include "node/streams.h"

#include "sandbox/sandbox.h"

#include <signal.h>
#include <string.h>

struct exec {
    struct pod_process base;
    struct node *node;
    struct crew_job job;
    char box[RUN_NAME_BYTES];
    char *cwd;
    char **argv; /* one block */
    bool has_tty, has_stdin;
    uint16_t cols, rows;
    int control_fd;
    struct err e;
    struct sandbox *sandbox;
    struct sandbox_exec *exec; /* NULL: not yet */
    struct buf waiting;        /* input before that, and what the sandbox does not take yet */
    const struct pod_process_events *events; /* NULL: the client went */
    void *ctx;
    bool is_stdin_ended, is_paused, is_started;
};

static struct exec *of(struct pod_process *p)
{
    return CONTAINER(p, struct exec, base);
}

static void process_free(void *obj)
{
    struct exec *p = obj;

    own_fd_close(&p->control_fd);
    buf_done(&p->waiting);
    free(p->argv);
    free(p->cwd);
    free(p);
}

/* Over: the sandbox's connection goes, then we do. */
static void finish(struct exec *p, int code, const struct err *e)
{
    const struct pod_process_events *events = take_ptr(&p->events);

    p->exec = NULL;
    sandbox_close(take_ptr(&p->sandbox));
    if (events)
        events->on_exit(p->ctx, code, e);
    ev_free_later(p->node->loop, p, process_free);
}

/* ---- what the client says ---- */

/* Bytes that wait go first, and the end of input last. */
static void push(struct exec *p)
{
    if (p->waiting.n) {
        buf_consume(&p->waiting, sandbox_exec_write(p->exec, buf_span(&p->waiting)));
        if (p->waiting.n)
            return; /* on_drain comes */
        buf_done(&p->waiting);
    }
    if (p->is_stdin_ended)
        sandbox_exec_close_stdin(p->exec);
}

static int exec_write(struct pod_process *base, struct span bytes, struct err *e)
{
    struct exec *p = of(base);

    if (p->exec && !p->waiting.n)
        bytes = span_skip(bytes, sandbox_exec_write(p->exec, bytes));
    if (buf_add(&p->waiting, bytes, e) < 0)
        return err_wrap(e, "input that waits for its command");
    return 0;
}

static bool is_full(const struct exec *p)
{
    return p->exec ? p->waiting.n || sandbox_exec_is_full(p->exec)
                   : p->waiting.n >= NODE_STDIN_HIGH_BYTES;
}

static bool exec_is_full(const struct pod_process *base)
{
    return is_full(CONTAINER(base, const struct exec, base));
}

static void exec_close_stdin(struct pod_process *base)
{
    struct exec *p = of(base);

    p->is_stdin_ended = true;
    if (p->exec)
        push(p);
}

static void exec_resize(struct pod_process *base, uint16_t cols, uint16_t rows)
{
    struct exec *p = of(base);

    p->cols = cols;
    p->rows = rows;
    if (p->exec)
        sandbox_exec_resize(p->exec, cols, rows);
}

static void exec_pause(struct pod_process *base, bool is_paused)
{
    struct exec *p = of(base);

    p->is_paused = is_paused;
    if (p->exec)
        sandbox_exec_pause(p->exec, is_paused);
}

static void exec_leave(struct pod_process *base)
{
    struct exec *p = of(base);

    p->events = NULL;
    if (!p->exec)
        return; /* `reached` ends it */
    sandbox_exec_pause(p->exec, false);
    p->is_stdin_ended = true;
    push(p);
}

static const struct process_ops ops = { .write = exec_write,
                                        .is_full = exec_is_full,
                                        .close_stdin = exec_close_stdin,
                                        .resize = exec_resize,
                                        .pause = exec_pause,
                                        .leave = exec_leave };

/* ---- what PID 1 says ---- */

static void on_started(void *ctx)
{
    struct exec *p = ctx;

    p->is_started = true;
}

static void on_output(void *ctx, enum sandbox_output which, struct span piece)
{
    struct exec *p = ctx;

    if (p->events)
        p->events->on_output(p->ctx, which == SANDBOX_STDOUT ? POD_STDOUT : POD_STDERR, piece);
    else
        sandbox_exec_cancel(p->exec); /* it writes to nobody: a broken pipe would end it too */
}

static void on_drain(void *ctx, bool is_open)
{
    struct exec *p = ctx;

    (void)is_open; /* where no process reads, all that waits is taken, and gone */
    push(p);
    if (p->events && !is_full(p))
        p->events->on_drain(p->ctx);
}

/* With PID 1 the kernel kills all that it started, so a command whose sandbox is gone ended as any that is killed does:
 * clients take that code for the end of the Pod. */
static void on_exit_of(void *ctx, int code, const struct err *e)
{
    struct exec *p = ctx;

    if (e && e->code == ERR_CLOSED && p->is_started)
        finish(p, 128 + SIGKILL, NULL);
    else
        finish(p, code, e);
}

static const struct sandbox_exec_events exec_events = {
    .on_started = on_started, .on_output = on_output, .on_drain = on_drain, .on_exit = on_exit_of
};

/* ---- its start ---- */

static void run(void *ctx, struct engine *en, const struct err *e)
{
    struct exec *p = ctx;

    p->control_fd = -1;
    if (!en)
        p->e = *e;
    else if (engine_control(en, p->box, &p->control_fd, &p->e) < 0)
        p->control_fd = -1;
}

static int begin(struct exec *p, struct err *e)
{
    static char term[] = "TERM=xterm";
    char *const tty_env[] = { term, NULL };
    const struct sandbox_exec_spec spec = { .argv = p->argv,
                                            .env = p->has_tty ? tty_env : NULL,
                                            .cwd = p->cwd,
                                            .has_tty = p->has_tty,
                                            .cols = p->cols,
                                            .rows = p->rows,
                                            .events = &exec_events,
                                            .ctx = p };

    if (sandbox_open(p->node->loop, take_fd(&p->control_fd), &p->sandbox, e) < 0)
        return -1;
    return sandbox_exec(p->sandbox, &spec, &p->exec, e);
}

static void reached(void *ctx)
{
    struct exec *p = ctx;
    bool was_full = is_full(p);

    if (p->control_fd < 0 || !p->events || begin(p, &p->e) < 0) {
        finish(p, 0, &p->e);
        return;
    }
    p->is_stdin_ended |= !p->has_stdin;
    push(p);
    sandbox_exec_pause(p->exec, p->is_paused);
    if (was_full && !is_full(p))
        p->events->on_drain(p->ctx);
}

static char **copy_words(char *const *argv, size_t argc)
{
    size_t bytes = (argc + 1) * sizeof *argv;
    char **copy, *text;

    for (size_t i = 0; i < argc; i++)
        bytes += strlen(argv[i]) + 1;
    copy = own_new(bytes);
    text = (char *)(copy + argc + 1);
    for (size_t i = 0; i < argc; i++) {
        size_t n = strlen(argv[i]) + 1;

        copy[i] = memcpy(text, argv[i], n);
        text += n;
    }
    return copy;
}

int exec_start(struct node *n, const struct pod_request *r, const struct pod_process_events *events,
               void *ctx, struct pod_process **ret, struct err *e)
{
    struct record *record = record_find(n, r->ns, r->pod);
    size_t at = record ? record_container(record, r->container) : SIZE_MAX;
    struct exec *p;

    if (at == SIZE_MAX || record->life.v[at].now.state != RUN_UP)
        return err_set(e, ERR_NOT_FOUND, "container not found (\"%s\")", r->container);
    p = NEW(struct exec);
    p->base.ops = &ops;
    p->node = n;
    p->control_fd = -1;
    p->waiting.max = NODE_STDIN_MAX_BYTES;
    p->events = events;
    p->ctx = ctx;
    p->argv = copy_words(r->argv, r->argc);
    p->has_tty = r->has_tty;
    p->has_stdin = r->has_stdin;
    p->cwd = own_strdup(make_cwd(record, at));
    record_box(record, at, record->life.v[at].now.attempt, p->box);
    crew_submit(n->crew, &p->job, run, reached, p);
    *ret = &p->base;
    return 0;
}
