/* Any bytes as the two fields of a trace: what is taken says the same when it is written again. The first byte says which. */
#include "trace/context.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parent(struct span text)
{
    struct trace_context c, again;
    char out[TRACE_TEXT_BYTES];

    if (!trace_context_parse(text, &c))
        return;
    assert(text.n >= TRACE_TEXT_BYTES - 1 && c.flags <= TRACE_SAMPLED);
    assert(strlen(trace_context_format(out, &c)) == TRACE_TEXT_BYTES - 1);
    assert(memcmp(out + 3, text.p + 3, 50) == 0); /* the ids as they came */
    assert(trace_context_parse(span_cstr(out), &again));
    assert(memcmp(&c, &again, sizeof c) == 0);
}

static void check_state(struct span text)
{
    if (!trace_state_is_valid(text))
        return;
    for (size_t i = 0; i < text.n; i++) /* fit for a header field */
        assert((text.p[i] >= ' ' && text.p[i] <= '~') || text.p[i] == '\t');
    assert(span_find(text, '=') != SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 's')
        check_state(span_of(data + 1, size - 1));
    else if (size)
        check_parent(span_of(data + 1, size - 1));
    return 0;
}
