/* guard: keeps pages of other sites out of servers that ask for no credential, as every browser of the machine reaches them.
 *
 * Owns:     nothing.
 * Used by:  the runtime, the router.
 */
#ifndef SILICA_HTTP_GUARD_H
#define SILICA_HTTP_GUARD_H

#include "base/opt.h"
#include "http/head.h"

/* A browser says where a page came from. A page of ours has our own Host; any other has no business here, unless it is in
 * the list ("*" is all). True where no Origin is said: it is no browser. */
bool guard_is_own_origin(const struct http_head *rq, const struct opt_list *allowed);

/* The names under which a server on loopback is reached, besides addresses and localhost. */
struct guard_names {
    /* NAME.NAMESPACE.svc and NAME.NAMESPACE.svc.DOMAIN; NULL: of any NAME. */
    const char *service;
    const char *cluster_domain;
    const struct opt_list *allowed; /* whole names, in any case; "*" is all */
};
/* Against DNS rebinding: a name that an attacker's resolver points at loopback is none of these. Names are compared whole,
 * without their port, in any case, with or without the dot of the root. True where no Host is said: it is no browser. */
bool guard_is_local_host(const struct http_head *rq, const struct guard_names *names);

#endif
