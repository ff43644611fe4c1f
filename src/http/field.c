#include "http/field.h"

enum http_line http_line_take(struct http_head *h, uint32_t line_at, size_t line_max,
                              struct span in, size_t *ret_used)
{
    const uint8_t *lf = in.n ? memchr(in.p, '\n', in.n) : NULL;
    size_t n = lf ? (size_t)(lf - in.p) + 1 : in.n;
    size_t line_room = line_max - (h->text.n - line_at);
    size_t head_room = h->text.max - h->text.n;
    struct err unused;

    /* The nearer ceiling names the fault, as it would if the bytes came one by one. */
    if (n > MIN(line_room, head_room)) {
        *ret_used = 0;
        return line_room <= head_room ? HTTP_LINE_LONG : HTTP_LINE_FULL;
    }
    (void)buf_add(&h->text, span_of(in.p, n), &unused); /* it fits by construction */
    *ret_used = n;
    return lf ? HTTP_LINE_DONE : HTTP_LINE_MORE;
}

int http_line_end(const struct http_head *h, uint32_t line_at, struct http_piece *ret_line,
                  struct err *e)
{
    uint32_t n = (uint32_t)h->text.n - line_at;

    assert(n > 0 && h->text.p[line_at + n - 1] == '\n');
    if (n < 2 || h->text.p[line_at + n - 2] != '\r')
        return err_set(e, ERR_PROTOCOL, "a line ends in a bare LF");
    *ret_line = (struct http_piece){ line_at, n - 2 };
    return 0;
}

static int bad_name(const uint8_t *p, size_t n, size_t at, struct err *e)
{
    if (at == n)
        return err_set(e, ERR_PROTOCOL, "header line without a colon");
    if (at == 0 && (p[0] == ' ' || p[0] == '\t'))
        return err_set(e, ERR_PROTOCOL, "folded header line");
    if (at == 0)
        return err_set(e, ERR_PROTOCOL, "header line without a name");
    if (p[at] == ' ' || p[at] == '\t')
        return err_set(e, ERR_PROTOCOL, "blank in or behind a header name");
    return err_set(e, ERR_PROTOCOL, "byte 0x%02x in a header name", p[at]);
}

static bool value_is_good(struct span value, enum http_field_rules rules)
{
    switch (rules) {
    case HTTP_FIELD_STRICT:
        return http_value_is_valid(value);
    case HTTP_FIELD_MIME:
        return span_find(value, '\0') == SIZE_MAX && span_find(value, '\r') == SIZE_MAX;
    }
    return false;
}

int http_field_parse(struct http_head *h, struct http_piece line, enum http_field_rules rules,
                     struct err *e)
{
    uint8_t *p = h->text.p + line.at;
    struct span value;
    size_t n = 0;

    for (; n < line.n; n++) {
        uint8_t c = http_token_fold[p[n]];

        if (!c)
            break;
        p[n] = c;
    }
    if (n == 0 || n == line.n || p[n] != ':')
        return bad_name(p, line.n, n, e);
    value = span_trim(span_of(p + n + 1, line.n - n - 1));
    if (!value_is_good(value, rules))
        return err_set(e, ERR_PROTOCOL, "control byte in the value of header '%.*s'",
                       (int)MIN(n, (size_t)64), (char *)p);
    return http_head_add_piece(
        h, (struct http_piece){ line.at, (uint32_t)n },
        (struct http_piece){ (uint32_t)(value.p - h->text.p), (uint32_t)value.n }, e);
}
