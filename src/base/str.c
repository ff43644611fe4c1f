#include "base/str.h"

#include "base/json_num.h"

bool str_u64(struct span s, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)s.p[i] - '0';

        if (digit > 9 || v > max / 10 || (v == max / 10 && digit > max % 10))
            return false;
        v = v * 10 + digit;
    }
    *ret = v;
    return true;
}

bool str_i64(struct span s, int64_t min, int64_t max, int64_t *ret)
{
    bool is_negative = s.n && s.p[0] == '-';
    uint64_t v;
    int64_t r;

    if (!str_u64(is_negative ? span_skip(s, 1) : s, (uint64_t)INT64_MAX + is_negative, &v))
        return false;
    r = is_negative ? (int64_t)(0 - v) : (int64_t)v;
    if (r < min || r > max)
        return false;
    *ret = r;
    return true;
}

static size_t digit_run(struct span s, size_t at)
{
    size_t i = at;

    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    return i - at;
}

bool str_double(struct span s, double *ret)
{
    size_t at = s.n && (s.p[0] == '+' || s.p[0] == '-'), whole, fraction = 0, exponent = 1;

    whole = digit_run(s, at);
    at += whole;
    if (at < s.n && s.p[at] == '.') {
        fraction = digit_run(s, at + 1);
        at += 1 + fraction;
    }
    if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
        at += 1 + (at + 1 < s.n && (s.p[at + 1] == '+' || s.p[at + 1] == '-'));
        exponent = digit_run(s, at);
        at += exponent;
    }
    if (whole + fraction == 0 || exponent == 0 || at != s.n)
        return false;
    return json_num_read(s.p[0] == '+' ? span_skip(s, 1) : s, ret);
}

static double duration_unit_ms(struct span unit)
{
    if (span_is(unit, "ns"))
        return 1e-6;
    if (span_is(unit, "us"))
        return 1e-3;
    if (span_is(unit, "ms"))
        return 1;
    if (span_is(unit, "s"))
        return 1e3;
    if (span_is(unit, "m"))
        return 60e3;
    if (span_is(unit, "h"))
        return 3600e3;
    return -1;
}

bool str_duration_ms(struct span s, uint64_t max_ms, uint64_t *ret_ms)
{
    size_t whole = s.n;
    double total = 0;

    if (s.n == 0)
        return false;
    while (s.n) {
        size_t digits = 0, letters;
        double v, unit;

        while (digits < s.n && ((s.p[digits] >= '0' && s.p[digits] <= '9') || s.p[digits] == '.'))
            digits++;
        for (letters = 0; digits + letters < s.n; letters++)
            if (s.p[digits + letters] < 'a' || s.p[digits + letters] > 'z')
                break;
        unit = digits == whole ? 1e3 : duration_unit_ms(span_slice(s, digits, digits + letters));
        if (unit < 0 || !str_double(span_slice(s, 0, digits), &v))
            return false;
        total += v * unit;
        s = span_skip(s, digits + letters);
    }
    if (!(total <= (double)max_ms) || total >= 0x1p64)
        return false;
    *ret_ms = (uint64_t)(total + 0.5);
    return true;
}

bool str_bytes(struct span s, uint64_t max, uint64_t *ret)
{
    size_t digits = 0;
    unsigned shift = 0;
    struct span unit;
    uint64_t v;

    while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
        digits++;
    unit = span_skip(s, digits);
    if (unit.n) {
        switch (unit.p[0] | 0x20) {
        case 'k':
            shift = 10;
            break;
        case 'm':
            shift = 20;
            break;
        case 'g':
            shift = 30;
            break;
        case 't':
            shift = 40;
            break;
        case 'b':
            break;
        default:
            return false;
        }
        unit = span_skip(unit, 1);
        if (shift && !(unit.n == 0 || span_is_nocase(unit, "b") || span_is_nocase(unit, "ib") ||
                       span_is_nocase(unit, "i")))
            return false;
        if (!shift && unit.n)
            return false;
    }
    if (!str_u64(span_slice(s, 0, digits), max >> shift, &v))
        return false;
    *ret = v << shift;
    return true;
}

bool str_bool(struct span s, bool *ret)
{
    static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True", "yes", "on" };
    static const char *const no[] = { "0", "f", "F", "FALSE", "false", "False", "no", "off" };

    for (size_t i = 0; i < LEN(yes); i++) {
        if (span_is(s, yes[i])) {
            *ret = true;
            return true;
        }
        if (span_is(s, no[i])) {
            *ret = false;
            return true;
        }
    }
    return false;
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int str_percent_decode(struct span s, struct buf *out, struct err *e)
{
    if (buf_reserve(out, s.n, e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        int hi = s.p[i] == '%' && i + 2 < s.n ? hex_value(s.p[i + 1]) : -1;
        int lo = hi >= 0 ? hex_value(s.p[i + 2]) : -1;

        out->p[out->n++] = (uint8_t)(lo >= 0 ? hi << 4 | lo : s.p[i]);
        i += lo >= 0 ? 2 : 0;
    }
    out->p[out->n] = '\0';
    return 0;
}

int str_percent_encode(struct span s, const char *safe, struct buf *out, struct err *e)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool is_plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                        (c && strchr("-_.~", c)) || (c && strchr(safe, c));
        uint8_t coded[3] = { '%', (uint8_t)hex[c >> 4], (uint8_t)hex[c & 15] };

        if (buf_add(out, is_plain ? span_of(&c, 1) : span_of(coded, 3), e) < 0)
            return -1;
    }
    return 0;
}

static int base64_value(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int str_base64_decode(struct span s, struct buf *out, struct err *e)
{
    size_t pad = 0, start = out->n;

    if (s.n % 4)
        return err_set(e, ERR_INVALID, "base64 text of %zu characters: not a multiple of 4", s.n);
    while (pad < 2 && pad < s.n && s.p[s.n - 1 - pad] == '=')
        pad++;
    if (buf_reserve(out, s.n / 4 * 3, e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i += 4) {
        size_t have = i + 4 == s.n ? 4 - pad : 4;
        uint32_t v = 0;

        for (size_t k = 0; k < 4; k++) {
            int bits = k < have ? base64_value(s.p[i + k]) : 0;

            if (bits < 0) {
                buf_truncate(out, start);
                return err_set(e, ERR_INVALID, "base64 text: bad character at %zu", i + k);
            }
            v = v << 6 | (uint32_t)bits;
        }
        out->p[out->n++] = (uint8_t)(v >> 16);
        if (have > 2)
            out->p[out->n++] = (uint8_t)(v >> 8);
        if (have > 3)
            out->p[out->n++] = (uint8_t)v;
    }
    if (out->p)
        out->p[out->n] = '\0';
    return 0;
}

int str_base64_encode(struct span s, struct buf *out, struct err *e)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    if (buf_reserve(out, (s.n + 2) / 3 * 4, e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i += 3) {
        size_t have = MIN(s.n - i, (size_t)3);
        uint32_t v = (uint32_t)s.p[i] << 16 | (have > 1 ? (uint32_t)s.p[i + 1] << 8 : 0) |
                     (have > 2 ? (uint32_t)s.p[i + 2] : 0);

        out->p[out->n++] = (uint8_t)set[v >> 18];
        out->p[out->n++] = (uint8_t)set[v >> 12 & 63];
        out->p[out->n++] = have > 1 ? (uint8_t)set[v >> 6 & 63] : '=';
        out->p[out->n++] = have > 2 ? (uint8_t)set[v & 63] : '=';
    }
    out->p[out->n] = '\0';
    return 0;
}

int str_base64url_encode(struct span s, struct buf *out, struct err *e)
{
    size_t from = out->n;

    if (str_base64_encode(s, out, e) < 0)
        return -1;
    while (out->n > from && out->p[out->n - 1] == '=')
        buf_truncate(out, out->n - 1);
    for (size_t i = from; i < out->n; i++)
        out->p[i] = out->p[i] == '+' ? '-' : out->p[i] == '/' ? '_' : out->p[i];
    return 0;
}

int str_base64url_decode(struct span s, struct buf *out, struct err *e)
{
    OWN(buf_done) struct buf plain = BUF_INIT(s.n + 4);

    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];

        if (c == '+' || c == '/' || c == '=')
            return err_set(e, ERR_INVALID, "not base64url: byte %zu", i);
        if (buf_addc(&plain, c == '-' ? '+' : c == '_' ? '/' : c, e) < 0)
            return -1;
    }
    while (plain.n % 4)
        if (buf_addc(&plain, '=', e) < 0)
            return -1;
    return str_base64_decode(buf_span(&plain), out, e);
}

/* The rows of Unicode's table of well-formed sequences: first byte range, and the range of the second. */
size_t str_utf8_len(struct span s, size_t *ret_need)
{
    uint8_t c = s.p[0], lo = 0x80, hi = 0xbf;
    size_t len;

    *ret_need = 1;
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        len = 2;
    else if (c >= 0xe0 && c <= 0xef)
        len = 3, lo = c == 0xe0 ? 0xa0 : 0x80, hi = c == 0xed ? 0x9f : 0xbf;
    else if (c >= 0xf0 && c <= 0xf4)
        len = 4, lo = c == 0xf0 ? 0x90 : 0x80, hi = c == 0xf4 ? 0x8f : 0xbf;
    else
        return 0;
    for (size_t i = 1; i < len; i++) {
        if (i >= s.n || s.p[i] < lo || s.p[i] > hi) {
            *ret_need = i;
            return 0;
        }
        lo = 0x80, hi = 0xbf;
    }
    return len;
}

static size_t ascii_run(struct span s)
{
    size_t i = 0;

    for (; i + 8 <= s.n; i += 8) {
        uint64_t word;

        memcpy(&word, s.p + i, 8);
        if (word & 0x8080808080808080u)
            break;
    }
    while (i < s.n && s.p[i] < 0x80)
        i++;
    return i;
}

bool str_utf8_valid(struct span s)
{
    while (s.n) {
        size_t need, len = ascii_run(s);

        if (len == 0)
            len = str_utf8_len(s, &need);
        if (len == 0)
            return false;
        s = span_skip(s, len);
    }
    return true;
}

size_t str_utf8_partial_tail(struct span s)
{
    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        struct span tail = span_skip(s, s.n - back);
        size_t need;

        if ((tail.p[0] & 0xc0) == 0x80)
            continue;
        return str_utf8_len(tail, &need) == 0 && need == tail.n && tail.p[0] >= 0xc2 &&
                       tail.p[0] <= 0xf4
                   ? back
                   : 0;
    }
    return 0;
}

int str_utf8_lossy(struct span s, struct buf *out, struct err *e)
{
    while (s.n) {
        size_t need = 0, len = ascii_run(s);

        if (len == 0)
            len = str_utf8_len(s, &need);
        if (buf_add(out, len ? span_slice(s, 0, len) : SPAN("\xef\xbf\xbd"), e) < 0)
            return -1;
        s = span_skip(s, len ? len : need);
    }
    return 0;
}

bool str_eq_secret(struct span a, struct span b)
{
    volatile uint8_t diff = 0;

    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        diff = (uint8_t)(diff | (a.p[i] ^ b.p[i]));
    return diff == 0;
}
