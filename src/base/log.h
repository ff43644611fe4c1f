/* log: one event, one line, on stderr.
 *
 *     log_info("exec.exit", KV("exec", id), KV("code", code), KV("ms", ms));
 *     ts=2026-11-16T09:30:00.123Z level=info event=exec.exit exec=7 code=0 ms=12
 *
 * Owns:     the level and the descriptor, set once at start. A line is one write, so lines of several
 *           processes do not mix. Values are escaped, never altered; a value longer than LOG_VALUE_MAX_BYTES
 *           is cut and ends in "...".
 * Used by:  the rooms that decide. Base, engines and client never log.
 * Never:    secrets, environment, file contents.
 */
#ifndef SILICA_BASE_LOG_H
#define SILICA_BASE_LOG_H

#include "base/buf.h"

#define LOG_VALUE_MAX_BYTES 1024 /* one hostile value must not fill the log */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };
/* LOG_ZAP: JSON as controllers in Go write it: level, ts in seconds since 1970, logger (the event's first part), msg. */
enum log_format { LOG_TEXT, LOG_JSON, LOG_ZAP };

enum log_kind {
    LOG_KIND_I64,
    LOG_KIND_U64,
    LOG_KIND_DOUBLE,
    LOG_KIND_BOOL,
    LOG_KIND_STR,
    LOG_KIND_SPAN,
    LOG_KIND_ERR
};

struct log_kv {
    const char *key;
    enum log_kind kind;
    union {
        int64_t i;
        uint64_t u;
        double d;
        const char *s;
        struct span span;
        const struct err *err;
    } v;
};

void log_open(int fd, enum log_level level, enum log_format format);
bool log_is_on(enum log_level level);
enum log_level log_level(void);
void log_set_level(enum log_level level);
bool log_level_parse(const char *name, enum log_level *ret);
/* What --zap-log-level of programs in Go says: a word, or a number from 0 that shows more the higher it is. What is neither
 * ("panic") is LOG_ERROR. */
enum log_level log_level_of_zap(const char *word);
/* Formats without writing: what log_event would write, newline included. */
void log_format(struct buf *out, enum log_format format, enum log_level level, const char *event,
                const struct log_kv *kv, size_t n);
void log_event(enum log_level level, const char *event, const struct log_kv *kv, size_t n);

/* For events that another account can cause without end: one line in LOG_LIMIT_MS, which says the count so far. Zeros to begin. */
#define LOG_LIMIT_MS 1000
struct log_limit {
    uint64_t count;   /* of the events */
    uint64_t next_ms; /* no line before */
};
/* Counts the event; true: now a line may be written. */
bool log_limit_pass(struct log_limit *l, uint64_t now_ms);

struct log_kv log_kv_i(const char *key, int64_t v);
struct log_kv log_kv_u(const char *key, uint64_t v);
struct log_kv log_kv_d(const char *key, double v);
struct log_kv log_kv_b(const char *key, bool v);
struct log_kv log_kv_s(const char *key, const char *v);
struct log_kv log_kv_span(const char *key, struct span v);
struct log_kv log_kv_err(const char *key, const struct err *v);

/* clang-format off */
#define KV(key, value)                                                                             \
    _Generic((value),                                                                              \
        bool: log_kv_b, int: log_kv_i, long: log_kv_i, long long: log_kv_i,                        \
        unsigned: log_kv_u, unsigned long: log_kv_u, unsigned long long: log_kv_u,                 \
        uint16_t: log_kv_u, double: log_kv_d,                                                      \
        char *: log_kv_s, const char *: log_kv_s, struct span: log_kv_span,                        \
        struct err *: log_kv_err, const struct err *: log_kv_err)(key, value)
/* clang-format on */

#define LOG_AT(level, event, ...)                                                                  \
    do {                                                                                           \
        if (log_is_on(level)) {                                                                    \
            const struct log_kv kv_[] = { { NULL, LOG_KIND_I64, { 0 } }, ##__VA_ARGS__ };          \
            log_event(level, event, kv_ + 1, LEN(kv_) - 1);                                        \
        }                                                                                          \
    } while (0)
#define log_debug(event, ...) LOG_AT(LOG_DEBUG, event, ##__VA_ARGS__)
#define log_info(event, ...)  LOG_AT(LOG_INFO, event, ##__VA_ARGS__)
#define log_warn(event, ...)  LOG_AT(LOG_WARN, event, ##__VA_ARGS__)
#define log_error(event, ...) LOG_AT(LOG_ERROR, event, ##__VA_ARGS__)

#endif
