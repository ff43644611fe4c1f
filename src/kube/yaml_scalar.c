#include "kube/yaml_scalar.h"

#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PLAIN_MAX_BYTES 64 /* no number that matters is longer */

static bool is_one_of(struct span text, const char *const *words)
{
    for (; *words; words++)
        if (span_is(text, *words))
            return true;
    return false;
}

static const char *const trues[] = { "y",    "Y",    "yes", "Yes", "YES", "true",
                                     "True", "TRUE", "on",  "On",  "ON",  NULL };
static const char *const falses[] = { "n",     "N",     "no",  "No",  "NO",  "false",
                                      "False", "FALSE", "off", "Off", "OFF", NULL };
static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
static const char *const infinities[] = { ".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",
                                          ".INF",  "+.inf", "+.Inf", "+.INF", "-.inf",
                                          "-.Inf", "-.INF", NULL };

/* Digits of a base; false when there is another byte or it does not fit. */
static bool read_base(struct span s, unsigned base, uint64_t *ret)
{
    uint64_t v = 0;

    if (!s.n)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i] | 0x20;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)c - '0'
                         : c >= 'a' && c <= 'f' ? (unsigned)c - 'a' + 10
                                                : 99;

        if (digit >= base || __builtin_mul_overflow(v, base, &v) ||
            __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *ret = v;
    return true;
}

/* "12", "-0x1F", "0o17", "017", "0b11". */
static bool read_int(struct span s, struct yaml_scalar *ret)
{
    bool is_negative = s.p[0] == '-';
    unsigned base = 10;
    uint64_t v;

    if (s.p[0] == '-' || s.p[0] == '+')
        s = span_skip(s, 1);
    if (s.n > 1 && s.p[0] == '0') {
        uint8_t c = s.p[1] | 0x20;

        base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
        s = span_skip(s, c == 'x' || c == 'b' || c == 'o' ? 2 : 1);
    }
    if (!read_base(s, base, &v) || (is_negative && v > (uint64_t)INT64_MAX + 1))
        return false;
    snprintf(ret->number, sizeof ret->number, "%s%" PRIu64, is_negative && v ? "-" : "", v);
    return true;
}

/* The shortest text that reads back equal; whole numbers without exponent, as Go writes them. */
static void write_double(double v, char text[YAML_NUMBER_BYTES])
{
    if (v == floor(v) && fabs(v) < 1e21) {
        snprintf(text, YAML_NUMBER_BYTES, "%.0f", v);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        double back;

        snprintf(text, YAML_NUMBER_BYTES, "%.*g", digits, v);
        if (str_double(span_cstr(text), &back) && back == v)
            return;
    }
}

/* [-+]? ( .digits | digits[.digits?] ) ( [eE][-+]?digits )? */
static bool is_float(struct span s)
{
    size_t i = 0, before, after = 0;

    if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
        i++;
    for (before = i; i < s.n && s.p[i] >= '0' && s.p[i] <= '9';)
        i++;
    before = i - before;
    if (i < s.n && s.p[i] == '.')
        for (after = ++i; i < s.n && s.p[i] >= '0' && s.p[i] <= '9';)
            i++;
    if (!before && (!after || i == after))
        return false;
    if (i < s.n && (s.p[i] | 0x20) == 'e') {
        size_t start;

        i++;
        if (i < s.n && (s.p[i] == '-' || s.p[i] == '+'))
            i++;
        for (start = i; i < s.n && s.p[i] >= '0' && s.p[i] <= '9';)
            i++;
        if (i == start)
            return false;
    }
    return i == s.n;
}

static bool read_number(struct span text, struct yaml_scalar *ret)
{
    char plain[PLAIN_MAX_BYTES];
    size_t n = 0;
    double v;

    if (text.n >= sizeof plain || !strchr("+-.0123456789", text.p[0]))
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != '_')
            plain[n++] = (char)text.p[i];
    text = span_of(plain, n);
    if (read_int(text, ret))
        return true;
    if (!is_float(text))
        return false;
    if (!str_double(text, &v)) {
        ret->is_infinite = true;
        return true;
    }
    write_double(v, ret->number);
    return true;
}

void yaml_scalar_resolve(struct span text, struct yaml_scalar *ret)
{
    *ret = (struct yaml_scalar){ .type = JSON_STRING };
    if (is_one_of(text, nulls)) {
        ret->type = JSON_NULL;
    } else if (is_one_of(text, trues) || is_one_of(text, falses)) {
        ret->type = JSON_BOOL;
        ret->is_true = is_one_of(text, trues);
    } else if (is_one_of(text, infinities)) {
        ret->type = JSON_NUMBER;
        ret->is_infinite = true;
    } else if (read_number(text, ret)) {
        ret->type = JSON_NUMBER;
    }
}
