/* Start: a command whose output is streamed: one init, pieces of output, one exit. A slow client stops the reading of
 * the pipes, and so the command; a client that goes away takes the whole process tree with it. */
#include "runtime/sandboxd/process.h"

#include "base/log.h"
#include "http/grpc_serve.h"
#include "proto/process.pb-c.h"
#include "proto/pb.h"
#include "runtime/sandboxd/command.h"
#include "runtime/sandboxd/registry.h"

struct start {
    struct runtime *rt;
    struct grpc_stream *stream; /* NULL once the client is gone */
    struct buf msg; /* the one request message, until it was read; then the one being sent */
    bool has_msg;
    Process__V1__StartRequest *request; /* NULL once the command was started */
    struct command command;
    bool is_looking_up;
    int32_t id;
    struct exec *exec;
    struct process process;
};

static void start_free(void *obj)
{
    struct start *s = obj;

    registry_remove(&s->process);
    buf_done(&s->msg);
    pb_done(&s->request);
    command_done(&s->command);
    free(s);
}

/* Our caller may be the stream, on the stack. */
static void end(struct start *s, enum grpc_status status, const char *text)
{
    if (s->stream)
        grpc_stream_finish(take_ptr(&s->stream), status, text);
    registry_remove(&s->process); /* from now on its id is unknown */
    ev_free_later(s->rt->loop, s, start_free);
}

/* ---- what the command does ---- */

static void send_event(struct start *s, const Process__V1__StartResponse *event)
{
    struct err e;

    if (!s->stream)
        return;
    buf_clear(&s->msg);
    (void)pb_pack(&event->base, &s->msg, &e); /* fits: a piece is at most the chunk size */
    grpc_stream_send(s->stream, buf_span(&s->msg));
}

static void on_started(void *ctx, pid_t pid)
{
    Process__V1__StartResponse event = PROCESS__V1__START_RESPONSE__INIT;
    Process__V1__InitEvent init = PROCESS__V1__INIT_EVENT__INIT;
    struct start *s = ctx;

    log_info("process.start", KV("process", (int)s->id),
             KV("program", (const char *)s->command.program), KV("pid", (int)pid));
    if (!s->stream)
        return;
    registry_add(&s->process, s->id, s->exec);
    init.process_id = s->id;
    event.event_case = PROCESS__V1__START_RESPONSE__EVENT_INIT;
    event.init = &init;
    send_event(s, &event);
}

static void on_output(void *ctx, enum exec_stream which, struct span piece)
{
    Process__V1__StartResponse event = PROCESS__V1__START_RESPONSE__INIT;
    ProtobufCBinaryData data = { piece.n, (uint8_t *)(uintptr_t)piece.p };
    struct start *s = ctx;

    if (which == EXEC_STDOUT) {
        event.event_case = PROCESS__V1__START_RESPONSE__EVENT_STDOUT;
        event.stdout = data;
    } else {
        event.event_case = PROCESS__V1__START_RESPONSE__EVENT_STDERR;
        event.stderr = data;
    }
    send_event(s, &event);
    if (s->stream && grpc_stream_is_full(s->stream))
        exec_pause(s->exec);
}

/* The owner of the sandbox, on its control socket, is told which signal it was, as shells tell it. */
static int exit_code_for(const struct runtime *rt, const struct exec_result *r)
{
    if (r->signal && rt->opt.control_fd != UINT64_MAX)
        return 128 + r->signal;
    return command_exit_code(r);
}

/* The owner of the sandbox goes on when the command has ended, whatever it left in the background. */
static uint64_t drain_for(const struct runtime *rt)
{
    return rt->opt.control_fd != UINT64_MAX ? EXEC_SO_FAR : SANDBOXD_START_DRAIN_MS;
}

static void on_ended(void *ctx, struct exec_result *r)
{
    Process__V1__StartResponse event = PROCESS__V1__START_RESPONSE__INIT;
    Process__V1__ExitEvent exit = PROCESS__V1__EXIT_EVENT__INIT;
    struct start *s = ctx;
    struct command_fail why;

    s->exec = NULL;
    log_info("process.exit", KV("process", (int)s->id),
             KV("program", (const char *)s->command.program), KV("code", command_exit_code(r)),
             KV("failed", (bool)r->fail.step), KV("canceled", r->is_canceled), KV("ms", r->ran_ms));
    if (r->fail.step) {
        command_spawn_failed(&s->command, r->fail, &why);
        end(s, why.status, why.text);
        return;
    }
    exit.exit_code = exit_code_for(s->rt, r);
    event.event_case = PROCESS__V1__START_RESPONSE__EVENT_EXIT;
    event.exit = &exit;
    send_event(s, &event);
    end(s, GRPC_OK, "");
}

/* ---- what the client does ---- */

static void run(void *ctx)
{
    static const struct exec_ops ops = { on_started, on_output, on_ended };
    struct start *s = ctx;
    const Process__V1__PTY *pty = s->request->pty;
    struct exec_spec spec = {
        .mode = pty ? EXEC_PTY : EXEC_STREAM,
        .drain_ms = drain_for(s->rt),
        .chunk_max = s->rt->opt.chunk_size,
        .cols = pty ? (uint16_t)pty->cols : 0,
        .rows = pty ? (uint16_t)pty->rows : 0,
    };
    struct command_fail why;

    s->is_looking_up = false;
    if (!s->stream) {
        end(s, GRPC_CANCELLED, "");
        return;
    }
    s->id = registry_next_id();
    if (command_start(&s->command, s->request->config, &spec, &ops, s, &s->exec, &why) < 0)
        end(s, why.status, why.text);
    pb_done(&s->request);
}

static void on_message(void *ctx, struct span msg)
{
    struct start *s = ctx;
    struct err e;

    if (s->has_msg) {
        end(s, GRPC_INTERNAL, "Start takes one message, and there came two");
        return;
    }
    s->has_msg = true;
    (void)buf_add(&s->msg, msg, &e); /* the stream's ceiling is ours */
}

static void on_half_close(void *ctx)
{
    struct start *s = ctx;
    struct command_fail why;
    const char *op;
    struct err e;

    if (!s->has_msg) {
        end(s, GRPC_INTERNAL, "Start takes one message, and there came none");
        return;
    }
    s->request = (void *)pb_unpack(&process__v1__start_request__descriptor, buf_span(&s->msg), &e);
    buf_done(&s->msg);
    if (!s->request) {
        end(s, GRPC_INTERNAL, e.msg);
        return;
    }
    op = s->request->pty ? "failed to start command with PTY" : "failed to start command";
    if (command_init(&s->command, s->rt, op, s->request->config, &why) < 0) {
        end(s, why.status, why.text);
    } else if (command_needs_lookup(&s->command)) {
        s->is_looking_up = true;
        command_look_up(&s->command, run, s);
    } else {
        run(s);
    }
}

static void on_drain(void *ctx)
{
    struct start *s = ctx;

    if (s->exec)
        exec_resume(s->exec);
}

static void on_gone(void *ctx)
{
    struct start *s = ctx;

    s->stream = NULL;
    registry_remove(&s->process);
    if (s->exec)
        exec_cancel(s->exec); /* on_ended follows */
    else if (!s->is_looking_up)
        end(s, GRPC_CANCELLED, "");
}

void process_start(struct runtime *rt, struct http_exchange *x)
{
    static const struct grpc_stream_events events = { on_message, on_half_close, on_drain,
                                                      on_gone };
    struct start *s = NEW(struct start);

    s->rt = rt;
    s->command.cwd_fd = -1;
    s->msg.max = MAX((size_t)SANDBOXD_MESSAGE_MAX_BYTES, (size_t)rt->opt.chunk_size + 64);
    s->stream = grpc_stream_open(x, SANDBOXD_MESSAGE_MAX_BYTES, &events, s);
    if (!s->stream)
        start_free(s);
}
