/* figures: what people watch of all claims and sandboxes: names, labels and buckets are the public controller's.
 *
 * Owns:     counters and histograms by their labels. Labels hold names that users choose, so their number has a ceiling;
 *           what is beyond is counted in one row, silica_metrics_dropped_total.
 * Used by:  the reconciler of claims counts, `silica controller` shows.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_FIGURES_H
#define SILICA_CONTROLLER_FIGURES_H

#include "base/metric.h"
#include "kube/informer.h"

#include <time.h>

struct figures;

struct figures *figures_new(void);
void figures_free(struct figures *m);

/* A claim got a sandbox: one that waited, or one of its own. */
void figures_claim_bound(struct figures *m, const struct object *claim,
                         const struct object *sandbox);
/* A claim is ready for the first time ever: how long that took, by each clock that its annotations tell. Once for each claim
 * is the caller's care. */
void figures_claim_ready(struct figures *m, const struct object *claim,
                         const struct object *sandbox, struct timespec now);

/* Appends all of it, and what there is of sandboxes now. */
int figures_write(const struct figures *m, struct informer *sandboxes, struct buf *out,
                  struct err *e);

#endif
