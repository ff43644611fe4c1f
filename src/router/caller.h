/* caller: who stands behind a connection, by the word of somebody who asked them: the API server, whose port-forwards lead to
 * us. It says so in front of the first byte (tunnel.h).
 *
 *     {"user":"system:serviceaccount:team-a:me","groups":["system:serviceaccounts",...]}
 *
 * Owns:     a copy of that text. Who gave it is somebody else's question: a caller is only as good as that.
 * Used by:  tunnel reads it, review asks what it may, cli/parts.c says it.
 */
#ifndef SILICA_ROUTER_CALLER_H
#define SILICA_ROUTER_CALLER_H

#include "base/json.h"
#include "http/serve.h"

/* What the API server knows of a user has 16 KiB; a text of escapes may be longer, and is refused there */
#define CALLER_MAX_BYTES     (32 * 1024)
#define CALLER_GROUPS_MAX    64 /* as there */
#define CALLER_PREFACE_BYTES 4  /* in front of it: its length, the highest byte first */

struct caller {
    struct http_owner base; /* it belongs to a connection */
    struct json_doc *doc;
    const char *user;
    struct span text; /* as it came: equal texts are the same caller */
};

/* ERR_INVALID, ERR_LIMIT. */
int caller_parse(struct span text, struct caller **ret, struct err *e);
void caller_free(struct caller *c);
/* The members "user" and "groups" of the object that is open. */
void caller_write(const struct caller *c, struct json_out *out);

/* The length that a preface says; 0: one that cannot be. */
size_t caller_length(const uint8_t preface[CALLER_PREFACE_BYTES]);
/* Appends the preface and the text, which is not looked at but for its length: ERR_LIMIT. */
int caller_say(struct span text, struct buf *out, struct err *e);

#endif
