/* Any bytes as frames of either side, cut anywhere: every feed makes progress, where the cut is does not change what is
 * read, and what was read is written as it came. A start that is accepted holds texts, and reads back the same. */
#include "proto/talk.h"

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX_BYTES (64 * 1024)

struct answer {
    struct buf frames;
    enum feed last;
    size_t used;
};

static void start_again(const struct talk_frame *f, const struct talk_start *start)
{
    OWN(buf_done) struct buf again = BUF_INIT(TALK_HEAD_BYTES + TALK_START_MAX_BYTES);
    struct err e;

    for (size_t i = 0; i < start->argc; i++)
        assert(str_utf8_valid(span_cstr(start->argv[i])));
    for (size_t i = 0; i < start->env_count; i++)
        assert(strchr(start->env[i], '=') && str_utf8_valid(span_cstr(start->env[i])));
    if (talk_add_start(&again, f->call, start, &e) < 0)
        abort();
    assert(span_eq(span_skip(buf_span(&again), TALK_HEAD_BYTES), f->bytes));
}

static void run(struct span in, enum talk_side from, size_t step, struct answer *a)
{
    OWN(talk_done) struct talk t;
    struct err e = { 0 };

    *a = (struct answer){ .frames = BUF_INIT(2 * INPUT_MAX_BYTES), .last = FEED_MORE };
    talk_init(&t, from);
    while (a->used < in.n && a->last != FEED_BAD) {
        struct span piece = span_slice(span_skip(in, a->used), 0, step);
        struct talk_start start;
        struct talk_frame f;
        size_t used = 0;

        a->last = talk_feed(&t, piece, &used, &f, &e);
        assert(used <= piece.n && (used || a->last == FEED_BAD));
        assert(a->last != FEED_MORE || used == piece.n);
        assert(a->last != FEED_BAD || e.code == ERR_PROTOCOL);
        a->used += used;
        if (a->last != FEED_DONE)
            continue;
        if (talk_add(&a->frames, f.kind, f.call, f.bytes, &e) < 0)
            abort();
        if (f.kind != TALK_START || talk_read_start(f.bytes, &start, &e) < 0)
            continue;
        start_again(&f, &start);
        talk_start_done(&start);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct answer whole, cut;
    struct span in;

    if (size < 1 || size > INPUT_MAX_BYTES)
        return 0;
    in = span_of(data + 1, size - 1); /* the first byte says whose they are, and the cuts */
    run(in, data[0] & 1, SIZE_MAX, &whole);
    run(in, data[0] & 1, 1 + (data[0] >> 1), &cut);
    assert((whole.last == FEED_BAD) == (cut.last == FEED_BAD));
    assert(span_eq(buf_span(&whole.frames), buf_span(&cut.frames)));
    assert(whole.frames.n <= in.n &&
           span_eq(buf_span(&whole.frames), span_slice(in, 0, whole.frames.n)));
    buf_done(&whole.frames);
    buf_done(&cut.frames);
    return 0;
}
