/* Strings with more than plain ASCII in them: UTF-8 is validated, escapes are undone in place. */
#include "base/json_doc.h"

struct source {
    const uint8_t *end;
    struct json_fault *fault;
};

uint8_t *json_fault(struct json_fault *f, const char *what, const uint8_t *where)
{
    *f = (struct json_fault){ ERR_INVALID, what, where };
    return NULL;
}

static int hex4(const uint8_t *p)
{
    int v = 0;

    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i], letter = c | 0x20;

        if (c >= '0' && c <= '9')
            v = v << 4 | (c - '0');
        else if (letter >= 'a' && letter <= 'f')
            v = v << 4 | (letter - 'a' + 10);
        else
            return -1;
    }
    return v;
}

static uint8_t *put_utf8(uint8_t *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (uint8_t)c;
    } else if (c < 0x800) {
        *to++ = (uint8_t)(0xc0 | c >> 6);
        *to++ = (uint8_t)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (uint8_t)(0xe0 | c >> 12);
        *to++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        *to++ = (uint8_t)(0x80 | (c & 0x3f));
    } else {
        *to++ = (uint8_t)(0xf0 | c >> 18);
        *to++ = (uint8_t)(0x80 | (c >> 12 & 0x3f));
        *to++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        *to++ = (uint8_t)(0x80 | (c & 0x3f));
    }
    return to;
}

/* p is at the 'u' of an escape; moves it behind. Returns the code point, or UINT32_MAX after a
 * fault. */
static uint32_t unicode_escape(struct source *s, uint8_t **p)
{
    static const char what[] = "Invalid \\uXXXX escape";
    uint8_t *at = *p;
    int high = hex4(at + 1), low;

    /* Like Python, four digits at the very end count as incomplete rather than as an open string.
     * */
    if (high < 0 || at + 5 >= s->end || (high >= 0xdc00 && high <= 0xdfff)) {
        (void)json_fault(s->fault, what, at);
        return UINT32_MAX;
    }
    *p = at + 5;
    if (high < 0xd800 || high > 0xdfff)
        return (uint32_t)high;
    if (at[5] != '\\' || at[6] != 'u') {
        (void)json_fault(s->fault, what, at);
        return UINT32_MAX;
    }
    low = hex4(at + 7);
    if (low < 0xdc00 || low > 0xdfff || at + 11 >= s->end) {
        (void)json_fault(s->fault, what, low < 0 || at + 11 >= s->end ? at + 6 : at);
        return UINT32_MAX;
    }
    *p = at + 11;
    return 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
}

/* *p is behind a backslash; moves it behind the escape. Returns where *to ends now, or NULL. */
static uint8_t *unescape(struct source *s, uint8_t **p, uint8_t *to, bool *is_plain)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *hit;
    uint32_t c;

    if (**p == 'u') {
        c = unicode_escape(s, p);
        if (c == UINT32_MAX)
            return NULL;
    } else {
        hit = **p ? strchr(from, **p) : NULL;
        if (!hit)
            return json_fault(s->fault, "Invalid \\escape", *p - 1);
        c = (uint8_t)into[hit - from];
        (*p)++;
    }
    if (c < 0x20 || c == '"' || c == '\\')
        *is_plain = false;
    return put_utf8(to, c);
}

uint8_t *json_string_rest(uint8_t *start, uint8_t *p, const uint8_t *end, struct json *node,
                          struct json_fault *f)
{
    struct source s = { end, f };
    uint8_t *to = p; /* where the next byte goes: equals p until the first escape */
    bool is_plain = true;

    for (;;) {
        uint8_t *run = p;

        while (*p >= 0x80) {
            size_t len = json_utf8_padded(p);

            if (len == 0)
                return json_fault(f, "Invalid UTF-8", p);
            p += len;
        }
        p = json_scan_padded(p);
        if (to != run)
            memmove(to, run, (size_t)(p - run));
        to += p - run;
        if (*p == '"') {
            *to = '\0';
            *node = (struct json){ .type = JSON_STRING,
                                   .flags = is_plain ? JSON_FLAG_PLAIN : 0,
                                   .n = (uint32_t)(to - start),
                                   .u.text = start };
            return p + 1;
        }
        if (*p >= 0x80)
            continue;
        if (p == end || (*p == '\\' && p + 1 == end))
            return json_fault(f, "Unterminated string starting at", start - 1);
        if (*p != '\\')
            return json_fault(f, "Invalid control character at", p);
        p++;
        to = unescape(&s, &p, to, &is_plain);
        if (!to)
            return NULL;
    }
}
