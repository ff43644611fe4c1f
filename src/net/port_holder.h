/* port_holder: which program listens on a port of this machine, for people whose own cannot have it.
 *
 * Owns:     nothing. Asks the kernel which socket listens, and looks for the process that holds it among those that it may see.
 * Cost:     walks the descriptors of all these processes: for a thread that may block, not for the loop's.
 * Trust:    another account may have called its program anything: a byte that is no printable ASCII is shown as '?'.
 */
#ifndef SILICA_NET_PORT_HOLDER_H
#define SILICA_NET_PORT_HOLDER_H

#include "net/addr.h"

#define NET_PORT_HOLDER_BYTES 80

struct net_port_holder {
    char text
        [NET_PORT_HOLDER_BYTES]; /* "nginx (pid 123, user 33)"; "a program of user 33", whose process we may not see */
    uid_t uid;
    bool is_everywhere; /* it listens at all addresses, not only at the one that was asked about */
};

/* at: an IPv4 address and a port. False: no socket listens there. One that is bound and does not listen keeps others away all the
 * same. */
bool net_port_holder_find(const struct net_addr *at, struct net_port_holder *ret);
/* The same without the process, which is quick. */
bool net_port_holder_find_user(const struct net_addr *at, struct net_port_holder *ret);

#endif
