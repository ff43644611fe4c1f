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
/* Is the host an IP literal (v6 with or without brackets)? */
bool net_host_is_ip(struct span host);

#endif
