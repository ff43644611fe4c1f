/* scoped: tokens that open one sandbox, until a time. Whoever has the secret makes them; the router only reads.
 *
 * Form:     "v1." P "." S; P is base64url of {"ns":...,"name":...,"exp":seconds}, S of HMAC-SHA256 of a fixed text and P.
 * Owns:     nothing. Does no I/O, reads no clock.
 */
#ifndef SILICA_ROUTER_SCOPED_H
#define SILICA_ROUTER_SCOPED_H

#include "base/buf.h"
#include "router/limits.h"

#define SCOPED_SECRET_MIN_BYTES 32
#define SCOPED_TOKEN_MAX_BYTES  4096

struct scoped {
    char namespace[TARGET_NAME_BYTES], name[TARGET_NAME_BYTES];
};

/* False: it is not ours, or its time is over. `now` in seconds since 1970; at its end a token is over. */
bool scoped_read(struct span secret, struct span token, int64_t now, struct scoped *ret);

#endif
