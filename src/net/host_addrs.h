/* host_addrs: the addresses that this machine has, so that what others choose is not connected to on it.
 *
 * Owns:     the list, and a socket on which the kernel says when it has changed. A look costs one system call; the list is
 *           read again after a change alone, or each HOST_ADDRS_MS where that socket could not be had.
 * Used by:  the router, before it connects to a Pod's address.
 * Threads:  one; a fork opens its own.
 */
#ifndef SILICA_NET_HOST_ADDRS_H
#define SILICA_NET_HOST_ADDRS_H

#include "net/addr.h"

struct host_addrs;

int host_addrs_open(struct host_addrs **ret, struct err *e);
/* Is it one of them? Ports do not count. Loopback is no question of this: net_addr_is_loopback. */
bool host_addrs_has(struct host_addrs *h, const struct net_addr *a);
void host_addrs_close(struct host_addrs *h); /* tolerates NULL */

#endif
