/* counts: requests by method and by how they ended, and how long they took; under the names of the public client library.
 *
 * Owns:     its numbers. Methods and codes are few; what a server makes up beyond that is counted in one row.
 * Used by:  rest counts, kubeclient_metrics_write shows. Watches are not counted: they last as long as their reader likes.
 */
#ifndef SILICA_KUBECLIENT_COUNTS_H
#define SILICA_KUBECLIENT_COUNTS_H

#include "base/metric.h"

#define COUNTS_ROWS_MAX 64
#define COUNTS_METHODS  5

struct counts {
    struct {
        const char *method; /* a constant */
        int code;           /* 0: no answer */
        uint64_t n;
    } rows[COUNTS_ROWS_MAX];
    size_t n;
    uint64_t others;
    struct metric_histogram took[COUNTS_METHODS];
};

/* Zeroed memory is an empty one. It may be shared with processes that were forked: one writes, any reads at any time.
 * code 0: no answer came. */
void counts_add(struct counts *c, const char *method, int code, double seconds);
/* c: the sum of both, as far as it has rows. */
void counts_sum(struct counts *c, const struct counts *more);
int counts_write(const struct counts *c, struct buf *out, struct err *e);

#endif
