/* impersonate: a request in another's name (kubectl --as): who may act for others becomes them, for this request alone.
 *
 * Used by:  route.c, between who asks and whether they may. Every name, group, uid and extra that is asked for needs the
 *           verb impersonate; without the right nothing is done in the own name instead.
 */
#ifndef SILICA_APISERVER_IMPERSONATE_H
#define SILICA_APISERVER_IMPERSONATE_H

#include "apiserver/store.h"
#include "apiserver/user.h"
#include "http/head.h"
#include "kube/status.h"

/* id: of the request, for the log. Changes the user where the head of the request says so. -1: 403, or 400 for half a name; the user is then as it was. */
int impersonate(struct store *store, uint64_t id, const struct http_head *head, struct user *user,
                struct status *st);

#endif
