#include "kube/quantity.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NANO     ((__int128)1000000000)
#define UNIT_MAX ((__int128)INT64_MAX)

static const struct suffix {
    const char *text;
    enum quantity_form form;
    int exponent; /* of 10, or of 2 for the binary ones */
} suffixes[] = {
    { "", QUANTITY_DECIMAL, 0 },   { "n", QUANTITY_DECIMAL, -9 }, { "u", QUANTITY_DECIMAL, -6 },
    { "m", QUANTITY_DECIMAL, -3 }, { "k", QUANTITY_DECIMAL, 3 },  { "M", QUANTITY_DECIMAL, 6 },
    { "G", QUANTITY_DECIMAL, 9 },  { "T", QUANTITY_DECIMAL, 12 }, { "P", QUANTITY_DECIMAL, 15 },
    { "E", QUANTITY_DECIMAL, 18 }, { "Ki", QUANTITY_BINARY, 10 }, { "Mi", QUANTITY_BINARY, 20 },
    { "Gi", QUANTITY_BINARY, 30 }, { "Ti", QUANTITY_BINARY, 40 }, { "Pi", QUANTITY_BINARY, 50 },
    { "Ei", QUANTITY_BINARY, 60 },
};

static __int128 power(int base, int exponent)
{
    __int128 v = 1;

    while (exponent-- > 0)
        v *= base;
    return v;
}

/* The digits of a number: its whole part, held at UNIT_MAX, and 18 digits of its fraction. */
struct digits {
    __int128 whole;
    __int128 part;      /* of 10^18 */
    bool has_remainder; /* digits were dropped that are not 0 */
};

/* Reads digits; the number of bytes, or 0 when there are none. */
static size_t read_digits(struct span s, struct digits *d)
{
    __int128 unit = power(10, 17);
    size_t i = 0, count = 0;

    for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++, count++)
        d->whole = MIN(d->whole * 10 + (s.p[i] - '0'), UNIT_MAX);
    if (i < s.n && s.p[i] == '.')
        for (i++; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++, count++) {
            d->part += unit * (s.p[i] - '0');
            d->has_remainder |= !unit && s.p[i] != '0';
            unit /= 10;
        }
    return count ? i : 0;
}

static bool read_suffix(struct span s, struct suffix *ret)
{
    int64_t exponent;

    EACH(r, suffixes) {
        if (span_is(s, r->text)) {
            *ret = *r;
            return true;
        }
    }
    if (s.p[0] != 'e' && s.p[0] != 'E')
        return false;
    s = span_skip(s, 1);
    if (s.n && s.p[0] == '+')
        s = span_skip(s, 1);
    if (!str_i64(s, -1000, 1000, &exponent))
        return false;
    *ret = (struct suffix){ "", QUANTITY_EXPONENT, (int)exponent };
    return true;
}

/* Rounded up, as the public implementation does with what it cannot hold. */
static __int128 divided(__int128 v, __int128 by, bool has_remainder)
{
    return v / by + (v % by || has_remainder ? 1 : 0);
}

static __int128 scaled(const struct digits *d, const struct suffix *x)
{
    int base = x->form == QUANTITY_BINARY ? 2 : 10;
    __int128 mult;

    if (d->whole == 0 && d->part == 0)
        return d->has_remainder ? 1 : 0;
    if (x->exponent < -27)
        return 1;
    if (x->exponent < 0) {
        /* The whole in billionths first: |exponent| is at most 27 and the divisor 10^27 fits. */
        return divided(d->whole * NANO + d->part / NANO, power(10, -x->exponent),
                       d->part % NANO || d->has_remainder);
    }
    if (x->exponent > (base == 2 ? 60 : 36))
        return UNIT_MAX * NANO;
    mult = power(base, x->exponent);
    if (base == 10 && x->exponent > 18) /* even the smallest part is beyond, or nearly */
        return UNIT_MAX * NANO;
    if (d->whole > UNIT_MAX / mult)
        return UNIT_MAX * NANO;
    return MIN(d->whole * mult * NANO + divided(d->part * mult, NANO, d->has_remainder),
               UNIT_MAX * NANO);
}

bool quantity_parse(struct span s, struct quantity *ret)
{
    struct digits d = { 0 };
    struct suffix x;
    bool is_negative = false;
    size_t n;

    if (s.n && (s.p[0] == '-' || s.p[0] == '+')) {
        is_negative = s.p[0] == '-';
        s = span_skip(s, 1);
    }
    n = read_digits(s, &d);
    if (n == 0 || !read_suffix(span_skip(s, n), &x))
        return false;
    ret->nano = scaled(&d, &x);
    if (is_negative)
        ret->nano = -ret->nano;
    ret->form = x.form;
    return true;
}

static const char *decimal_text(__int128 nano, bool is_exponent, char text[QUANTITY_TEXT_BYTES])
{
    static const char *const names[] = { "n", "u", "m", "", "k", "M", "G", "T", "P", "E" };
    int step = 0; /* nano = mantissa * 1000^step */

    if (nano == 0)
        return "0";
    while (step < 9 && nano % 1000 == 0) {
        nano /= 1000;
        step++;
    }
    if (is_exponent && step != 3)
        snprintf(text, QUANTITY_TEXT_BYTES, "%" PRId64 "e%d", (int64_t)nano, 3 * step - 9);
    else
        snprintf(text, QUANTITY_TEXT_BYTES, "%" PRId64 "%s", (int64_t)nano,
                 is_exponent ? "" : names[step]);
    return text;
}

const char *quantity_text(const struct quantity *q, char text[QUANTITY_TEXT_BYTES])
{
    static const char *const names[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
    __int128 units = q->nano / NANO;
    int step = 0;

    if (q->form != QUANTITY_BINARY || !quantity_is_whole(q) || (units > -1024 && units < 1024))
        return decimal_text(q->nano, q->form == QUANTITY_EXPONENT, text);
    while (step < 6 && units % 1024 == 0) {
        units /= 1024;
        step++;
    }
    snprintf(text, QUANTITY_TEXT_BYTES, "%" PRId64 "%s", (int64_t)units, names[step]);
    return text;
}

int quantity_compare(const struct quantity *a, const struct quantity *b)
{
    return (a->nano > b->nano) - (a->nano < b->nano);
}
