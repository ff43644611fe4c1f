#include "trace/context.h"

#include <string.h>

/* Of W3C's grammar for tracestate. */
#define MEMBERS_MAX 32
#define KEY_MAX     256
#define TENANT_MAX  241 /* of a key "tenant@system" */
#define SYSTEM_MAX  14
#define VALUE_MAX   256

enum field { VERSION, TRACE, PARENT, FLAGS, FIELDS };

static const size_t field_bytes[FIELDS] = { 1, TRACE_ID_BYTES, TRACE_SPAN_BYTES, 1 };

static int digit(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct span s, uint8_t *to)
{
    for (size_t i = 0; i < s.n; i += 2) {
        int high = digit(s.p[i]), low = digit(s.p[i + 1]);

        if (high < 0 || low < 0)
            return false;
        to[i / 2] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool is_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

bool trace_context_parse(struct span text, struct trace_context *ret)
{
    uint8_t version, flags;
    struct trace_context c = { 0 };
    uint8_t *const to[FIELDS] = { &version, c.trace, c.span, &flags };

    for (enum field f = VERSION; f < FIELDS; f++) {
        size_t n = 2 * field_bytes[f];

        if (text.n < n || !read_hex(span_slice(text, 0, n), to[f]))
            return false;
        text = span_skip(text, n);
        if (f == FLAGS)
            break;
        if (!text.n || text.p[0] != '-')
            return false;
        text = span_skip(text, 1);
    }
    if (version == 0xff || (version == 0 && text.n) || (text.n && text.p[0] != '-') ||
        is_zero(c.trace, sizeof c.trace) || is_zero(c.span, sizeof c.span))
        return false;
    c.flags = flags & TRACE_SAMPLED;
    *ret = c;
    return true;
}

const char *trace_hex(char *text, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * n] = '\0';
    return text;
}

const char *trace_context_format(char text[TRACE_TEXT_BYTES], const struct trace_context *c)
{
    memcpy(text, "00-", 3);
    (void)trace_hex(text + 3, c->trace, sizeof c->trace);
    text[35] = '-';
    (void)trace_hex(text + 36, c->span, sizeof c->span);
    text[52] = '-';
    (void)trace_hex(text + 53, &c->flags, 1);
    return text;
}

/* ---- tracestate ---- */

static bool is_key_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '*' ||
           c == '/';
}

/* may_be_number: a tenant's name may begin with a digit. */
static bool is_name(struct span s, size_t max, bool may_be_number)
{
    bool is_begun = s.n && ((s.p[0] >= 'a' && s.p[0] <= 'z') ||
                            (may_be_number && s.p[0] >= '0' && s.p[0] <= '9'));

    if (!is_begun || s.n > max)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_key_byte(s.p[i]))
            return false;
    return true;
}

static bool is_key(struct span key)
{
    size_t at = span_find(key, '@');

    if (at == SIZE_MAX)
        return is_name(key, KEY_MAX, false);
    return is_name(span_slice(key, 0, at), TENANT_MAX, true) &&
           is_name(span_skip(key, at + 1), SYSTEM_MAX, false);
}

static bool is_value(struct span value)
{
    if (!value.n || value.n > VALUE_MAX || value.p[value.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] < ' ' || value.p[i] > '~' || value.p[i] == ',' || value.p[i] == '=')
            return false;
    return true;
}

bool trace_state_is_valid(struct span text)
{
    struct span keys[MEMBERS_MAX], member;
    size_t count = 0;

    while (span_cut(&text, ',', &member)) {
        size_t eq;

        member = span_trim(member);
        if (!member.n)
            continue; /* a list may have empty members */
        eq = span_find(member, '=');
        if (eq == SIZE_MAX || count == MEMBERS_MAX || !is_key(span_slice(member, 0, eq)) ||
            !is_value(span_skip(member, eq + 1)))
            return false;
        keys[count] = span_slice(member, 0, eq);
        for (size_t i = 0; i < count; i++)
            if (span_eq(keys[i], keys[count]))
                return false;
        count++;
    }
    return count > 0;
}
