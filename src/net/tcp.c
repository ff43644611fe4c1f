#include "net/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

static void set_number(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value); /* a connection works without */
}

void net_tcp_set(int fd, const struct net_addr *end, const struct net_tcp_probes *probes)
{
    static const char plain[] = "reno"; /* in every kernel, and free to every account */

    if (end->sa.ss_family == AF_UNIX)
        return;
    set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, probes->idle_s);
    set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, probes->step_s);
    set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, probes->count);
    if (net_addr_is_loopback(end))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
}
