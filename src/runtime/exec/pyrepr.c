#include "runtime/exec/pyrepr.h"

#include "base/str.h"

#include <math.h>

struct range {
    uint32_t from, to;
};

/* Beyond ASCII: control and format characters, all kinds of spaces, surrogates, private use, and the code
 * points that are never characters. */
static const struct range hidden[] = {
    { 0x7f, 0xa0 },       { 0xad, 0xad },        { 0x600, 0x605 },     { 0x61c, 0x61c },
    { 0x6dd, 0x6dd },     { 0x70f, 0x70f },      { 0x890, 0x891 },     { 0x8e2, 0x8e2 },
    { 0x1680, 0x1680 },   { 0x180e, 0x180e },    { 0x2000, 0x200f },   { 0x2028, 0x202f },
    { 0x205f, 0x206f },   { 0x3000, 0x3000 },    { 0xd800, 0xf8ff },   { 0xfdd0, 0xfdef },
    { 0xfeff, 0xfeff },   { 0xfff0, 0xfffb },    { 0xfffe, 0xffff },   { 0x110bd, 0x110bd },
    { 0x110cd, 0x110cd }, { 0x13430, 0x1343f },  { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
    { 0xe0000, 0xe00ff }, { 0xe01f0, 0x10ffff },
};

static bool is_hidden(uint32_t c)
{
    if (c < 0x20)
        return true;
    EACH(r, hidden) {
        if (c >= r->from && c <= r->to)
            return true;
    }
    return false;
}

/* The code point of a valid sequence of n bytes. */
static uint32_t decode(const uint8_t *p, size_t n)
{
    uint32_t c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));

    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

static int add_escape(uint32_t c, struct buf *out, struct err *e)
{
    switch (c) {
    case '\t':
        return buf_add(out, SPAN("\\t"), e);
    case '\n':
        return buf_add(out, SPAN("\\n"), e);
    case '\r':
        return buf_add(out, SPAN("\\r"), e);
    default:
        break;
    }
    if (c < 0x100)
        return buf_addf(out, e, "\\x%02x", c);
    return c < 0x10000 ? buf_addf(out, e, "\\u%04x", c) : buf_addf(out, e, "\\U%08x", c);
}

int pyrepr_str(struct span s, struct buf *out, struct err *e)
{
    bool has_single = span_find(s, '\'') != SIZE_MAX, has_double = span_find(s, '"') != SIZE_MAX;
    uint8_t quote = has_single && !has_double ? '"' : '\'';

    if (buf_addc(out, quote, e) < 0)
        return -1;
    while (s.n) {
        size_t bad = 0, n = str_utf8_len(s, &bad);
        uint32_t c = n ? decode(s.p, n) : 0xdc00u + s.p[0];
        int rc;

        if (n == 1 && (c == quote || c == '\\'))
            rc = buf_addf(out, e, "\\%c", (int)c);
        else if (n == 0 || is_hidden(c))
            rc = add_escape(c, out, e);
        else
            rc = buf_add(out, span_slice(s, 0, n), e);
        if (rc < 0)
            return -1;
        s = span_skip(s, MAX(n, (size_t)1));
    }
    return buf_addc(out, quote, e);
}

int pyrepr_argv(char *const *argv, struct buf *out, struct err *e)
{
    if (buf_addc(out, '[', e) < 0)
        return -1;
    for (size_t i = 0; argv[i]; i++) {
        if (i && buf_add(out, SPAN(", "), e) < 0)
            return -1;
        if (pyrepr_str(span_cstr(argv[i]), out, e) < 0)
            return -1;
    }
    return buf_addc(out, ']', e);
}

int pyrepr_float(double d, struct buf *out, struct err *e)
{
    char text[40], digits[24];
    int precision = 1, exponent = 0;
    size_t n = 0;

    if (isnan(d) || isinf(d))
        return buf_add(out, span_cstr(isnan(d) ? "nan" : d < 0 ? "-inf" : "inf"), e);
    do
        (void)snprintf(text, sizeof text, "%.*e", precision - 1, d);
    while (strtod(text, NULL) != d && precision++ < 17);
    exponent = (int)strtod(strchr(text, 'e') + 1, NULL);
    for (const char *p = text; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    }
    digits[n] = '\0';
    if (signbit(d) && buf_addc(out, '-', e) < 0)
        return -1;
    if (exponent < -4 || exponent >= 16)
        return buf_addf(out, e, "%c%s%se%+03d", digits[0], n > 1 ? "." : "", digits + 1, exponent);
    if (exponent < 0)
        return buf_addf(out, e, "0.%.*s%s", -exponent - 1, "000", digits);
    if ((size_t)exponent + 1 >= n)
        return buf_addf(out, e, "%s%.*s.0", digits, exponent + 1 - (int)n, "0000000000000000");
    return buf_addf(out, e, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
}

int pyrepr_oserror(int sys, struct span subject, struct buf *out, struct err *e)
{
    char text[128];

    if (buf_addf(out, e, "[Errno %d] %s: ", sys, strerror_r(sys, text, sizeof text)) < 0)
        return -1;
    return pyrepr_str(subject, out, e);
}

int pyrepr_timeout(char *const *argv, double seconds, struct buf *out, struct err *e)
{
    if (buf_add(out, SPAN("Command '"), e) < 0 || pyrepr_argv(argv, out, e) < 0 ||
        buf_add(out, SPAN("' timed out after "), e) < 0 || pyrepr_float(seconds, out, e) < 0)
        return -1;
    return buf_add(out, SPAN(" seconds"), e);
}
