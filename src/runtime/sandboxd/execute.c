/* Execute: a command run to its end, its output in one message. A client that cancels, goes away or whose deadline
 * passes takes the whole process tree with it. */
#include "runtime/sandboxd/process.h"

#include "base/log.h"
#include "http/grpc_serve.h"
#include "proto/process.pb-c.h"
#include "proto/pb.h"
#include "runtime/sandboxd/command.h"

struct execute {
    struct grpc_stream *stream;           /* NULL once the client is gone */
    Process__V1__ExecuteRequest *request; /* NULL once the command was started */
    struct command command;
    struct exec *exec; /* NULL before it was started */
};

static void execute_free(struct execute *c)
{
    pb_done(&c->request);
    command_done(&c->command);
    free(c);
}

static void fail(struct execute *c, const struct command_fail *why)
{
    if (c->stream)
        grpc_stream_finish(c->stream, why->status, why->text);
    execute_free(c);
}

/* Says in stderr what was dropped; there is no other place in the message. */
static void add_notice(struct exec_result *r)
{
    r->err.max += 2 * SANDBOXD_NOTICE_MAX_BYTES;
    if (r->is_out_cut)
        buf_addf_capped(&r->err, "\n[silica: stdout is cut: %zu of %llu bytes kept]\n", r->out.n,
                        (unsigned long long)r->out_bytes);
    if (r->is_err_cut)
        buf_addf_capped(&r->err, "\n[silica: stderr is cut: %llu bytes in all]\n",
                        (unsigned long long)r->err_bytes);
}

static void send_result(struct execute *c, struct exec_result *r)
{
    Process__V1__ExecuteResponse response = PROCESS__V1__EXECUTE_RESPONSE__INIT;
    OWN(buf_done) struct buf msg = BUF_INIT(0);
    struct err e;

    add_notice(r);
    response.exit_code = command_exit_code(r);
    response.stdout = (ProtobufCBinaryData){ r->out.n, r->out.p };
    response.stderr = (ProtobufCBinaryData){ r->err.n, r->err.p };
    msg.max = r->out.n + r->err.n + 64;
    (void)pb_pack(&response.base, &msg, &e); /* fits by construction */
    grpc_stream_send(c->stream, buf_span(&msg));
    grpc_stream_finish(c->stream, GRPC_OK, "");
}

static void on_ended(void *ctx, struct exec_result *r)
{
    struct execute *c = ctx;
    struct command_fail why;

    log_info("execute.exit", KV("program", (const char *)c->command.program),
             KV("code", command_exit_code(r)), KV("failed", (bool)r->fail.step),
             KV("canceled", r->is_canceled), KV("ms", r->ran_ms));
    if (r->fail.step) {
        command_spawn_failed(&c->command, r->fail, &why);
        fail(c, &why);
        return;
    }
    if (c->stream)
        send_result(c, r);
    execute_free(c);
}

/* False: it did not start, the call was ended and c is gone. */
static bool start(struct execute *c)
{
    static const struct exec_ops ops = { .on_exit = on_ended };
    size_t limit = c->command.rt->opt.grpc_output_limit;
    size_t share = MIN(limit / 8, (size_t)SANDBOXD_STREAM_SHARE_BYTES);
    struct exec_spec spec = {
        .mode = EXEC_CAPTURE,
        .drain_ms = SANDBOXD_EXECUTE_DRAIN_MS,
        .out_max = limit - share,
        .err_max = limit - share,
        .both_max = limit,
    };
    struct command_fail why;

    if (command_start(&c->command, c->request->config, &spec, &ops, c, &c->exec, &why) < 0) {
        fail(c, &why);
        return false;
    }
    pb_done(&c->request);
    return true;
}

static void looked_up(void *ctx)
{
    struct execute *c = ctx;

    if (c->stream)
        (void)start(c);
    else
        execute_free(c); /* its client went away meanwhile */
}

static void on_gone(void *ctx)
{
    struct execute *c = ctx;

    c->stream = NULL;
    if (c->exec)
        exec_cancel(c->exec);
}

static void *handle(void *ctx, struct grpc_stream *stream, struct span msg)
{
    struct execute *c = NEW(struct execute);
    struct command_fail why = { .status = GRPC_INTERNAL };
    struct err e;

    c->stream = stream;
    c->command.cwd_fd = -1;
    c->request = (void *)pb_unpack(&process__v1__execute_request__descriptor, msg, &e);
    if (!c->request)
        (void)snprintf(why.text, sizeof why.text, "%s", e.msg);
    if (!c->request ||
        command_init(&c->command, ctx, "failed to execute command", c->request->config, &why) < 0) {
        fail(c, &why);
        return NULL;
    }
    if (!command_needs_lookup(&c->command))
        return start(c) ? c : NULL;
    command_look_up(&c->command, looked_up, c);
    return c;
}

void process_execute(struct runtime *rt, struct http_exchange *x)
{
    grpc_unary(x, SANDBOXD_MESSAGE_MAX_BYTES, handle, rt, on_gone);
}
