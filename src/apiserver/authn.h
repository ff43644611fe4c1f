/* authn: who asks: a client certificate of our authority, or a bearer token that is a service account's or of the token
 * file. Nothing shown: anonymous, who may see health and version. Something wrong shown: refused.
 *
 * Used by:  route.c, before anything else is looked at; TokenReview.
 */
#ifndef SILICA_APISERVER_AUTHN_H
#define SILICA_APISERVER_AUTHN_H

#include "apiserver/apiserver.h"
#include "apiserver/user.h"

/* -1: 401. The bearer is not told why; *why, for the log, is. */
int authn_exchange(struct apiserver *s, struct http_exchange *x, struct user *ret,
                   const char **why);
/* A token alone. audience NULL: our own. */
int authn_token(struct apiserver *s, struct span token, const char *audience, struct user *ret,
                const char **why);

#endif
