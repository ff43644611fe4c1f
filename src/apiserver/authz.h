/* authz: may they: role-based access control, as Kubernetes has it. What no rule allows is denied.
 *
 * Owns:     nothing: rules are read from the committed state at each question. Members of system:masters may do all.
 * Used by:  route.c, access reviews, streams.
 */
#ifndef SILICA_APISERVER_AUTHZ_H
#define SILICA_APISERVER_AUTHZ_H

#include "apiserver/call.h"

/* A question. Texts are never NULL. path: of what is no resource; else NULL. */
struct authz_ask {
    const char *verb;
    const char *group, *resource, *subresource, *name, *namespace;
    const char *path;
};

bool authz_allows(struct store *store, const struct user *u, const struct authz_ask *ask);
/* The call's own question; -1 with c->status: 403, or 401 for who showed nothing. */
int authz_call(struct call *c);

/* Any question, refused in the same words. */
int authz_question(struct store *store, const struct user *u, const struct authz_ask *ask,
                   struct status *st);

/* The rules that hold for a user in a namespace ("": for all), each borrowed for the call of fn; for reviews. */
typedef void (*authz_rule_fn)(void *ctx, const struct json *rule);
void authz_rules(struct store *store, const struct user *u, const char *namespace, authz_rule_fn fn,
                 void *ctx);

#endif
