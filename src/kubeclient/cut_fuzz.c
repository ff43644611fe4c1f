/* Any bytes as a stream of events and as a list: the same values come out wherever it is cut, and each begins and ends as
 * an object does. */
#include "kubeclient/cut.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    uint64_t sum; /* of all values, in order */
    size_t values;
    bool is_whole;
};

static uint64_t mix(uint64_t sum, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        sum = (sum ^ s.p[i]) * 1099511628211u;
    return sum;
}

static struct outcome run(enum cut_shape shape, struct span in, size_t step)
{
    struct outcome o = { 14695981039346656037u, 0, false };
    struct cut c;
    struct err e;
    size_t used;
    enum feed got = FEED_MORE;

    cut_init(&c, shape, 4096);
    for (; in.n && got != FEED_BAD; in = span_skip(in, used)) {
        used = 0;
        got = cut_feed(&c, span_slice(in, 0, step), &used, &e);
        assert(used > 0 || got == FEED_BAD);
        if (got == FEED_DONE) {
            assert(c.value.n >= 2 && c.value.p[0] == '{');
            o.sum = mix(o.sum, buf_span(&c.value));
            o.values++;
        }
    }
    o.is_whole = got != FEED_BAD && cut_end(&c, &e) == 0;
    if (o.is_whole)
        o.sum = mix(o.sum, buf_span(&c.envelope));
    cut_done(&c);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum cut_shape shapes[] = { CUT_STREAM, CUT_ITEMS };
    struct span in = span_of(data, size);

    EACH(s, shapes) {
        struct outcome a = run(*s, in, SIZE_MAX), b = run(*s, in, 1), c = run(*s, in, 7);

        assert(a.values == b.values && a.is_whole == b.is_whole && a.sum == b.sum);
        assert(a.values == c.values && a.is_whole == c.is_whole && a.sum == c.sum);
    }
    return 0;
}
