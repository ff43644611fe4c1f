/* WriteStdin, SendSignal and ResizeTTY: what a client does to a process that Start runs. The id is judged before
 * anything else. */
#include "runtime/sandboxd/process.h"

#include "http/grpc_serve.h"
#include "proto/process.pb-c.h"
#include "runtime/exec/exec.h"
#include "proto/pb.h"
#include "runtime/sandboxd/limits.h"
#include "runtime/sandboxd/registry.h"

static void finishf(struct grpc_stream *s, enum grpc_status status, const char *fmt, ...)
    PRINTF(3, 4);

static void finishf(struct grpc_stream *s, enum grpc_status status, const char *fmt, ...)
{
    char text[GRPC_MESSAGE_TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    grpc_stream_finish(s, status, text);
}

/* All three answer with a message without fields. */
static void succeed(struct grpc_stream *s)
{
    grpc_stream_send(s, SPAN_NONE);
    grpc_stream_finish(s, GRPC_OK, "");
}

/* Decoded, or NULL: the call was ended. */
static void *unpack(struct grpc_stream *s, const ProtobufCMessageDescriptor *type, struct span msg)
{
    struct err e;
    void *request = pb_unpack(type, msg, &e);

    if (!request)
        grpc_stream_finish(s, GRPC_INTERNAL, e.msg);
    return request;
}

static struct exec *find(struct grpc_stream *s, int32_t id)
{
    struct process *p = registry_find(id);

    if (p)
        return p->exec;
    finishf(s, GRPC_NOT_FOUND, "process %d not found", (int)id);
    return NULL;
}

static void nobody(void *ctx)
{
    (void)ctx; /* the call was ended at once */
}

/* ---- WriteStdin ---- */

/* A write that waits for the pipe. */
struct writing {
    struct grpc_stream *stream;
    struct exec *exec;
};

static void on_written(void *ctx, const struct err *e)
{
    struct writing *w = ctx;

    if (e)
        finishf(w->stream, GRPC_INTERNAL, "failed to write stdin: %s", e->msg);
    else
        succeed(w->stream);
    free(w);
}

static void on_writer_gone(void *ctx)
{
    struct writing *w = ctx;

    if (!w)
        return;
    exec_write_forget(w->exec, w);
    free(w);
}

static struct writing *begin_writing(struct grpc_stream *s, struct exec *exec, struct span input)
{
    struct writing *w = NEW(struct writing);
    struct err e;

    w->stream = s;
    w->exec = exec;
    if (exec_write(exec, input, on_written, w, &e) == 0)
        return w;
    finishf(s, e.code == ERR_LIMIT ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL,
            "failed to write stdin: %s", e.msg);
    free(w);
    return NULL;
}

static void close_stdin(struct grpc_stream *s, struct exec *exec)
{
    struct err e;

    if (exec_close_stdin(exec, &e) < 0)
        finishf(s, GRPC_INTERNAL, "failed to close stdin: %s", e.msg);
    else
        succeed(s);
}

static void *write_stdin(void *ctx, struct grpc_stream *s, struct span msg)
{
    OWN(pb_done)
    Process__V1__WriteStdinRequest *request =
        unpack(s, &process__v1__write_stdin_request__descriptor, msg);
    struct exec *exec = request ? find(s, request->process_id) : NULL;

    (void)ctx;
    if (!exec)
        return NULL;
    switch (request->payload_case) {
    case PROCESS__V1__WRITE_STDIN_REQUEST__PAYLOAD_INPUT:
        if (request->input.len)
            return begin_writing(s, exec, span_of(request->input.data, request->input.len));
        succeed(s);
        break;
    case PROCESS__V1__WRITE_STDIN_REQUEST__PAYLOAD_EOF:
        close_stdin(s, exec);
        break;
    case PROCESS__V1__WRITE_STDIN_REQUEST__PAYLOAD__NOT_SET:
    case _PROCESS__V1__WRITE_STDIN_REQUEST__PAYLOAD__CASE_IS_INT_SIZE:
        succeed(s);
        break;
    }
    return NULL;
}

void process_write_stdin(struct runtime *rt, struct http_exchange *x)
{
    grpc_unary(x, SANDBOXD_MESSAGE_MAX_BYTES, write_stdin, rt, on_writer_gone);
}

/* ---- SendSignal ---- */

/* The contract knows three; the owner of the sandbox, on its control socket, forwards whatever it got. */
static bool is_signal_known(const struct runtime *rt, int number)
{
    if (rt->opt.control_fd != UINT64_MAX)
        return number > 0 && number <= 64; /* as Linux numbers them */
    return number == PROCESS__V1__SIGNAL__SIGNAL_SIGINT ||
           number == PROCESS__V1__SIGNAL__SIGNAL_SIGKILL ||
           number == PROCESS__V1__SIGNAL__SIGNAL_SIGTERM;
}

static void *send_signal(void *ctx, struct grpc_stream *s, struct span msg)
{
    OWN(pb_done)
    Process__V1__SendSignalRequest *request =
        unpack(s, &process__v1__send_signal_request__descriptor, msg);
    struct exec *exec = request ? find(s, request->process_id) : NULL;
    int number = request ? (int)request->signal : 0;

    if (!exec)
        return NULL;
    if (!is_signal_known(ctx, number)) {
        finishf(s, GRPC_INVALID_ARGUMENT, "unsupported signal %d", number);
        return NULL;
    }
    exec_signal(exec, number); /* the values are the system's own */
    succeed(s);
    return NULL;
}

void process_send_signal(struct runtime *rt, struct http_exchange *x)
{
    grpc_unary(x, SANDBOXD_MESSAGE_MAX_BYTES, send_signal, rt, nobody);
}

/* ---- ResizeTTY ---- */

static void *resize_tty(void *ctx, struct grpc_stream *s, struct span msg)
{
    OWN(pb_done)
    Process__V1__ResizeTTYRequest *request =
        unpack(s, &process__v1__resize_ttyrequest__descriptor, msg);
    struct exec *exec = request ? find(s, request->process_id) : NULL;
    struct err e;

    (void)ctx;
    if (!exec)
        return NULL;
    if (exec_resize(exec, (uint16_t)request->cols, (uint16_t)request->rows, &e) == 0)
        succeed(s);
    else
        finishf(s, e.code == ERR_CONFLICT ? GRPC_FAILED_PRECONDITION : GRPC_INTERNAL,
                "failed to resize terminal: %s", e.msg);
    return NULL;
}

void process_resize_tty(struct runtime *rt, struct http_exchange *x)
{
    grpc_unary(x, SANDBOXD_MESSAGE_MAX_BYTES, resize_tty, rt, nobody);
}
