/* addr: where to listen or connect, as a text and as a sockaddr.
 *
 * Texts:    "127.0.0.1:8888", "[::1]:8888", ":8888" (all addresses), "localhost:80", "unix:/run/x.sock". Names other
 *           than localhost are not resolved here: that is net/dial's job.
 */
#ifndef SILICA_NET_ADDR_H
#define SILICA_NET_ADDR_H

#include "base/buf.h"

#include <sys/socket.h>

#define NET_ADDR_TEXT_BYTES 128

struct net_addr {
    struct sockaddr_storage sa;
    socklen_t len;
};

int net_addr_parse(const char *text, struct net_addr *ret, struct err *e);
/* Splits HOST:PORT without judging the host; the host may be a name. */
int net_addr_split(const char *text, struct span *ret_host, uint16_t *ret_port, struct err *e);
/* As net_addr_parse reads it; unix sockets without a name give "unix:". */
const char *net_addr_text(const struct net_addr *a, char text[NET_ADDR_TEXT_BYTES]);
/* An IP literal without brackets, zone or port, and a port. False: it is none, and *ret is as it was. */
bool net_addr_of_ip(struct span ip, uint16_t port, struct net_addr *ret);
/* The IP alone, in its shortest form; "" for a unix socket. */
const char *net_addr_ip_text(const struct net_addr *a, char text[NET_ADDR_TEXT_BYTES]);
uint16_t net_addr_port(const struct net_addr *a);
bool net_addr_is_loopback(const struct net_addr *a); /* unix sockets count */
/* ::ffff:127.0.0.1 is where 127.0.0.1 is: an IPv4 address that an IPv6 one stands for (mapped, compatible, by the well-known
 * prefix of NAT64) becomes IPv4. */
void net_addr_unmap(struct net_addr *a);
/* Could it be one of another machine: neither loopback, link-local, multicast, broadcast, unspecified nor of this network?
 * Looks through what net_addr_unmap does. */
bool net_addr_is_unicast(const struct net_addr *a);
/* Is the host an IP literal (v6 with or without brackets)? */
bool net_host_is_ip(struct span host);

#endif
