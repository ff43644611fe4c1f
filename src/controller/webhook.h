/* webhook: serves /convert over TLS: API servers send ConversionReviews, and get the objects back in another version.
 *
 *     webhook_open(loop, &config, &w, e) ... webhook_renew(w, &pair, e) ... webhook_drain(w, done, ctx), webhook_free(w)
 *
 * Owns:     the listener, its connections, the reviews under way and the threads that convert them. What it holds of reviews
 *           at once is bounded: whoever comes above that is asked to come again.
 * Trust:    API servers check our certificate; we ask for none, as the API has it: a review tells nobody anything that its
 *           sender did not know.
 * Used by:  `silica controller`, on every replica, whoever leads.
 * Threads:  the loop's.
 */
#ifndef SILICA_CONTROLLER_WEBHOOK_H
#define SILICA_CONTROLLER_WEBHOOK_H

#include "base/buf.h"
#include "controller/review.h"

struct ev_loop;
struct webhook;

/* A certificate with its chain, and its key: PEM. */
struct webhook_pair {
    struct span cert, key;
};

struct webhook_config {
    const char *listen; /* "HOST:PORT", ":PORT" */
    struct webhook_pair pair;
    struct review_config review;
};

int webhook_open(struct ev_loop *loop, const struct webhook_config *config, struct webhook **ret,
                 struct err *e);
/* The real address; lives as long as it. */
const char *webhook_address(const struct webhook *w);
/* For connections to come; those that live go on. ERR: the old pair stays. */
int webhook_renew(struct webhook *w, const struct webhook_pair *pair, struct err *e);
/* Appends its figures, under the names that controllers in Go have. */
int webhook_metrics_write(const struct webhook *w, struct buf *out, struct err *e);
/* No new connection; answers what is under way. done(ctx) in a later turn, once. */
void webhook_drain(struct webhook *w, void (*done)(void *ctx), void *ctx);
void webhook_free(struct webhook *w); /* at once; not for callbacks; tolerates NULL */

#endif
