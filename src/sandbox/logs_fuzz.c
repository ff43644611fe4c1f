/* Any bytes as a log file. First byte: where it is cut. Whole and cut must say the same. */
#include "sandbox/logs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SAID_MAX_BYTES (16 * 1024 * 1024)

static void note(void *ctx, const struct logs_entry *entry)
{
    struct err e;

    assert(span_find(entry->text, '\n') == SIZE_MAX && entry->time.n);
    if (buf_addf(ctx, &e, "%d%d", entry->stream, entry->is_end) < 0 ||
        buf_add(ctx, entry->time, &e) < 0 || buf_add(ctx, entry->text, &e) < 0 ||
        buf_addc(ctx, '\n', &e) < 0)
        abort();
}

static uint64_t run(struct span in, size_t cut, struct buf *said)
{
    struct logs l;

    logs_init(&l, note, said);
    logs_feed(&l, span_slice(in, 0, cut));
    logs_feed(&l, span_skip(in, cut));
    logs_end(&l);
    logs_done(&l);
    return l.bad;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf whole = BUF_INIT(SAID_MAX_BYTES), cut = BUF_INIT(SAID_MAX_BYTES);
    struct span in;

    if (size < 1)
        return 0;
    in = span_of(data + 1, size - 1);
    assert(run(in, in.n, &whole) == run(in, in.n * data[0] / 256, &cut));
    assert(span_eq(buf_span(&whole), buf_span(&cut)));
    return 0;
}
