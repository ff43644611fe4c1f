#include "http/param.h"

#include "base/str.h"

/* Where the piece ends: the next ';' outside of quotes. */
static size_t piece_end(struct span s)
{
    bool in_quotes = false;

    for (size_t i = 0; i < s.n; i++) {
        if (in_quotes && s.p[i] == '\\')
            i++;
        else if (s.p[i] == '"')
            in_quotes = !in_quotes;
        else if (s.p[i] == ';' && !in_quotes)
            return i;
    }
    return s.n;
}

struct span http_param_value(struct span header, struct span *ret_rest)
{
    size_t end = piece_end(header);

    *ret_rest = span_skip(header, end + 1);
    return span_trim(span_slice(header, 0, end));
}

bool http_param_next(struct span *rest, struct span *ret_name, struct span *ret_raw)
{
    while (rest->n) {
        size_t end = piece_end(*rest);
        struct span piece = span_trim(span_slice(*rest, 0, end));
        size_t equals = span_find(piece, '=');

        *rest = span_skip(*rest, end + 1);
        if (!piece.n)
            continue;
        *ret_name = span_trim(span_slice(piece, 0, equals));
        *ret_raw = equals == SIZE_MAX ? SPAN_NONE : span_trim(span_skip(piece, equals + 1));
        return true;
    }
    return false;
}

static struct span strip_quotes(struct span raw)
{
    bool is_quoted = raw.n >= 2 && raw.p[0] == '"' && raw.p[raw.n - 1] == '"';

    return is_quoted ? span_slice(raw, 1, raw.n - 1) : raw;
}

int http_param_unquote(struct span raw, struct buf *out, struct err *e)
{
    struct span inside = strip_quotes(raw);

    if (inside.n == raw.n || span_find(inside, '\\') == SIZE_MAX)
        return buf_add(out, inside, e);
    for (size_t i = 0; i < inside.n; i++) {
        if (inside.p[i] == '\\' && i + 1 < inside.n &&
            (inside.p[i + 1] == '\\' || inside.p[i + 1] == '"'))
            i++;
        if (buf_addc(out, inside.p[i], e) < 0)
            return -1;
    }
    return 0;
}

int http_param_extended(struct span raw, struct buf *out, struct err *e)
{
    struct span value = strip_quotes(raw);
    size_t first = span_find(value, '\'');
    size_t second = first == SIZE_MAX ? SIZE_MAX : span_find(span_skip(value, first + 1), '\'');

    if (second != SIZE_MAX)
        value = span_skip(value, first + 1 + second + 1);
    return str_percent_decode(value, out, e);
}
