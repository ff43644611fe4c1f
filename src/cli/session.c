#include "cli/session.h"

#include "cli/command.h"
#include "cli/signals.h"
#include "cli/stream.h"
#include "cli/tty.h"
#include "ev/timer.h"
#include "sandbox/limits.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>

#define OUT_LOW_BYTES (32 * 1024)
#define END_OF_INPUT                                                                               \
    "\004" /* what Ctrl-D types: a terminal has no other way to end input and go on */

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, 0 };

struct session {
    const struct session_spec *spec;
    struct ev_loop *loop;
    struct sandbox *sandbox;
    struct sandbox_exec *exec; /* NULL once it has ended */
    struct stream_in in;
    struct stream_out out[2]; /* by enum sandbox_output */
    struct ev_timer timeout;
    struct signals signals;
    struct session_result *result;
};

/* ---- the end ---- */

static void stop_if_written(struct session *s)
{
    if (!s->exec && stream_out_is_empty(&s->out[0]) && stream_out_is_empty(&s->out[1]))
        ev_loop_stop(s->loop);
}

static void fail(struct session *s, int code, const struct err *e)
{
    s->result->exit_code = code;
    s->result->has_error = true;
    s->result->e = *e;
}

/* Is this about the program, rather than the working directory? PID 1 quotes what it was about. */
static bool is_about_program(const struct session *s, const struct err *e)
{
    char quoted[300];

    (void)snprintf(quoted, sizeof quoted, "'%.256s'", s->spec->argv[0]);
    return strstr(e->msg, quoted) != NULL;
}

/* What a shell would return. */
static void could_not_run(struct session *s, const struct err *why)
{
    const char *program = s->spec->argv[0];
    struct err e = *why;

    if (!is_about_program(s, why)) {
        fail(s, EXIT_FAILED, &e);
    } else if (why->code == ERR_NOT_FOUND) {
        (void)err_set(&e, ERR_NOT_FOUND, "cannot run '%s': not found in the sandbox", program);
        err_hint(&e, "the sandbox has the host's /usr, and what -v and --host-path add");
        fail(s, EXIT_NOT_FOUND, &e);
    } else {
        (void)err_set(&e, ERR_DENIED, "cannot run '%s': %s", program,
                      why->code == ERR_DENIED ? "permission denied" : "it is no program");
        fail(s, EXIT_CANNOT_RUN, &e);
    }
}

static void on_exit_of(void *ctx, int code, const struct err *e)
{
    struct session *s = ctx;

    s->exec = NULL;
    ev_timer_stop(s->loop, &s->timeout);
    stream_in_want(&s->in, false);
    if (s->result->is_timed_out)
        s->result->exit_code = EXIT_TIMED_OUT;
    else if (s->out[0].is_broken)
        s->result->exit_code = 128 + SIGPIPE;
    else if (!e)
        s->result->exit_code = code;
    else if (e->code == ERR_CLOSED || e->code == ERR_TIMEOUT || e->code == ERR_PROTOCOL)
        fail(s, EXIT_FAILED, e);
    else
        could_not_run(s, e);
    stop_if_written(s);
}

static void on_timeout(void *ctx)
{
    struct session *s = ctx;
    struct err e;

    s->result->is_timed_out = true;
    if (s->spec->kill && s->spec->kill(s->spec->ctx, &e) < 0)
        fail(s, EXIT_FAILED, &e);
    if (s->exec)
        sandbox_exec_cancel(s->exec);
}

/* ---- output and input ---- */

static void on_out_change(void *ctx)
{
    struct session *s = ctx;

    if (s->out[0].is_broken && s->exec) {
        sandbox_exec_cancel(s->exec); /* as SIGPIPE ends a program whose reader has gone */
        return;
    }
    if (s->exec)
        sandbox_exec_pause(s->exec,
                           !stream_out_is_empty(&s->out[0]) || !stream_out_is_empty(&s->out[1]));
    stop_if_written(s);
}

static void on_output(void *ctx, enum sandbox_output which, struct span piece)
{
    struct session *s = ctx;

    stream_out_write(&s->out[which], piece);
    if (s->out[which].queue.n > OUT_LOW_BYTES)
        sandbox_exec_pause(s->exec, true);
}

static void on_started(void *ctx)
{
    struct session *s = ctx;

    stream_in_want(&s->in, true);
}

static void on_input(void *ctx, struct span bytes)
{
    struct session *s = ctx;
    struct span input = bytes.n ? bytes : SPAN(END_OF_INPUT);

    if (!s->exec)
        return;
    if (bytes.n || s->spec->has_tty) { /* closing the input would hang up a terminal */
        size_t took = sandbox_exec_write(s->exec, input);

        assert(took == input.n); /* one read fits into a queue that is not full */
    } else {
        sandbox_exec_close_stdin(s->exec);
    }
    if (bytes.n && sandbox_exec_is_full(s->exec))
        stream_in_want(&s->in, false);
}

static void on_input_drain(void *ctx, bool is_open)
{
    struct session *s = ctx;

    stream_in_want(&s->in, is_open);
}

/* ---- signals ---- */

void session_block_signals(void)
{
    signals_block(forwarded);
}

static void on_signal(void *ctx, int number)
{
    struct session *s = ctx;
    uint16_t cols, rows;

    if (!s->exec) { /* it has ended, and its output has nowhere to go */
        if (number != SIGWINCH)
            ev_loop_stop(s->loop);
    } else if (number != SIGWINCH) {
        sandbox_exec_signal(s->exec, number);
    } else if (s->spec->has_tty && tty_size(&cols, &rows)) {
        sandbox_exec_resize(s->exec, cols, rows);
    }
}

/* ---- the whole ---- */

static int begin(struct session *s, struct err *e)
{
    static const struct sandbox_exec_events events = { on_started, on_output, on_input_drain,
                                                       on_exit_of };
    struct sandbox_exec_spec spec = {
        .argv = s->spec->argv,
        .env = s->spec->env,
        .cwd = s->spec->cwd,
        .has_tty = s->spec->has_tty,
        .events = &events,
        .ctx = s,
    };
    const size_t queue_max = 4 * SANDBOX_WINDOW_BYTES;

    /* First: it is taken, whatever else fails. */
    if (sandbox_open(s->loop, s->spec->control_fd, &s->sandbox, e) < 0)
        return -1;
    if (signals_open(&s->signals, s->loop, forwarded, on_signal, s, e) < 0 ||
        stream_in_open(&s->in, s->loop, 0, on_input, s, e) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (stream_out_open(&s->out[i], s->loop, i + 1, queue_max, on_out_change, s, e) < 0)
            return -1;
    if (spec.has_tty)
        (void)tty_size(&spec.cols, &spec.rows);
    if (sandbox_exec(s->sandbox, &spec, &s->exec, e) < 0)
        return -1;
    if (spec.has_tty && tty_raw(0, e) < 0)
        return -1;
    if (s->spec->timeout_ms)
        ev_timer_start(s->loop, &s->timeout, s->spec->timeout_ms, on_timeout, s);
    return 0;
}

void session_run(const struct session_spec *spec, struct session_result *ret)
{
    struct session s = { .spec = spec, .result = ret };
    uint64_t began_ms;
    struct err e;

    *ret = (struct session_result){ .exit_code = EXIT_FAILED };
    if (ev_loop_new(&s.loop, &e) < 0) {
        (void)close(spec->control_fd);
        fail(&s, EXIT_FAILED, &e);
        return;
    }
    began_ms = ev_now_ms(s.loop);
    if (begin(&s, &e) < 0)
        fail(&s, EXIT_FAILED, &e);
    else
        ev_loop_run(s.loop);
    if (spec->ended)
        spec->ended(spec->ctx);
    tty_restore();
    ret->ran_ms = ev_now_ms(s.loop) - began_ms;
    sandbox_close(s.sandbox);
    ev_timer_stop(s.loop, &s.timeout);
    signals_close(&s.signals);
    stream_in_close(&s.in);
    stream_out_close(&s.out[0]);
    stream_out_close(&s.out[1]);
    ev_loop_turn(s.loop); /* what was posted: the sandbox closes its connection */
    ev_loop_turn(s.loop);
    ev_loop_free(s.loop);
}
