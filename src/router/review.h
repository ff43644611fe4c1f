/* review: questions to the API server, and its answers: who is behind a token (TokenReview; anybody it knows may pass), or
 * whether a caller may have a sandbox (SubjectAccessReview; whoever may forward a port of its Pod may).
 *
 * Owns:     what it said, for a while: refusals too, so that a wrong token costs one call and not one for each request.
 *           Questions themselves are not kept, only their digests.
 * Bounds:   so many answers; the one that was not asked for longest goes first. Calls have a deadline.
 * Threads:  the loop's.
 */
#ifndef SILICA_ROUTER_REVIEW_H
#define SILICA_ROUTER_REVIEW_H

#include "router/match.h"

struct caller;
struct kube_client;
struct review;
struct ev_loop;

enum review_what { REVIEW_TOKENS, REVIEW_ACCESS };

struct review_config {
    enum review_what what;
    struct kube_client *client;
    struct ev_loop *loop;
    uint64_t ttl_ms;
    uint64_t no_ttl_ms; /* of refusals; 0: the same */
    uint64_t rows_max;
    /* of tokens */
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

/* Of REVIEW_TOKENS. True: *why is the verdict (status 0: let in). False: the API server is asked; wait->done(ctx, why) once. */
bool review_start(struct review *r, struct span token, struct review_wait *wait,
                  struct refusal *why);
/* The same for a caller who wants this target: REVIEW_ACCESS. */
bool review_access(struct review *r, const struct caller *caller, const struct target *t,
                   struct review_wait *wait, struct refusal *why);
void review_cancel(struct review_wait *wait); /* harmless when it does not wait */

#endif
