#include "sandbox/sandbox.h"

#include "base/str.h"
#include "ev/timer.h"
#include "proto/pb.h"
#include "proto/process.pb-c.h"
#include "sandbox/limits.h"
#include "sandbox/rpc.h"

#define METHOD(name) "/process.v1.ProcessService/" name
#define SIGNALS_MAX  65 /* Linux numbers them 1 to 64 */

/* The chunk is SANDBOX_CHUNK_BYTES. The times are years: the owner decides how long a command may be silent. */
/* clang-format off */
const char *const sandbox_runtime_args[] = {
    "--root", "/", "--stream-chunk-size", "65536", "--http-idle-timeout", "87600h", "--stall-timeout", "87600h",
    "--log-level", "warn", NULL,
};
/* clang-format on */

struct sandbox {
    struct ev_loop *loop;
    struct rpc *rpc;
};

struct sandbox_exec {
    struct ev_loop *loop;
    struct rpc *rpc;        /* outlives us, also when the sandbox is closed */
    struct rpc_call *start; /* NULL once over */
    struct rpc_call *write; /* the piece of input PID 1 is busy with */
    int32_t id;             /* 0 until it runs */
    struct ev_timer deadline;
    struct ev_task task;
    struct buf stdin_queue;
    bool is_stdin_ending; /* end of file follows the queue */
    bool is_stdin_over;   /* that was sent, or nobody reads */
    bool is_full;         /* on_drain is owed */
    bool is_over;
    uint64_t signals; /* bit N - 1: to be sent when it runs */
    uint16_t cols, rows;
    bool has_resize;
    const struct sandbox_exec_events *events;
    void *ctx;
};

int sandbox_open(struct ev_loop *loop, int control_fd, struct sandbox **ret, struct err *e)
{
    struct sandbox *s = NEW(struct sandbox);

    s->loop = loop;
    if (rpc_open(loop, control_fd, NULL, NULL, &s->rpc, e) < 0) {
        free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

struct ev_loop *sandbox_loop(const struct sandbox *s)
{
    return s->loop;
}

void sandbox_close(struct sandbox *s)
{
    if (!s)
        return;
    rpc_close(s->rpc);
    ev_free_later(s->loop, s, free);
}

/* ---- the end ---- */

static void exec_free(void *obj)
{
    struct sandbox_exec *x = obj;

    buf_done(&x->stdin_queue);
    free(x);
}

/* The only way out, from events only. */
static void finish(struct sandbox_exec *x, int code, const struct err *e)
{
    assert(!x->is_over);
    x->is_over = true;
    ev_timer_stop(x->loop, &x->deadline);
    ev_post_cancel(&x->task);
    if (x->start)
        rpc_call_drop(take_ptr(&x->start));
    if (x->write)
        rpc_call_drop(take_ptr(&x->write));
    x->events->on_exit(x->ctx, code, e);
    ev_free_later(x->loop, x, exec_free);
}

static void cancel_now(void *ctx)
{
    struct err e;

    (void)err_set(&e, ERR_CANCELED, "the command was called off");
    finish(ctx, 0, &e);
}

void sandbox_exec_cancel(struct sandbox_exec *x)
{
    if (x->is_over || x->task.is_queued)
        return;
    if (x->start)
        rpc_call_drop(take_ptr(&x->start));
    ev_post(x->loop, &x->task, cancel_now, x);
}

static void too_late(void *ctx)
{
    struct err e;

    (void)err_set(&e, ERR_TIMEOUT, "PID 1 did not start the command within %d s",
                  SANDBOX_START_MS / 1000);
    finish(ctx, 0, &e);
}

/* ---- small calls: what PID 1 answers to them changes nothing ---- */

static void answer_ignored(void *ctx, const struct err *e)
{
    (void)ctx,
        (void)e; /* the command has ended meanwhile, or the start call tells of the failure */
}

static void call_quietly(struct sandbox_exec *x, const char *path, const ProtobufCMessage *m)
{
    static const struct rpc_events events = { .on_done = answer_ignored };
    OWN(buf_done) struct buf framed = BUF_INIT(256);
    struct rpc_call *c;
    struct err e;

    if (pb_pack_framed(m, &framed, &e) == 0)
        (void)rpc_call(x->rpc, path, &framed, &events, NULL, &c, &e);
}

static void send_signal(struct sandbox_exec *x, int number)
{
    Process__V1__SendSignalRequest m = PROCESS__V1__SEND_SIGNAL_REQUEST__INIT;

    m.process_id = x->id;
    m.signal = (Process__V1__Signal)number;
    call_quietly(x, METHOD("SendSignal"), &m.base);
}

static void send_resize(struct sandbox_exec *x)
{
    Process__V1__ResizeTTYRequest m = PROCESS__V1__RESIZE_TTYREQUEST__INIT;

    x->has_resize = false;
    m.process_id = x->id;
    m.cols = x->cols;
    m.rows = x->rows;
    call_quietly(x, METHOD("ResizeTTY"), &m.base);
}

void sandbox_exec_signal(struct sandbox_exec *x, int number)
{
    if (number <= 0 || number >= SIGNALS_MAX || x->is_over)
        return;
    if (x->id)
        send_signal(x, number);
    else
        x->signals |= 1ull << (number - 1);
}

void sandbox_exec_resize(struct sandbox_exec *x, uint16_t cols, uint16_t rows)
{
    x->cols = cols;
    x->rows = rows;
    x->has_resize = true;
    if (x->id && !x->is_over)
        send_resize(x);
}

/* ---- input ---- */

static void write_next(struct sandbox_exec *x);

static void on_written(void *ctx, const struct err *e)
{
    struct sandbox_exec *x = ctx;
    bool was_full = x->is_full;

    x->write = NULL;
    if (e && !x->is_stdin_over) {
        x->is_stdin_over = true;
        x->is_full = false;
        buf_done(&x->stdin_queue);
        x->events->on_drain(x->ctx, false);
        return;
    }
    write_next(x);
    if (was_full && x->stdin_queue.n <= SANDBOX_STDIN_HIGH_BYTES / 2) {
        x->is_full = false;
        x->events->on_drain(x->ctx, true);
    }
}

/* One call at a time: its answer comes when the pipe took the bytes, so a command that does not read holds us up. */
static void write_next(struct sandbox_exec *x)
{
    static const struct rpc_events events = { .on_done = on_written };
    OWN(buf_done) struct buf framed = BUF_INIT(SANDBOX_INPUT_BYTES + 256);
    Process__V1__WriteStdinRequest m;
    Google__Protobuf__Empty eof = GOOGLE__PROTOBUF__EMPTY__INIT;
    size_t n = MIN(x->stdin_queue.n, (size_t)SANDBOX_INPUT_BYTES);
    struct err e;

    if (!x->id || x->write || x->is_over || x->is_stdin_over || (!n && !x->is_stdin_ending))
        return;
    process__v1__write_stdin_request__init(&m);
    m.process_id = x->id;
    if (n) {
        m.payload_case = PROCESS__V1__WRITE_STDIN_REQUEST__PAYLOAD_INPUT;
        m.input = (ProtobufCBinaryData){ n, x->stdin_queue.p };
    } else {
        x->is_stdin_over = true;
        m.payload_case = PROCESS__V1__WRITE_STDIN_REQUEST__PAYLOAD_EOF;
        m.eof = &eof;
    }
    if (pb_pack_framed(&m.base, &framed, &e) == 0)
        (void)rpc_call(x->rpc, METHOD("WriteStdin"), &framed, &events, x, &x->write, &e);
    buf_consume(&x->stdin_queue, n); /* when the call failed the start call tells why */
}

void sandbox_exec_write(struct sandbox_exec *x, struct span bytes)
{
    struct err e;

    if (x->is_over || x->is_stdin_over || x->is_stdin_ending)
        return;
    if (buf_add(&x->stdin_queue, bytes, &e) < 0)
        return; /* twice the high mark: the caller was told to stop */
    x->is_full = x->stdin_queue.n >= SANDBOX_STDIN_HIGH_BYTES;
    write_next(x);
}

bool sandbox_exec_is_full(const struct sandbox_exec *x)
{
    return x->is_full;
}

void sandbox_exec_close_stdin(struct sandbox_exec *x)
{
    x->is_stdin_ending = true;
    write_next(x);
}

/* ---- what the command does ---- */

static void started(struct sandbox_exec *x, const Process__V1__InitEvent *init)
{
    if (x->id || !init || init->process_id <= 0)
        return; /* nonsense; the deadline holds */
    x->id = init->process_id;
    ev_timer_stop(x->loop, &x->deadline);
    x->events->on_started(x->ctx);
    for (int n = 1; n < SIGNALS_MAX; n++)
        if (x->signals & 1ull << (n - 1))
            send_signal(x, n);
    if (x->has_resize)
        send_resize(x);
    write_next(x);
}

static void output(struct sandbox_exec *x, enum sandbox_output which, ProtobufCBinaryData data)
{
    if (x->id && data.len)
        x->events->on_output(x->ctx, which, span_of(data.data, data.len));
}

static int exit_code_of(const Process__V1__ExitEvent *e)
{
    return e && e->exit_code >= 0 && e->exit_code <= 255 ? e->exit_code : 255;
}

static void on_event(void *ctx, struct span msg)
{
    struct sandbox_exec *x = ctx;
    struct err e;
    OWN(pb_done)
    Process__V1__StartResponse *m =
        (void *)pb_unpack(&process__v1__start_response__descriptor, msg, &e);

    if (x->is_over)
        return;
    if (!m) {
        (void)err_wrap(&e, "PID 1 is not to be understood");
        finish(x, 0, &e);
        return;
    }
    switch (m->event_case) {
    case PROCESS__V1__START_RESPONSE__EVENT_INIT:
        started(x, m->init);
        break;
    case PROCESS__V1__START_RESPONSE__EVENT_STDOUT:
        output(x, SANDBOX_STDOUT, m->stdout);
        break;
    case PROCESS__V1__START_RESPONSE__EVENT_STDERR:
        output(x, SANDBOX_STDERR, m->stderr);
        break;
    case PROCESS__V1__START_RESPONSE__EVENT_EXIT:
        finish(x, exit_code_of(m->exit), NULL); /* whether PID 1 ends the call is its business */
        break;
    case PROCESS__V1__START_RESPONSE__EVENT__NOT_SET:
    case _PROCESS__V1__START_RESPONSE__EVENT__CASE_IS_INT_SIZE:
        break;
    }
}

static void on_start_done(void *ctx, const struct err *e)
{
    struct sandbox_exec *x = ctx;
    struct err odd;

    x->start = NULL;
    if (x->is_over)
        return;
    (void)err_set(&odd, ERR_PROTOCOL, "PID 1 did not say how the command ended");
    finish(x, 0, e ? e : &odd);
}

/* ---- the start ---- */

static int check_text(const char *what, const char *text, struct err *e)
{
    if (!str_utf8_valid(span_cstr(text)))
        return err_set(e, ERR_INVALID, "%s is not UTF-8", what);
    return 0;
}

/* "NAME=value" cut in two; *entry points into a copy that the caller frees. */
static int split_var(const char *var, Process__V1__ProcessConfig__EnvVarsEntry *entry,
                     struct err *e)
{
    const char *eq = strchr(var, '=');

    if (!eq || eq == var)
        return err_set(e, ERR_INVALID, "a variable is NAME=value, not '%s'", var);
    if (check_text("a variable", var, e) < 0)
        return -1;
    process__v1__process_config__env_vars_entry__init(entry);
    entry->key = span_dup(span_of(var, (size_t)(eq - var)));
    entry->value = (char *)(uintptr_t)(eq + 1);
    return 0;
}

static size_t count(char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static int pack_start(const struct sandbox_exec_spec *spec, Process__V1__ProcessConfig *config,
                      struct buf *framed, struct err *e)
{
    Process__V1__StartRequest m = PROCESS__V1__START_REQUEST__INIT;
    Process__V1__PTY pty = PROCESS__V1__PTY__INIT;

    config->n_command = count(spec->argv);
    config->command = (char **)(uintptr_t)spec->argv;
    config->cwd = (char *)(uintptr_t)spec->cwd;
    if (!config->n_command)
        return err_set(e, ERR_INVALID, "no command");
    for (size_t i = 0; i < config->n_command; i++)
        if (check_text("an argument of the command", spec->argv[i], e) < 0)
            return -1;
    if (spec->cwd && check_text("the working directory", spec->cwd, e) < 0)
        return -1;
    pty.cols = spec->cols;
    pty.rows = spec->rows;
    m.config = config;
    m.pty = spec->has_tty ? &pty : NULL;
    return pb_pack_framed(&m.base, framed, e);
}

static int pack(const struct sandbox_exec_spec *spec, struct buf *framed, struct err *e)
{
    Process__V1__ProcessConfig config = PROCESS__V1__PROCESS_CONFIG__INIT;
    size_t n = count(spec->env);
    OWN_MEM Process__V1__ProcessConfig__EnvVarsEntry *vars = own_array(n + 1, sizeof *vars);
    OWN_MEM Process__V1__ProcessConfig__EnvVarsEntry **list = own_array(n + 1, sizeof *list);
    int done = 0;

    for (; config.n_env_vars < n && done == 0; config.n_env_vars++) {
        list[config.n_env_vars] = &vars[config.n_env_vars];
        done = split_var(spec->env[config.n_env_vars], list[config.n_env_vars], e);
    }
    config.env_vars = list;
    if (done == 0)
        done = pack_start(spec, &config, framed, e);
    for (size_t i = 0; i < n; i++)
        free(vars[i].key);
    return done;
}

int sandbox_exec(struct sandbox *s, const struct sandbox_exec_spec *spec, struct sandbox_exec **ret,
                 struct err *e)
{
    static const struct rpc_events events = { on_event, on_start_done };
    OWN(buf_done) struct buf framed = BUF_INIT(SANDBOX_START_MAX_BYTES);
    struct sandbox_exec *x;

    if (pack(spec, &framed, e) < 0)
        return err_wrap(e, "cannot start a command");
    x = NEW(struct sandbox_exec);
    x->loop = s->loop;
    x->rpc = s->rpc;
    x->events = spec->events;
    x->ctx = spec->ctx;
    x->stdin_queue.max = 2 * SANDBOX_STDIN_HIGH_BYTES;
    if (rpc_call(s->rpc, METHOD("Start"), &framed, &events, x, &x->start, e) < 0) {
        exec_free(x);
        return -1;
    }
    ev_timer_start(s->loop, &x->deadline, SANDBOX_START_MS, too_late, x);
    *ret = x;
    return 0;
}

void sandbox_exec_pause(struct sandbox_exec *x, bool is_paused)
{
    if (x->start)
        rpc_call_pause(x->start, is_paused);
}
