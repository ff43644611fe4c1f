/* Any text expands. Without a variable the result is never longer, and one that has no dollar comes out as it went in. */
#include "node/expand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct span none(void *ctx, struct span name)
{
    (void)ctx;
    (void)name;
    return SPAN_NONE;
}

static struct span echo(void *ctx, struct span name)
{
    (*(size_t *)ctx)++;
    return name;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf plain = BUF_INIT(1 << 20), known = BUF_INIT(1 << 20);
    struct span text = span_of(data, size);
    size_t found = 0;
    struct err e;

    if (size > 1 << 20)
        return 0;
    assert(expand_text(text, none, NULL, &plain, &e) == 0);
    assert(expand_text(text, echo, &found, &known, &e) == 0);
    assert(plain.n <= size && known.n + 3 * found == plain.n);
    assert(span_find(text, '$') != SIZE_MAX || span_eq(text, buf_span(&plain)));
    return 0;
}
