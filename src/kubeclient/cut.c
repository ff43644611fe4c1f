#include "kubeclient/cut.h"

#include "base/json.h"

#include <string.h>

#define ENVELOPE_MAX_BYTES                                                                         \
    (1 << 20) /* then ERR_LIMIT; a list's own metadata has some hundred bytes */

void cut_init(struct cut *c, enum cut_shape shape, size_t value_max_bytes)
{
    *c = (struct cut){ .shape = shape,
                       .state = shape == CUT_ITEMS ? CUT_OUTSIDE : CUT_BETWEEN,
                       .value = BUF_INIT(value_max_bytes),
                       .envelope = BUF_INIT(ENVELOPE_MAX_BYTES) };
}

void cut_done(struct cut *c)
{
    buf_done(&c->value);
    buf_done(&c->envelope);
}

static bool is_blank(uint8_t b)
{
    return b == ' ' || b == '\n' || b == '\r' || b == '\t';
}

/* Looks at one byte of a value. False: it is deeper than any parser of ours would follow. */
static bool scan(struct cut_scan *s, uint8_t b)
{
    if (s->is_in_string) {
        if (s->is_escaped)
            s->is_escaped = false;
        else if (b == '\\')
            s->is_escaped = true;
        else if (b == '"')
            s->is_in_string = false;
        return true;
    }
    if (b == '"')
        s->is_in_string = true;
    else if (b == '{' || b == '[')
        s->depth++;
    else if ((b == '}' || b == ']') && s->depth)
        s->depth--;
    return s->depth <= JSON_DEPTH_MAX;
}

static enum feed broken(struct cut *c)
{
    c->state = CUT_BROKEN;
    return FEED_BAD;
}

static enum feed too_deep(struct cut *c, struct err *e)
{
    (void)err_set(e, ERR_LIMIT, "values nested deeper than %d", JSON_DEPTH_MAX);
    return broken(c);
}

static enum feed feed_value(struct cut *c, struct span in, size_t *used, struct err *e)
{
    size_t n = 0;

    do {
        if (!scan(&c->in_value, in.p[n++]))
            return too_deep(c, e);
    } while (n < in.n && c->in_value.depth);
    *used += n;
    if (buf_add(&c->value, span_slice(in, 0, n), e) < 0)
        return broken(c);
    if (c->in_value.depth)
        return FEED_MORE;
    c->state = CUT_BETWEEN;
    c->is_value_whole = true;
    return FEED_DONE;
}

static enum feed feed_between(struct cut *c, struct span in, size_t *used, struct err *e)
{
    bool is_array = c->shape == CUT_ITEMS;
    uint8_t b = in.p[0];

    if (is_blank(b) || (b == ',' && is_array)) {
        *used += 1;
    } else if (b == '{') {
        c->in_value = (struct cut_scan){ 0 };
        c->state = CUT_VALUE;
    } else if (b == ']' && is_array) {
        c->is_items = false;
        c->state = CUT_AROUND;
    } else {
        (void)err_set(e, ERR_PROTOCOL, "the byte 0x%02x where an object should begin", b);
        return broken(c);
    }
    return FEED_MORE;
}

/* Texts of the enveloping object itself: the last one before a colon is a member's name. */
static void note_name(struct cut *c, uint8_t b, bool was_in_string)
{
    if (c->in_envelope.depth != 1)
        return;
    if (c->in_envelope.is_in_string && !was_in_string)
        c->name_n = 0;
    else if (c->in_envelope.is_in_string && c->name_n < sizeof c->name)
        c->name[c->name_n++] = (char)b;
    else if (!was_in_string && b == ':')
        c->is_items = c->name_n == 5 && memcmp(c->name, "items", 5) == 0;
    else if (!was_in_string && b == ',')
        c->is_items = false;
}

static enum feed feed_around(struct cut *c, struct span in, size_t *used, struct err *e)
{
    bool is_items = false;
    size_t n = 0;

    do {
        bool was_in_string = c->in_envelope.is_in_string;
        uint8_t b = in.p[n++];

        if (!scan(&c->in_envelope, b))
            return too_deep(c, e);
        note_name(c, b, was_in_string);
        is_items = c->is_items && !was_in_string && b == '[' && c->in_envelope.depth == 2;
    } while (n < in.n && c->in_envelope.depth && !is_items);
    *used += n;
    if (buf_add(&c->envelope, span_slice(in, 0, n), e) < 0)
        return broken(c);
    if (is_items)
        c->state = CUT_BETWEEN;
    else if (!c->in_envelope.depth)
        c->state = CUT_OUTSIDE;
    return FEED_MORE;
}

static enum feed feed_outside(struct cut *c, struct span in, size_t *used, struct err *e)
{
    if (is_blank(in.p[0])) {
        *used += 1;
        return FEED_MORE;
    }
    if (in.p[0] != '{' || c->envelope.n) {
        (void)err_set(e, ERR_PROTOCOL, "the byte 0x%02x %s an object", in.p[0],
                      c->envelope.n ? "behind" : "instead of");
        return broken(c);
    }
    c->state = CUT_AROUND;
    return FEED_MORE;
}

enum feed cut_feed(struct cut *c, struct span in, size_t *ret_used, struct err *e)
{
    enum feed verdict = FEED_MORE;
    size_t used = 0;

    if (c->is_value_whole)
        buf_clear(&c->value);
    c->is_value_whole = false;
    while (used < in.n && verdict == FEED_MORE) {
        struct span rest = span_skip(in, used);

        switch (c->state) {
        case CUT_OUTSIDE:
            verdict = feed_outside(c, rest, &used, e);
            break;
        case CUT_AROUND:
            verdict = feed_around(c, rest, &used, e);
            break;
        case CUT_BETWEEN:
            verdict = feed_between(c, rest, &used, e);
            break;
        case CUT_VALUE:
            verdict = feed_value(c, rest, &used, e);
            break;
        case CUT_BROKEN:
            (void)err_set(e, ERR_PROTOCOL, "the stream was broken before");
            return FEED_BAD;
        }
    }
    *ret_used = used;
    return verdict;
}

int cut_end(const struct cut *c, struct err *e)
{
    bool is_whole =
        c->shape == CUT_ITEMS ? c->state == CUT_OUTSIDE && c->envelope.n : c->state == CUT_BETWEEN;

    return is_whole ? 0 : err_set(e, ERR_PROTOCOL, "the answer ended in the middle");
}
