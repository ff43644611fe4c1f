#include "node/expand.h"

int expand_text(struct span text, expand_find_fn find, void *ctx, struct buf *out, struct err *e)
{
    while (text.n) {
        size_t dollar = span_find(text, '$'), end;
        struct span name, value;

        /* The last byte opens nothing, whatever it is. */
        if (dollar == SIZE_MAX || dollar + 1 == text.n)
            return buf_add(out, text, e);
        if (buf_add(out, span_slice(text, 0, dollar), e) < 0)
            return -1;
        text = span_skip(text, dollar);
        end = text.p[1] == '(' ? span_find(text, ')') : SIZE_MAX;
        if (end == SIZE_MAX) {
            /* "$$" is one dollar; else the two bytes stand for themselves. */
            if (buf_add(out, span_slice(text, text.p[1] == '$', 2), e) < 0)
                return -1;
            text = span_skip(text, 2);
            continue;
        }
        name = span_slice(text, 2, end);
        value = find(ctx, name);
        if (buf_add(out, value.p ? value : span_slice(text, 0, end + 1), e) < 0)
            return -1;
        text = span_skip(text, end + 1);
    }
    return 0;
}
