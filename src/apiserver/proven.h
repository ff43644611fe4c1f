/* proven: tokens whose signature was found good before, so that a client's next request does not prove it again: a tenth of a
 * millisecond of the loop's time each.
 *
 * Owns:     a copy of what each of them says, under the digest of its text; the text itself is not kept. One slot for each
 *           digest's low bits: the newcomer takes it, so the table has a ceiling and needs no clock.
 * Used by:  authn.c. What time does to a token, or the end of its account, is looked at with each request.
 */
#ifndef SILICA_APISERVER_PROVEN_H
#define SILICA_APISERVER_PROVEN_H

#include "apiserver/token.h"

#define PROVEN_SLOTS 128 /* a power of two; about 3 KiB each that is taken */

struct proven {
    struct proven_token *slots[PROVEN_SLOTS];
};

/* As token_verify: the same answer for the same token, key and time. The key must be the same in all calls. */
bool proven_verify(struct proven *p, EVP_PKEY *key, struct span token, int64_t now_s,
                   struct token_claims *ret, const char **why);
void proven_done(struct proven *p);

#endif
