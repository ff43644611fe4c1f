/* tally: what people watch of a router: names, labels and buckets are the public router's.
 *
 * Owns:     counters and histograms by their labels. Methods and namespaces are texts that clients choose, so their number
 *           has a ceiling: unknown methods count as "other", namespaces beyond it as "-".
 * Board:    the numbers lie in memory that processes share which were forked after it was made: one seat for each, where
 *           it alone writes. Who shows them adds up all seats. A seat outlives its process, and the next one goes on
 *           counting there: counters never go back.
 * Used by:  the router counts, `silica router` shows.
 * Threads:  the loop's; a board's reader may be another process, at any time.
 */
#ifndef SILICA_ROUTER_TALLY_H
#define SILICA_ROUTER_TALLY_H

#include "base/metric.h"

struct tally;
struct tally_board;

enum tally_which {
    TALLY_UPSTREAM_ERRORS, /* label: reason */
    TALLY_RETRIES,
    TALLY_INVALIDATIONS,
    TALLY_DECISIONS,    /* label: decision */
    TALLY_CERT_RELOADS, /* label: outcome; no namespace */
    TALLY_COUNT,
};

/* At least one seat. */
struct tally_board *tally_board_new(unsigned seats);
/* This process lets go of it. Tolerates NULL. */
void tally_board_free(struct tally_board *b);
/* Whoever counted at that seat is gone: nothing is under way there. */
void tally_board_leave(struct tally_board *b, unsigned seat);
/* Requests that ended at that seat. */
uint64_t tally_board_requests(const struct tally_board *b, unsigned seat);
/* Sums of all seats. */
int tally_board_write(const struct tally_board *b, struct buf *out, struct err *e);

/* Counts at a seat of the board, which outlives it; NULL: of a board of its own. */
struct tally *tally_new(struct tally_board *board, unsigned seat);
void tally_free(struct tally *f);

void tally_begin(struct tally *f);
/* A request is over: method as it came, "" or a namespace, how long it took. */
void tally_end(struct tally *f, struct span method, int code, const char *namespace,
               double seconds);
/* label: the value of the one that the row has beside the namespace; or NULL. */
void tally_add(struct tally *f, enum tally_which which, const char *namespace, const char *label);

/* Its whole board. */
int tally_write(const struct tally *f, struct buf *out, struct err *e);

#endif
