/* tally: what people watch of a router: names, labels and buckets are the public router's.
 *
 * Owns:     counters and histograms by their labels. Methods and namespaces are texts that clients choose, so their number
 *           has a ceiling: unknown methods count as "other", namespaces beyond it as "-".
 * Used by:  the router counts, `silica router` shows.
 * Threads:  the loop's.
 */
#ifndef SILICA_ROUTER_TALLY_H
#define SILICA_ROUTER_TALLY_H

#include "base/metric.h"

struct tally;

enum tally_which {
    TALLY_UPSTREAM_ERRORS, /* label: reason */
    TALLY_RETRIES,
    TALLY_INVALIDATIONS,
    TALLY_DECISIONS,    /* label: decision */
    TALLY_CERT_RELOADS, /* label: outcome; no namespace */
    TALLY_COUNT,
};

struct tally *tally_new(void);
void tally_free(struct tally *f);

void tally_begin(struct tally *f);
/* A request is over: method as it came, "" or a namespace, how long it took. */
void tally_end(struct tally *f, struct span method, int code, const char *namespace,
               double seconds);
/* label: the value of the one that the row has beside the namespace; or NULL. */
void tally_add(struct tally *f, enum tally_which which, const char *namespace, const char *label);

int tally_write(const struct tally *f, struct buf *out, struct err *e);

#endif
