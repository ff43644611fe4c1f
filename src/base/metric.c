#include "base/metric.h"

#include "base/json_num.h"

#include <math.h>
#include <string.h>

int metric_head(struct buf *out, const char *name, const char *type, const char *help,
                struct err *e)
{
    return buf_addf(out, e, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static int write_sample(struct buf *out, const char *name, const char *labels, const char *value,
                        struct err *e)
{
    return *labels ? buf_addf(out, e, "%s{%s} %s\n", name, labels, value)
                   : buf_addf(out, e, "%s %s\n", name, value);
}

/* Shortest digits, and whole numbers without a fraction, as the public client library writes them. */
static const char *number(double v, char text[JSON_NUM_TEXT_BYTES])
{
    size_t n;

    if (!isfinite(v))
        return isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf";
    n = json_num_write(v, text);
    if (n > 2 && memcmp(text + n - 2, ".0", 2) == 0)
        n -= 2;
    text[n] = '\0';
    return text;
}

int metric_u64(struct buf *out, const char *name, const char *labels, uint64_t v, struct err *e)
{
    char text[JSON_NUM_TEXT_BYTES];

    text[json_num_write_u64(v, text)] = '\0';
    return write_sample(out, name, labels, text, e);
}

int metric_double(struct buf *out, const char *name, const char *labels, double v, struct err *e)
{
    char text[JSON_NUM_TEXT_BYTES];

    return write_sample(out, name, labels, number(v, text), e);
}

int metric_label(struct buf *labels, const char *key, const char *value, struct err *e)
{
    if (buf_addf(labels, e, "%s%s=\"", labels->n ? "," : "", key) < 0)
        return -1;
    for (; *value; value++) {
        const char *escaped = *value == '\\'   ? "\\\\"
                              : *value == '"'  ? "\\\""
                              : *value == '\n' ? "\\n"
                                               : NULL;

        if ((escaped ? buf_add(labels, span_cstr(escaped), e)
                     : buf_addc(labels, (uint8_t)*value, e)) < 0)
            return -1;
    }
    return buf_addc(labels, '"', e);
}

void metric_observe(struct metric_histogram *h, const struct metric_bounds *bounds, double v)
{
    size_t low = 0, high = bounds->n;

    h->n++;
    h->sum += v;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (v <= bounds->rows[middle].at)
            high = middle;
        else
            low = middle + 1;
    }
    if (low < bounds->n)
        h->within[low]++;
}

void metric_histogram_add(struct metric_histogram *h, const struct metric_histogram *more)
{
    h->n += more->n;
    h->sum += more->sum;
    for (size_t i = 0; i < METRIC_BOUNDS_MAX; i++)
        h->within[i] += more->within[i];
}

int metric_histogram(struct buf *out, const char *name, const char *labels,
                     const struct metric_bounds *bounds, const struct metric_histogram *h,
                     struct err *e)
{
    const char *comma = *labels ? "," : "", *open = *labels ? "{" : "", *close = *labels ? "}" : "";
    char sum[JSON_NUM_TEXT_BYTES];
    uint64_t so_far = 0;

    for (size_t i = 0; i <= bounds->n; i++) {
        bool is_last = i == bounds->n;

        so_far = is_last ? h->n : so_far + h->within[i];
        if (buf_addf(out, e, "%s_bucket{%s%sle=\"%s\"} %llu\n", name, labels, comma,
                     is_last ? "+Inf" : bounds->rows[i].text, (unsigned long long)so_far) < 0)
            return -1;
    }
    return buf_addf(out, e, "%s_sum%s%s%s %s\n%s_count%s%s%s %llu\n", name, open, labels, close,
                    number(h->sum, sum), name, open, labels, close, (unsigned long long)h->n);
}
