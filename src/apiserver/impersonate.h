/* impersonate: a request in another's name (kubectl --as): who may act for others becomes them, for this request alone.
 *
 * Used by:  route.c, between who asks and whether they may. Every name, group, uid and extra that is asked for needs the
 *           verb impersonate; without the right nothing is done in the own name instead.
 */
#ifndef SILICA_APISERVER_IMPERSONATE_H
#define SILICA_APISERVER_IMPERSONATE_H

#include "apiserver/call.h"

/* Changes c->user where the request says so. -1 with c->status: 403, or 400 for half a name. */
int impersonate(struct call *c);

#endif
