/* grant: an account of one namespace with a role there, and a token of it.
 *
 * Owns:     nothing. What is there already stays as it is.
 * Used by:  token.c, in_cluster.c.
 */
#ifndef SILICA_CLI_GRANT_H
#define SILICA_CLI_GRANT_H

#include "cli/api.h"

#define GRANT_TOKEN_MAX_BYTES (64 * 1024)

struct grant {
    const char *namespace, *name; /* of the account; the namespace is made when it is not there */
    const char *role;             /* a ClusterRole */
    uint64_t life_s;
};

/* Appends the token. */
int grant_token(struct api *api, const struct grant *grant, struct buf *token, struct err *e);

#endif
