#include "base/json_sink.h"
#include "base/str.h"

static void settle(struct json_sink *s)
{
    if (s->p)
        buf_grown(s->out, (size_t)(s->p - (s->out->p + s->out->n)));
}

__attribute__((noinline)) bool json_sink_more(struct json_sink *s, size_t n)
{
    settle(s);
    if (buf_reserve(s->out, n, s->e) < 0)
        return false;
    s->p = s->out->p + s->out->n;
    s->end = s->p + buf_room(s->out);
    return true;
}

int json_sink_begin(struct json_sink *s, struct buf *out, size_t guess, struct err *e)
{
    *s = (struct json_sink){ .out = out, .e = e };
    return json_sink_more(s, MIN(guess, out->max - out->n)) ? 0 : -1;
}

void json_sink_end(struct json_sink *s)
{
    settle(s);
}

/* Bytes at the start of s that need no escape, U+2028 and U+2029 included in what does when html.
 * */
static size_t plain_run(struct span s, bool is_html)
{
    size_t i = json_scan_span(s);

    if (is_html)
        for (size_t k = 0; k < i; k++)
            if (s.p[k] == '<' || s.p[k] == '>' || s.p[k] == '&')
                return k;
    return i;
}

static bool put_escape(struct json_sink *s, uint32_t c)
{
    static const char hex[] = "0123456789abcdef", from[] = "\"\\\b\f\n\r\t", into[] = "\"\\bfnrt";
    const char *hit = c ? memchr(from, (int)c, sizeof from - 1) : NULL;
    uint8_t text[6] = { '\\',
                        'u',
                        (uint8_t)hex[c >> 12],
                        (uint8_t)hex[c >> 8 & 15],
                        (uint8_t)hex[c >> 4 & 15],
                        (uint8_t)hex[c & 15] };

    if (!hit || c >= 0x80)
        return json_sink_run(s, text, sizeof text);
    text[1] = (uint8_t)into[hit - from];
    return json_sink_run(s, text, 2);
}

/* One character that is not plain ASCII. Returns the bytes of it, or 0 when there is no room. */
static size_t put_special(struct json_sink *s, struct span rest, bool is_html)
{
    size_t need, len;

    if (rest.p[0] < 0x80)
        return put_escape(s, rest.p[0]);
    len = str_utf8_len(rest, &need);
    if (len == 0)
        return json_sink_run(s, (const uint8_t *)"\xef\xbf\xbd", 3) ? need : 0;
    if (is_html && len == 3 && rest.p[0] == 0xe2 && rest.p[1] == 0x80 && (rest.p[2] & 0xfe) == 0xa8)
        return put_escape(s, 0x2000 + (rest.p[2] & 0x3fu)) ? 3 : 0;
    return json_sink_run(s, rest.p, len) ? len : 0;
}

bool json_sink_string(struct json_sink *s, struct span text, unsigned flags)
{
    bool is_html = flags & JSON_HTML_SAFE;

    if (!json_sink_byte(s, '"'))
        return false;
    while (text.n) {
        size_t n = plain_run(text, is_html);

        if (!json_sink_run(s, text.p, n))
            return false;
        text = span_skip(text, n);
        if (text.n == 0)
            break;
        n = put_special(s, text, is_html);
        if (n == 0)
            return false;
        text = span_skip(text, n);
    }
    return json_sink_byte(s, '"');
}

int json_write_str(struct span text, unsigned flags, struct buf *out, struct err *e)
{
    size_t start = out->n;
    struct json_sink s;

    if (json_sink_begin(&s, out, 2, e) == 0 && json_sink_string(&s, text, flags)) {
        settle(&s);
        return 0;
    }
    buf_truncate(out, start);
    return -1;
}

/* A string of a document. A plain one is copied in whole steps, past its end on both sides: the
 * document is padded, and the step is taken only with room for it. */
static inline bool put_text(struct json_sink *s, const struct json *v, unsigned flags)
{
    size_t n = v->n;

    if (!(v->flags & JSON_FLAG_PLAIN) || flags & JSON_HTML_SAFE)
        return json_sink_string(s, span_of(v->u.text, n), flags);
    if ((size_t)(s->end - s->p) >= n + 2 + JSON_PAD_BYTES) {
        const uint8_t *from = v->u.text;
        uint8_t *to = s->p; /* a local: stores through s->p would make the compiler load it again */

        *to++ = '"';
        memcpy(to, from, 16);
        for (size_t i = 16; i < n; i += 16)
            memcpy(to + i, from + i, 16);
        to[n] = '"';
        s->p = to + n + 1;
        return true;
    }
    return json_sink_byte(s, '"') && json_sink_run(s, v->u.text, n) && json_sink_byte(s, '"');
}

static inline bool put_scalar(struct json_sink *s, const struct json *v, unsigned flags)
{
    switch ((enum json_type)v->type) {
    case JSON_STRING:
        return put_text(s, v, flags);
    case JSON_NUMBER:
        return json_sink_run(s, v->u.text, v->n);
    case JSON_BOOL:
        return v->n ? json_sink_run(s, (const uint8_t *)"true", 4)
                    : json_sink_run(s, (const uint8_t *)"false", 5);
    case JSON_NONE:
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return json_sink_run(s, (const uint8_t *)"null", 4);
}

static bool put_line(struct json_sink *s, uint32_t depth)
{
    if (!json_sink_room(s, 1 + 2 * (size_t)depth))
        return false;
    *s->p++ = '\n';
    memset(s->p, ' ', 2 * (size_t)depth);
    s->p += 2 * (size_t)depth;
    return true;
}

struct level {
    const struct json *end; /* behind the last node of the container */
    bool is_object;
};

/* What stands before a node inside a container: a line in the pretty form, and the name. */
static inline bool put_name(struct json_sink *s, const struct json **v, bool is_object,
                            uint32_t depth, unsigned flags)
{
    if (flags & JSON_PRETTY && !put_line(s, depth))
        return false;
    if (!is_object)
        return true;
    if (!put_text(s, *v, flags) || !json_sink_byte(s, ':'))
        return false;
    (*v)++;
    return !(flags & JSON_PRETTY) || json_sink_byte(s, ' ');
}

bool json_sink_tree(struct json_sink *s, const struct json *v, unsigned flags)
{
    struct level levels[JSON_DEPTH_MAX + 1], *top = levels;
    bool is_fine = true;

    levels[0] = (struct level){ v + json_skip(v), false };
    while (is_fine) {
        if (v->type >= JSON_ARRAY && v->n) {
            (++top)->end = v + v->u.skip;
            top->is_object = v->type == JSON_OBJECT;
            is_fine = json_sink_byte(s, top->is_object ? '{' : '[');
            v++;
        } else {
            if (v->type >= JSON_ARRAY)
                is_fine =
                    json_sink_run(s, (const uint8_t *)(v->type == JSON_OBJECT ? "{}" : "[]"), 2);
            else
                is_fine = put_scalar(s, v, flags);
            v++;
            while (is_fine && v == top->end) {
                if (top == levels)
                    return true;
                if (flags & JSON_PRETTY)
                    is_fine = put_line(s, (uint32_t)(top - levels) - 1);
                is_fine = is_fine && json_sink_byte(s, top->is_object ? '}' : ']');
                top--;
            }
            is_fine = is_fine && json_sink_byte(s, ',');
        }
        is_fine = is_fine && put_name(s, &v, top->is_object, (uint32_t)(top - levels), flags);
    }
    return false;
}

int json_write_as(const struct json *v, unsigned flags, struct buf *out, struct err *e)
{
    size_t start = out->n;
    struct json_sink s;

    if (json_sink_begin(&s, out, json_skip(v) * 16, e) == 0 && json_sink_tree(&s, v, flags)) {
        settle(&s);
        return 0;
    }
    buf_truncate(out, start);
    return -1;
}

int json_write(const struct json *v, struct buf *out, struct err *e)
{
    return json_write_as(v, 0, out, e);
}
