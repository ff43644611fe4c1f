#include "base/json_num.h"

#include <math.h>

#define DIGITS_MAX     800   /* 767 decide any double; what is cut off only matters as "not zero" */
#define EXPONENT_CLAMP 99999 /* far past both ends of a double, even after 800 digits */

/* A number without its point: digits * 10^exponent. */
struct decimal {
    bool is_negative;
    uint32_t n;
    int64_t exponent;
    char digits[DIGITS_MAX + 1]; /* no leading zeros */
};

static void split(struct span s, struct decimal *d)
{
    size_t i = 0;
    bool is_fraction = false, is_cut = false;

    d->n = 0;
    d->exponent = 0;
    d->is_negative = s.p[0] == '-';
    for (i = d->is_negative; i < s.n && (s.p[i] | 0x20) != 'e'; i++) {
        if (s.p[i] == '.') {
            is_fraction = true;
            continue;
        }
        d->exponent -= is_fraction;
        if (d->n == 0 && s.p[i] == '0')
            continue;
        if (d->n < DIGITS_MAX) {
            d->digits[d->n++] = (char)s.p[i];
        } else {
            d->exponent++;
            is_cut |= s.p[i] != '0';
        }
    }
    if (is_cut)
        d->digits[d->n - 1] =
            (char)(d->digits[d->n - 1] | 1); /* sticky: keeps the number off an exact tie */
    if (i < s.n) {
        bool is_minus = s.p[i + 1] == '-';
        int64_t x = 0;

        for (i += 1 + (is_minus || s.p[i + 1] == '+'); i < s.n; i++)
            x = MIN(x * 10 + (s.p[i] - '0'), (int64_t)INT32_MAX);
        d->exponent += is_minus ? -x : x;
    }
}

bool json_num_read(struct span s, double *ret)
{
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    char text[DIGITS_MAX + 16];
    struct decimal d;
    double v;

    split(s, &d);
    if (d.n <= 15 && d.exponent >= -22 && d.exponent <= 22) {
        uint64_t m = 0;

        for (uint32_t i = 0; i < d.n; i++)
            m = m * 10 + (uint64_t)(d.digits[i] - '0');
        /* Both factors are exact, so the one rounding of the operation is the right one. */
        v = d.exponent < 0 ? (double)m / powers[-d.exponent] : (double)m * powers[d.exponent];
    } else {
        int64_t x = MAX(MIN(d.exponent, (int64_t)EXPONENT_CLAMP), (int64_t)-EXPONENT_CLAMP);

        memcpy(text, d.digits, d.n);
        (void)snprintf(text + d.n, sizeof text - d.n, "%se%d", d.n ? "" : "0", (int)x);
        v = strtod(text, NULL); /* no point in it, so the locale's has no say */
    }
    if (!isfinite(v))
        return false;
    *ret = d.is_negative ? -v : v;
    return true;
}

static size_t put_digits(uint64_t v, char *text)
{
    char back[20];
    size_t n = 0;

    do {
        back[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    for (size_t i = 0; i < n; i++)
        text[i] = back[n - 1 - i];
    return n;
}

size_t json_num_write_u64(uint64_t v, char text[JSON_NUM_TEXT_BYTES])
{
    return put_digits(v, text);
}

size_t json_num_write_i64(int64_t v, char text[JSON_NUM_TEXT_BYTES])
{
    if (v >= 0)
        return json_num_write_u64((uint64_t)v, text);
    text[0] = '-';
    return 1 + put_digits(0 - (uint64_t)v, text + 1);
}

/* Exactly `n` digits of v > 0 and the power of ten of the first: v = d.ddd * 10^ret. */
static int digits_of(double v, int n, char *digits)
{
    char text[JSON_NUM_TEXT_BYTES];
    size_t at = 0, k = 0;
    int power = 0;
    bool is_minus;

    (void)snprintf(text, sizeof text, "%.*e", n - 1, v);
    for (; text[at] != 'e'; at++)
        if (text[at] >= '0' &&
            text[at] <= '9') /* skips the point, whatever the locale spells it as */
            digits[k++] = text[at];
    is_minus = text[at + 1] == '-';
    for (at += 2; text[at]; at++)
        power = power * 10 + (text[at] - '0');
    return is_minus ? -power : power;
}

static bool reads_back(const char *digits, int n, int power, double v)
{
    char text[JSON_NUM_TEXT_BYTES];
    double back;
    int len = snprintf(text, sizeof text, "%.*se%d", n, digits, power - n + 1);

    return json_num_read(span_of(text, (size_t)len), &back) && back == v;
}

/* Adds one to the last digit; false when that would need another digit. */
static bool bump(char *digits, int n)
{
    while (n-- > 0) {
        if (digits[n] != '9') {
            digits[n]++;
            return true;
        }
        digits[n] = '0';
    }
    return false;
}

/* The fewest digits that read back as v > 0. Returns how many. */
static int shortest(double v, char *digits, int *ret_power)
{
    /* Up to 15 digits survive a trip through a normal double, so 15 find every shorter form, zeros
     * behind it. */
    int n = v < 2.2250738585072014e-308 ? 1 : 15;

    for (; n < 17; n++) {
        *ret_power = digits_of(v, n, digits);
        if (reads_back(digits, n, *ret_power, v))
            break;
        /* Below a power of two doubles lie twice as close: the nearest digits may miss, the next
         * ones hit. */
        if (bump(digits, n) && reads_back(digits, n, *ret_power, v))
            break;
    }
    if (n == 17)
        *ret_power = digits_of(v, n, digits);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

/* Lays the digits out as Python's repr does: positional from 1e-4 up to 1e16, else with an
 * exponent. */
static size_t lay_out(const char *digits, int n, int power, char *text)
{
    size_t k = 0;

    if (power < -4 || power >= 16) {
        text[k++] = digits[0];
        if (n > 1)
            text[k++] = '.';
        for (int i = 1; i < n; i++)
            text[k++] = digits[i];
        return k + (size_t)snprintf(text + k, JSON_NUM_TEXT_BYTES - k - 1, "e%c%02d",
                                    power < 0 ? '-' : '+', abs(power));
    }
    if (power < 0) {
        text[k++] = '0';
        text[k++] = '.';
        for (int i = -1; i > power; i--)
            text[k++] = '0';
    }
    for (int i = 0; i < n || i <= power; i++) {
        text[k++] = i < n ? digits[i] : '0';
        if (i == power && power >= 0) {
            text[k++] = '.';
            if (i + 1 >= n)
                text[k++] = '0';
        }
    }
    return k;
}

size_t json_num_write(double v, char text[JSON_NUM_TEXT_BYTES])
{
    char digits[20];
    size_t sign = 0;
    int n, power;

    if (signbit(v)) {
        text[sign++] = '-';
        v = -v;
    }
    if (v < 9007199254740992.0 && v == (double)(uint64_t)v) { /* whole: no search */
        size_t k = sign + put_digits((uint64_t)v, text + sign);

        text[k] = '.';
        text[k + 1] = '0';
        return k + 2;
    }
    n = shortest(v, digits, &power);
    return sign + lay_out(digits, n, power, text + sign);
}
