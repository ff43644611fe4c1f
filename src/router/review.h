/* review: who is behind a token, by the API server's word (TokenReview). Anybody it knows may pass.
 *
 * Owns:     what it said, for a while: refusals too, so that a wrong token costs one call and not one for each request.
 *           Tokens themselves are not kept, only their digests.
 * Bounds:   so many answers; the one that was not asked for longest goes first. Calls have a deadline.
 * Threads:  the loop's.
 */
#ifndef SILICA_ROUTER_REVIEW_H
#define SILICA_ROUTER_REVIEW_H

#include "router/match.h"

struct kube_client;
struct review;
struct ev_loop;

struct review_config {
    struct kube_client *client;
    struct ev_loop *loop;
    uint64_t ttl_ms;
    uint64_t rows_max;
    bool is_token_required; /* else who shows none passes */
    const char *audiences;  /* "a,b", or NULL */
};

/* status 0: let in. */
typedef void (*review_fn)(void *ctx, const struct refusal *why);

/* A request that waits; embedded by it, done and ctx are its own. Zeroes: it does not. */
struct review_wait {
    struct review_wait *next, **link;
    review_fn done;
    void *ctx;
};

struct review *review_new(const struct review_config *config);
void review_free(struct review *r);

/* True: *why is the verdict (status 0: let in). False: the API server is asked; wait->done(ctx, why) once. */
bool review_start(struct review *r, struct span token, struct review_wait *wait,
                  struct refusal *why);
void review_cancel(struct review_wait *wait); /* harmless when it does not wait */

#endif
