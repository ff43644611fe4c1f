/* token: service-account tokens: JSON Web Tokens signed with ES256, as Kubernetes writes them.
 *
 * Owns:     nothing; the key is the pki's. Does no I/O and reads no clock: now is given.
 * Used by:  authn.c reads them, the `token` subresource and seeds write them.
 */
#ifndef SILICA_APISERVER_TOKEN_H
#define SILICA_APISERVER_TOKEN_H

#include "base/buf.h"

#include <openssl/types.h>

#define TOKEN_MAX_BYTES     (16 * 1024) /* longer is none of ours */
#define TOKEN_ISSUER        "https://kubernetes.default.svc"
#define TOKEN_AUDIENCES_MAX 8

enum token_bound { TOKEN_BOUND_NONE, TOKEN_BOUND_POD, TOKEN_BOUND_SECRET, TOKEN_BOUND_NODE };

struct token_claims {
    char namespace[64], name[254], uid[64]; /* of the service account */
    enum token_bound bound;                 /* to an object, whose end is the token's */
    char bound_name[254], bound_uid[64];
    char id[64]; /* jti */
    char audiences[TOKEN_AUDIENCES_MAX][256];
    size_t audience_count;
    int64_t issued_s, expires_s;
};

/* As the claim is called: "pod". NULL: bound to nothing. */
const char *token_bound_name(enum token_bound bound);
int token_sign(EVP_PKEY *key, const struct token_claims *claims, struct buf *out, struct err *e);
/* False: not one of ours, or its time has passed. Says nothing more to the bearer; *why, static, is for the log. */
bool token_verify(EVP_PKEY *key, struct span token, int64_t now_s, struct token_claims *ret,
                  const char **why);
/* Whether it is the time of a token that was found good. */
bool token_is_current(const struct token_claims *claims, int64_t now_s, const char **why);

#endif
