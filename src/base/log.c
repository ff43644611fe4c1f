#include "base/log.h"

#include "base/time.h"

#include <errno.h>

#define LOG_LINE_MAX_BYTES (16 * 1024) /* then the line loses its last values, never its newline */

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

static bool is_bare(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\' || s.p[i] >= 0x7f)
            return false;
    return s.n > 0;
}

/* Quoted with JSON's escapes; bytes outside printable ASCII as \u00XX, so that a terminal is never driven. */
static void add_quoted(struct buf *out, struct span s)
{
    struct span cut = span_slice(s, 0, LOG_VALUE_MAX_BYTES);
    struct err e;

    (void)buf_addc(out, '"', &e);
    for (size_t i = 0; i < cut.n; i++) {
        uint8_t c = cut.p[i];

        if (c == '"' || c == '\\')
            (void)buf_addf(out, &e, "\\%c", c);
        else if (c == '\n')
            (void)buf_add(out, SPAN("\\n"), &e);
        else if (c < ' ' || c >= 0x7f)
            (void)buf_addf(out, &e, "\\u%04x", c);
        else
            (void)buf_addc(out, c, &e);
    }
    (void)buf_add(out, cut.n < s.n ? SPAN("...\"") : SPAN("\""), &e);
}

static void add_text(struct buf *out, enum log_format format, struct span s)
{
    struct err e;

    if (format == LOG_TEXT && s.n <= LOG_VALUE_MAX_BYTES && is_bare(s))
        (void)buf_add(out, s, &e);
    else
        add_quoted(out, s);
}

static void add_value(struct buf *out, enum log_format format, const struct log_kv *kv)
{
    struct err e;

    switch (kv->kind) {
    case LOG_KIND_I64:
        (void)buf_addf(out, &e, "%lld", (long long)kv->v.i);
        break;
    case LOG_KIND_U64:
        (void)buf_addf(out, &e, "%llu", (unsigned long long)kv->v.u);
        break;
    case LOG_KIND_DOUBLE:
        (void)buf_addf(out, &e, "%.6g", kv->v.d);
        break;
    case LOG_KIND_BOOL:
        (void)buf_addf(out, &e, "%s", kv->v.u ? "true" : "false");
        break;
    case LOG_KIND_STR:
        add_text(out, format, span_cstr(kv->v.s));
        break;
    case LOG_KIND_SPAN:
        add_text(out, format, kv->v.span);
        break;
    case LOG_KIND_ERR:
        add_text(out, format, span_cstr(kv->v.err->msg));
        break;
    }
}

static void add_pair(struct buf *out, enum log_format format, const struct log_kv *kv)
{
    struct err e;

    (void)buf_addf(out, &e, format == LOG_JSON ? ",\"%s\":" : " %s=", kv->key);
    add_value(out, format, kv);
}

void log_format(struct buf *out, enum log_format format, enum log_level level, const char *event, const struct log_kv *kv, size_t n)
{
    char text[TIME_TEXT_BYTES];
    struct timespec now;
    struct err e;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)time_rfc3339(text, now, true);
    (void)buf_addf(out, &e, format == LOG_JSON ? "{\"ts\":\"%s\",\"level\":\"%s\",\"event\":\"%s\"" : "ts=%s level=%s event=%s", text,
                   level_names[level], event);
    for (size_t i = 0; i < n; i++)
        add_pair(out, format, &kv[i]);
    (void)buf_add(out, format == LOG_JSON ? SPAN("}\n") : SPAN("\n"), &e);
}

void log_event(enum log_level level, const char *event, const struct log_kv *kv, size_t n)
{
    OWN(buf_done) struct buf line = BUF_INIT(LOG_LINE_MAX_BYTES);
    int saved = errno;

    log_format(&line, log_style, level, event, kv, n);
    if (line.n == 0 || line.p[line.n - 1] != '\n')
        line.p[line.n - 1] = '\n';
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
