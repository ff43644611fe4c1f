/* Any bytes, cut anywhere: every feed makes progress, and where the cut is does not change the
 * messages. */
#include "http/grpc_frame.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BYTES 4096

struct answer {
    struct buf msgs; /* each message behind its prefix again, so that their borders count */
    enum feed last;
    enum err_code code;
    size_t used;
};

static void run(struct span in, size_t step, struct answer *a)
{
    OWN(grpc_frame_done) struct grpc_frame f;
    struct err e = { 0 };

    *a = (struct answer){ .msgs = BUF_INIT(16 * 1024 * 1024), .last = FEED_MORE };
    grpc_frame_init(&f, MAX_BYTES);
    while (a->used < in.n && a->last != FEED_BAD) {
        struct span piece = span_slice(span_skip(in, a->used), 0, step);
        size_t used = 0;

        a->last = grpc_frame_feed(&f, piece, &used, &e);
        assert(used > 0 && used <= piece.n);
        assert(a->last != FEED_MORE || used == piece.n);
        a->used += used;
        if (a->last != FEED_DONE)
            continue;
        assert(f.msg.n <= MAX_BYTES);
        if (grpc_frame_add(&a->msgs, buf_span(&f.msg), &e) < 0)
            abort();
    }
    a->code = a->last == FEED_BAD ? e.code : ERR_NONE;
    if (a->last != FEED_BAD && grpc_frame_end(&f, &e) < 0)
        a->code = e.code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span in;
    struct answer whole, cut;
    size_t step;

    if (size < 1)
        return 0;
    step = 1 + data[0] % 64;
    in = span_of(data + 1, size - 1);
    run(in, SIZE_MAX, &whole);
    run(in, step, &cut);
    assert(whole.last == cut.last && whole.code == cut.code && whole.used == cut.used);
    assert(span_eq(buf_span(&whole.msgs), buf_span(&cut.msgs)));
    /* What was read and written again is what came in. */
    assert(whole.msgs.n <= in.n &&
           memcmp(whole.msgs.p ? whole.msgs.p : in.p, in.p, whole.msgs.n) == 0);
    buf_done(&whole.msgs);
    buf_done(&cut.msgs);
    return 0;
}
