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
/* Against DNS rebinding: a name that an attacker's resolver points at loopback is neither an address, nor localhost, nor a
 * Service's, nor in the list. */
bool guard_is_local_host(const struct http_head *rq, const struct opt_list *allowed);

#endif
