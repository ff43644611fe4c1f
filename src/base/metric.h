/* metric: numbers for Prometheus, in its text format 0.0.4.
 *
 *     metric_head(out, "workqueue_depth", "gauge", "Keys that wait.", e);
 *     metric_u64(out, "workqueue_depth", "name=\"sandbox\"", depth, e);
 *
 * Owns:     nothing. Labels are the caller's text: constants, or values that metric_label escaped.
 */
#ifndef SILICA_BASE_METRIC_H
#define SILICA_BASE_METRIC_H

#include "base/buf.h"

/* Before the samples of a family, once. */
int metric_head(struct buf *out, const char *name, const char *type, const char *help,
                struct err *e);
/* One sample. labels: `a="b",c="d"`, or "". */
int metric_u64(struct buf *out, const char *name, const char *labels, uint64_t v, struct err *e);
int metric_double(struct buf *out, const char *name, const char *labels, double v, struct err *e);
/* Appends `key="value"`, escaped, with a comma before unless labels is empty. */
int metric_label(struct buf *labels, const char *key, const char *value, struct err *e);

/* process_*: memory and processor time of this process, and when it began. */
int metric_process(struct buf *out, struct err *e);

#define METRIC_BOUNDS_MAX 24

/* An upper bound, and how it is spelled. */
struct metric_bound {
    double at;
    const char *text;
};

struct metric_bounds {
    const struct metric_bound *rows; /* rising */
    size_t n;                        /* at most METRIC_BOUNDS_MAX */
};

struct metric_histogram {
    uint64_t n;
    double sum;
    uint64_t within[METRIC_BOUNDS_MAX]; /* up to this bound and above the one before */
};

void metric_observe(struct metric_histogram *h, const struct metric_bounds *bounds, double v);
/* h: the sum of both, which have the same bounds. */
void metric_histogram_add(struct metric_histogram *h, const struct metric_histogram *more);
int metric_histogram(struct buf *out, const char *name, const char *labels,
                     const struct metric_bounds *bounds, const struct metric_histogram *h,
                     struct err *e);

#endif
