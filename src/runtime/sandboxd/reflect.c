/* Server reflection: a stream of questions, each answered in turn. Answers are larger than questions, so while the
 * client does not read, its questions wait, unanswered and small. */
#include "runtime/sandboxd/process.h"

#include "http/grpc_frame.h"
#include "http/grpc_serve.h"
#include "proto/descriptors.h"
#include "runtime/reflection.h"
#include "runtime/sandboxd/limits.h"

struct reflect {
    struct grpc_stream *stream; /* NULL once the call is over */
    struct ev_loop *loop;
    struct buf waiting; /* questions, each behind its gRPC prefix */
    bool has_all;       /* no more questions come */
};

static void reflect_free(void *obj)
{
    struct reflect *r = obj;

    buf_done(&r->waiting);
    free(r);
}

static void end(struct reflect *r, enum grpc_status status, const char *text)
{
    if (r->stream)
        grpc_stream_finish(take_ptr(&r->stream), status, text);
    ev_free_later(r->loop, r, reflect_free);
}

static int answer(struct reflect *r, struct span question)
{
    OWN(buf_done) struct buf out = BUF_INIT(REFLECTION_MAX_BYTES);
    struct err e;

    if (reflection_answer(span_of(proto_descriptors, proto_descriptors_bytes), question, &out, &e) <
        0) {
        end(r, e.code == ERR_PROTOCOL ? GRPC_INTERNAL : grpc_status_of(e.code), e.msg);
        return -1;
    }
    grpc_stream_send(r->stream, buf_span(&out));
    return 0;
}

static void on_message(void *ctx, struct span question)
{
    struct reflect *r = ctx;
    struct err e;

    if (r->waiting.n == 0 && !grpc_stream_is_full(r->stream)) {
        (void)answer(r, question);
        return;
    }
    grpc_stream_pause(r->stream, true);
    if (grpc_frame_add(&r->waiting, question, &e) < 0)
        end(r, GRPC_RESOURCE_EXHAUSTED, "too many questions without reading the answers");
}

static void on_drain(void *ctx)
{
    struct reflect *r = ctx;

    while (r->waiting.n && !grpc_stream_is_full(r->stream)) {
        const uint8_t *p = r->waiting.p; /* a prefix of ours: flag, then the length in four bytes */
        size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];

        if (answer(r, span_of(p + GRPC_PREFIX_BYTES, n)) < 0)
            return;
        buf_consume(&r->waiting, GRPC_PREFIX_BYTES + n);
    }
    if (r->waiting.n)
        return;
    if (r->has_all)
        end(r, GRPC_OK, "");
    else
        grpc_stream_pause(r->stream, false);
}

static void on_half_close(void *ctx)
{
    struct reflect *r = ctx;

    r->has_all = true;
    if (r->waiting.n == 0)
        end(r, GRPC_OK, "");
}

static void on_gone(void *ctx)
{
    struct reflect *r = ctx;

    r->stream = NULL;
    end(r, GRPC_CANCELLED, "");
}

void process_reflect(struct runtime *rt, struct http_exchange *x)
{
    static const struct grpc_stream_events events = { on_message, on_half_close, on_drain,
                                                      on_gone };
    struct reflect *r = NEW(struct reflect);

    r->loop = rt->loop;
    r->waiting.max = SANDBOXD_REFLECT_QUEUE_BYTES;
    r->stream = grpc_stream_open(x, SANDBOXD_REFLECT_MAX_BYTES, &events, r);
    if (!r->stream)
        reflect_free(r);
}
