/* authorize: may this client have that sandbox? By the Authorization field, which goes no further than here.
 *
 * Modes:    all: everybody. token: one secret for all sandboxes. tokenreview: whoever the API server knows (review.h).
 *           scoped-token: whoever has a token of that one sandbox (scoped.h); its Pod address and uid may not be said
 *           then, as they could be another's. Callers whom the API server sent have the rights it gives them.
 * Owns:     the secrets; they are wiped at its end. None is ever logged.
 * Used by:  the router, between match and pick.
 * Threads:  the loop's.
 */
#ifndef SILICA_ROUTER_AUTHORIZE_H
#define SILICA_ROUTER_AUTHORIZE_H

#include "router/match.h"
#include "router/review.h"

struct authorizer;

enum authorize_mode { AUTHORIZE_ALL, AUTHORIZE_TOKEN, AUTHORIZE_REVIEW, AUTHORIZE_SCOPED };
enum authorize_verdict { AUTHORIZE_ALLOWED, AUTHORIZE_DENIED, AUTHORIZE_WAITING };

/* "allow-all", "token", "tokenreview", "scoped-token". */
bool authorize_mode_parse(const char *text, enum authorize_mode *ret);

struct authorizer_config {
    enum authorize_mode mode;
    struct span secret; /* of token and scoped-token: surrounding blanks do not count; copied */
    struct review_config review;
    struct review_config access; /* of callers; its client NULL: there are none */
};

/* ERR_INVALID: a secret that is too short for its mode. */
int authorizer_new(const struct authorizer_config *config, struct authorizer **ret, struct err *e);
void authorizer_free(struct authorizer *a); /* nobody may wait any more */

/* Denied: *why. Waiting: wait->done(ctx, ...) once, in a later turn, unless review_cancel(wait) comes first. Names in *t may
 * be empty where the request's are wrong: that is told after who asks is known. */
enum authorize_verdict authorize_start(struct authorizer *a, const struct http_head *head,
                                       const struct target *t, struct review_wait *wait,
                                       struct refusal *why);

/* The same for a connection that said whom it is for (tunnel.h): what that caller may, whatever the mode; a credential in the
 * request counts for nothing. */
enum authorize_verdict authorize_caller(struct authorizer *a, const struct caller *caller,
                                        const struct target *t, struct review_wait *wait,
                                        struct refusal *why);

#endif
