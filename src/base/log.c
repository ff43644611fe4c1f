#include "base/log.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <math.h>

/* Then the line loses the values that do not fit, never its end */
#define LOG_LINE_MAX_BYTES (16 * 1024)
#define LOG_LINE_END_BYTES 2 /* "}" and the newline */

static int log_fd = 2;
static enum log_level log_min = LOG_INFO;
static enum log_format log_style = LOG_TEXT;
static const char *const level_names[] = { "debug", "info", "warn", "error", "off" };

void log_open(int fd, enum log_level level, enum log_format format)
{
    log_fd = fd;
    log_min = level;
    log_style = format;
}

bool log_is_on(enum log_level level)
{
    return level >= log_min;
}

bool log_limit_pass(struct log_limit *l, uint64_t now_ms)
{
    l->count++;
    if (now_ms < l->next_ms)
        return false;
    l->next_ms = now_ms + LOG_LIMIT_MS;
    return true;
}

enum log_level log_level(void)
{
    return log_min;
}

void log_set_level(enum log_level level)
{
    log_min = level;
}

bool log_level_parse(const char *name, enum log_level *ret)
{
    for (size_t i = 0; i < LEN(level_names); i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *ret = (enum log_level)i;
            return true;
        }
    }
    return false;
}

enum log_level log_level_of_zap(const char *word)
{
    enum log_level level;
    uint64_t number;

    if (str_u64(span_cstr(word), UINT64_MAX, &number))
        return number ? LOG_DEBUG : LOG_INFO;
    return log_level_parse(word, &level) ? level : LOG_ERROR;
}

static bool is_bare(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\' || s.p[i] >= 0x7f)
            return false;
    return s.n > 0;
}

/* A code point as JSON escapes it: two halves above U+FFFF. */
static int add_code(struct buf *out, uint32_t c, struct err *e)
{
    if (c < 0x10000)
        return buf_addf(out, e, "\\u%04x", c);
    c -= 0x10000;
    return buf_addf(out, e, "\\u%04x\\u%04x", 0xd800 + (c >> 10), 0xdc00 + (c & 0x3ff));
}

/* One character that is not printable ASCII, escaped so that a terminal is never driven. Returns its bytes. */
static size_t add_special(struct buf *out, struct span s, struct err *e)
{
    size_t need, len = str_utf8_len(s, &need);
    uint32_t c = s.p[0];

    if (c == '\n')
        return buf_add(out, SPAN("\\n"), e) < 0 ? 0 : 1;
    if (len == 0)
        return add_code(out, 0xfffd, e) < 0 ? 0 : need;
    if (len > 1)
        c &= 0x7fu >> len;
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (s.p[i] & 0x3fu);
    return add_code(out, c, e) < 0 ? 0 : len;
}

/* Quoted with JSON's escapes in both formats. */
static int add_quoted(struct buf *out, struct span s, struct err *e)
{
    struct span rest = span_slice(s, 0, LOG_VALUE_MAX_BYTES);
    bool is_cut = rest.n < s.n;

    if (is_cut)
        rest.n -= str_utf8_partial_tail(rest);
    if (buf_addc(out, '"', e) < 0)
        return -1;
    while (rest.n) {
        uint8_t c = rest.p[0];
        size_t used = 1;

        if (c == '"' || c == '\\') {
            if (buf_addf(out, e, "\\%c", c) < 0)
                return -1;
        } else if (c >= ' ' && c < 0x7f) {
            if (buf_addc(out, c, e) < 0)
                return -1;
        } else {
            used = add_special(out, rest, e);
            if (used == 0)
                return -1;
        }
        rest = span_skip(rest, used);
    }
    return buf_add(out, is_cut ? SPAN("...\"") : SPAN("\""), e);
}

static int add_text(struct buf *out, enum log_format format, struct span s, struct err *e)
{
    if (format == LOG_TEXT && s.n <= LOG_VALUE_MAX_BYTES && is_bare(s))
        return buf_add(out, s, e);
    return add_quoted(out, s, e);
}

static int add_double(struct buf *out, double v, struct err *e)
{
    if (isfinite(v))
        return buf_addf(out, e, "%.6g", v);
    return buf_addf(out, e, "\"%s\"", isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

static int add_value(struct buf *out, enum log_format format, const struct log_kv *kv,
                     struct err *e)
{
    switch (kv->kind) {
    case LOG_KIND_I64:
        return buf_addf(out, e, "%lld", (long long)kv->v.i);
    case LOG_KIND_U64:
        return buf_addf(out, e, "%llu", (unsigned long long)kv->v.u);
    case LOG_KIND_DOUBLE:
        return add_double(out, kv->v.d, e);
    case LOG_KIND_BOOL:
        return buf_add(out, kv->v.u ? SPAN("true") : SPAN("false"), e);
    case LOG_KIND_STR:
        return add_text(out, format, span_cstr(kv->v.s), e);
    case LOG_KIND_SPAN:
        return add_text(out, format, kv->v.span, e);
    case LOG_KIND_ERR:
        return add_text(out, format, span_cstr(kv->v.err->msg), e);
    }
    return 0;
}

/* Whole or not at all, and with room left for what ends the line: a line that is cut stays well-formed. */
static void add_pair(struct buf *out, enum log_format format, const struct log_kv *kv)
{
    size_t before = out->n;
    struct err e;

    if (buf_addf(out, &e, format == LOG_TEXT ? " %s=" : ",\"%s\":", kv->key) < 0 ||
        add_value(out, format, kv, &e) < 0 || out->max - out->n < LOG_LINE_END_BYTES)
        buf_truncate(out, before);
}

void log_format(struct buf *out, enum log_format format, enum log_level level, const char *event,
                const struct log_kv *kv, size_t n)
{
    char text[TIME_TEXT_BYTES];
    struct timespec now;
    struct err e;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)time_rfc3339(text, now, true);
    if (format == LOG_ZAP) /* fits: the first words of the line */
        (void)buf_addf(out, &e,
                       "{\"level\":\"%s\",\"ts\":%lld.%06ld,\"logger\":\"%.*s\",\"msg\":\"%s\"",
                       level_names[level], (long long)now.tv_sec, now.tv_nsec / 1000,
                       (int)strcspn(event, "."), event, event);
    else /* fits as well */
        (void)buf_addf(out, &e,
                       format == LOG_JSON ? "{\"ts\":\"%s\",\"level\":\"%s\",\"event\":\"%s\""
                                          : "ts=%s level=%s event=%s",
                       text, level_names[level], event);
    for (size_t i = 0; i < n; i++)
        add_pair(out, format, &kv[i]);
    (void)buf_add(out, format == LOG_TEXT ? SPAN("\n") : SPAN("}\n"), &e); /* add_pair left room */
}

void log_event(enum log_level level, const char *event, const struct log_kv *kv, size_t n)
{
    OWN(buf_done) struct buf line = BUF_INIT(LOG_LINE_MAX_BYTES);
    int saved = errno;

    log_format(&line, log_style, level, event, kv, n);
    (void)!write(log_fd, line.p, line.n); /* nowhere left to complain to */
    errno = saved;
}

struct log_kv log_kv_i(const char *key, int64_t v)
{
    return (struct log_kv){ key, LOG_KIND_I64, { .i = v } };
}

struct log_kv log_kv_u(const char *key, uint64_t v)
{
    return (struct log_kv){ key, LOG_KIND_U64, { .u = v } };
}

struct log_kv log_kv_d(const char *key, double v)
{
    return (struct log_kv){ key, LOG_KIND_DOUBLE, { .d = v } };
}

struct log_kv log_kv_b(const char *key, bool v)
{
    return (struct log_kv){ key, LOG_KIND_BOOL, { .u = v } };
}

struct log_kv log_kv_s(const char *key, const char *v)
{
    return (struct log_kv){ key, LOG_KIND_STR, { .s = v } };
}

struct log_kv log_kv_span(const char *key, struct span v)
{
    return (struct log_kv){ key, LOG_KIND_SPAN, { .span = v } };
}

struct log_kv log_kv_err(const char *key, const struct err *v)
{
    return (struct log_kv){ key, LOG_KIND_ERR, { .err = v } };
}
