#include "sandbox/sandbox.h"

#include "ev/timer.h"
#include "http/grpc.h"
#include "sandbox/limits.h"
#include "sandbox/line.h"

#define SIGNALS_MAX 65 /* Linux numbers them 1 to 64 */

_Static_assert(TALK_WINDOW_BYTES == SANDBOX_WINDOW_BYTES, "what the callers of sandbox.h count on");

/* The chunk is TALK_PIECE_MAX_BYTES. The times are years: the owner decides how long a command may be silent. */
/* clang-format off */
const char *const sandbox_runtime_args[] = {
    "--root", "/", "--stream-chunk-size", "65536", "--http-idle-timeout", "87600h", "--stall-timeout", "87600h",
    "--log-level", "warn", NULL,
};
/* clang-format on */

struct sandbox {
    struct ev_loop *loop;
    struct line *line;
};

struct sandbox_exec {
    struct ev_loop *loop;
    struct line *line; /* while the call is on it */
    struct line_call call;
    bool is_running; /* PID 1 said so */
    bool is_writing; /* PID 1 is busy with a piece of input */
    bool is_paused;
    size_t window; /* output that PID 1 may send */
    size_t owed;   /* output that was used; PID 1 does not know yet */
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
    if (line_open(loop, control_fd, &s->line, e) < 0) {
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
    line_close(s->line);
    ev_free_later(s->loop, s, free);
}

/* ---- the end ---- */

static void exec_free(void *obj)
{
    struct sandbox_exec *x = obj;

    buf_done(&x->stdin_queue);
    free(x);
}

/* Takes the command off the line; what PID 1 still says of it is not heard. */
static void call_off(struct sandbox_exec *x)
{
    if (!x->call.id)
        return;
    line_send(x->line, &x->call, TALK_CANCEL, SPAN_NONE);
    line_leave(x->line, &x->call);
}

/* The only way out, from events only. */
static void finish(struct sandbox_exec *x, int code, const struct err *e)
{
    assert(!x->is_over);
    x->is_over = true;
    ev_timer_stop(x->loop, &x->deadline);
    ev_post_cancel(&x->task);
    call_off(x);
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
    call_off(x);
    ev_post(x->loop, &x->task, cancel_now, x);
}

static void too_late(void *ctx)
{
    struct err e;

    (void)err_set(&e, ERR_TIMEOUT, "PID 1 did not start the command within %d s",
                  SANDBOX_START_MS / 1000);
    finish(ctx, 0, &e);
}

/* ---- signals and sizes ---- */

static void send_signal(struct sandbox_exec *x, int number)
{
    line_send_number(x->line, &x->call, TALK_SIGNAL, (uint32_t)number);
}

static void send_resize(struct sandbox_exec *x)
{
    x->has_resize = false;
    line_send_number(x->line, &x->call, TALK_RESIZE, (uint32_t)x->cols << 16 | x->rows);
}

void sandbox_exec_signal(struct sandbox_exec *x, int number)
{
    if (number <= 0 || number >= SIGNALS_MAX || x->is_over)
        return;
    if (x->is_running)
        send_signal(x, number);
    else
        x->signals |= 1ull << (number - 1);
}

void sandbox_exec_resize(struct sandbox_exec *x, uint16_t cols, uint16_t rows)
{
    x->cols = cols;
    x->rows = rows;
    x->has_resize = true;
    if (x->is_running && !x->is_over)
        send_resize(x);
}

/* ---- input ---- */

/* One piece at a time: its answer comes when the pipe took the bytes, so a command that does not read holds us up. */
static void write_next(struct sandbox_exec *x)
{
    size_t n = MIN(x->stdin_queue.n, (size_t)TALK_INPUT_MAX_BYTES);

    if (!x->is_running || x->is_writing || x->is_over || x->is_stdin_over ||
        (!n && !x->is_stdin_ending))
        return;
    if (!n) {
        x->is_stdin_over = true;
        line_send(x->line, &x->call, TALK_END, SPAN_NONE);
        return;
    }
    x->is_writing = true;
    line_send(x->line, &x->call, TALK_INPUT, span_slice(buf_span(&x->stdin_queue), 0, n));
    buf_consume(&x->stdin_queue, n);
}

static void taken(struct sandbox_exec *x)
{
    bool was_full = x->is_full;

    if (!x->is_writing)
        return; /* nonsense, and harmless */
    x->is_writing = false;
    write_next(x);
    if (was_full && x->stdin_queue.n <= SANDBOX_STDIN_HIGH_BYTES / 2) {
        x->is_full = false;
        x->events->on_drain(x->ctx, true);
    }
}

static void shut(struct sandbox_exec *x)
{
    x->is_writing = false;
    if (x->is_stdin_over)
        return;
    x->is_stdin_over = true;
    x->is_full = false;
    buf_done(&x->stdin_queue);
    x->events->on_drain(x->ctx, false);
}

size_t sandbox_exec_write(struct sandbox_exec *x, struct span bytes)
{
    size_t left;

    if (x->is_over || x->is_stdin_over || x->is_stdin_ending)
        return bytes.n;
    left = buf_add_capped(&x->stdin_queue, bytes);
    x->is_full = x->stdin_queue.n >= SANDBOX_STDIN_HIGH_BYTES;
    write_next(x);
    return bytes.n - left;
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

static void started(struct sandbox_exec *x)
{
    if (x->is_running)
        return;
    x->is_running = true;
    ev_timer_stop(x->loop, &x->deadline);
    x->events->on_started(x->ctx);
    for (int n = 1; n < SIGNALS_MAX; n++)
        if (x->signals & 1ull << (n - 1))
            send_signal(x, n);
    if (x->has_resize)
        send_resize(x);
    write_next(x);
}

/* Half a window at a time: a command that says little never hears of it. */
static void give_credit(struct sandbox_exec *x)
{
    if (x->is_paused || x->owed < TALK_WINDOW_BYTES / 2)
        return;
    line_send_number(x->line, &x->call, TALK_CREDIT, (uint32_t)x->owed);
    x->window += x->owed;
    x->owed = 0;
}

static void output(struct sandbox_exec *x, enum sandbox_output which, struct span piece)
{
    struct err e;

    if (piece.n > x->window || !x->is_running) {
        (void)err_set(&e, ERR_PROTOCOL, "PID 1 sent output that it was not asked for");
        line_break(x->line, &e);
        return;
    }
    x->window -= piece.n;
    x->owed += piece.n;
    x->events->on_output(x->ctx, which, piece);
    if (!x->is_over)
        give_credit(x);
}

/* PID 1's part is done: no need to call anything off. */
static void ended(struct sandbox_exec *x, int code, const struct err *e)
{
    line_leave(x->line, &x->call);
    finish(x, code, e);
}

/* The text is PID 1's. */
static void failed(struct sandbox_exec *x, struct span bytes)
{
    enum grpc_status status = bytes.p[0] ? bytes.p[0] : GRPC_UNKNOWN;
    struct err e;
    OWN(buf_done) struct buf clean = BUF_INIT(sizeof e.msg - 1);

    line_clean_text(span_skip(bytes, 1), &clean);
    (void)err_set(&e, grpc_err_code(status), "%s",
                  clean.n ? buf_cstr(&clean) : grpc_status_name(status));
    ended(x, 0, &e);
}

static void exited(struct sandbox_exec *x, uint32_t code)
{
    struct err e;

    if (x->is_running) {
        ended(x, (int)code, NULL);
        return;
    }
    (void)err_set(&e, ERR_PROTOCOL, "PID 1 ended a command that it had not started");
    ended(x, 0, &e);
}

static void on_frame(void *ctx, const struct talk_frame *f)
{
    struct sandbox_exec *x = ctx;

    switch (f->kind) {
    case TALK_STARTED:
        started(x);
        break;
    case TALK_OUT:
        output(x, SANDBOX_STDOUT, f->bytes);
        break;
    case TALK_ERR:
        output(x, SANDBOX_STDERR, f->bytes);
        break;
    case TALK_TAKEN:
        taken(x);
        break;
    case TALK_SHUT:
        shut(x);
        break;
    case TALK_EXIT:
        exited(x, talk_number(f));
        break;
    case TALK_FAILED:
        failed(x, f->bytes);
        break;
    case TALK_START:
    case TALK_INPUT:
    case TALK_END:
    case TALK_SIGNAL:
    case TALK_RESIZE:
    case TALK_CREDIT:
    case TALK_CANCEL:
        break; /* ours: the line lets none through */
    }
}

static void on_gone(void *ctx, const struct err *e)
{
    finish(ctx, 0, e);
}

/* ---- the start ---- */

static size_t count(char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

int sandbox_exec(struct sandbox *s, const struct sandbox_exec_spec *spec, struct sandbox_exec **ret,
                 struct err *e)
{
    const struct talk_start start = {
        .has_tty = spec->has_tty,
        .cols = spec->cols,
        .rows = spec->rows,
        .cwd = (char *)(uintptr_t)spec->cwd,
        .argv = (char **)(uintptr_t)spec->argv,
        .argc = count(spec->argv),
        .env = (char **)(uintptr_t)spec->env,
        .env_count = count(spec->env),
    };
    struct sandbox_exec *x = NEW(struct sandbox_exec);

    x->loop = s->loop;
    x->line = s->line;
    x->call = (struct line_call){ .on_frame = on_frame, .on_gone = on_gone, .ctx = x };
    x->window = TALK_WINDOW_BYTES;
    x->events = spec->events;
    x->ctx = spec->ctx;
    x->stdin_queue.max = 2 * SANDBOX_STDIN_HIGH_BYTES;
    if (line_start(s->line, &x->call, &start, e) < 0) {
        exec_free(x);
        return err_wrap(e, "cannot start a command");
    }
    ev_timer_start(s->loop, &x->deadline, SANDBOX_START_MS, too_late, x);
    *ret = x;
    return 0;
}

void sandbox_exec_pause(struct sandbox_exec *x, bool is_paused)
{
    x->is_paused = is_paused;
    if (x->call.id)
        give_credit(x);
}
