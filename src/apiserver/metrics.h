/* metrics: what the server tells Prometheus at /metrics: requests by what they asked for and how they ended, how long they
 * took, what the store holds, what the process costs.
 *
 * Owns:     the counters. Their labels are constants of the kind table and HTTP codes, never a client's text, so their
 *           number is bounded; what does not fit is counted in one row.
 * Used by:  call.c counts, discovery.c shows.
 */
#ifndef SILICA_APISERVER_METRICS_H
#define SILICA_APISERVER_METRICS_H

#include "apiserver/request.h"
#include "apiserver/store.h"
#include "kube/kind.h"

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
/* A request has been answered. kind NULL: a path that is no resource's. sub may be NULL. */
void metrics_count(struct metrics *m, enum request_verb verb, const struct kind *kind,
                   const struct kind_version *version, const struct kind_subresource *sub, int code,
                   uint64_t us);
/* Appends everything, in the text format 0.0.4. */
int metrics_write(const struct metrics *m, struct store *store, struct buf *out, struct err *e);

#endif
