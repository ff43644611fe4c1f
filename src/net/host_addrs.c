#include "net/host_addrs.h"

#include "base/log.h"
#include "base/time.h"
#include "net/limits.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>

struct host_addrs {
    int fd; /* -1: not told of changes */
    uint64_t read_ms;
    bool is_stale;
    struct net_addr *v;
    size_t n, room;
};

static int listen_to_kernel(void)
{
    const struct sockaddr_nl at = { .nl_family = AF_NETLINK,
                                    .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
    OWN_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) < 0)
        own_fd_close(&fd);
    return take_fd(&fd);
}

static void add(struct host_addrs *h, const struct sockaddr *sa)
{
    socklen_t len = !sa                         ? 0
                    : sa->sa_family == AF_INET  ? sizeof(struct sockaddr_in)
                    : sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                : 0;

    if (!len)
        return;
    if (h->n == h->room) {
        h->room = h->room ? 2 * h->room : 16;
        h->v = own_resize(h->v, h->room, sizeof *h->v);
    }
    h->v[h->n] = (struct net_addr){ .len = len };
    memcpy(&h->v[h->n++].sa, sa, len);
}

/* On failure the list is what it was. */
static int read_all(struct host_addrs *h, struct err *e)
{
    struct ifaddrs *all;

    if (getifaddrs(&all) < 0)
        return err_sys(e, "cannot list the addresses of this machine");
    h->n = 0;
    h->is_stale = false;
    h->read_ms = time_mono_ms();
    for (const struct ifaddrs *a = all; a; a = a->ifa_next)
        add(h, a->ifa_addr);
    freeifaddrs(all);
    return 0;
}

/* Something came, or was lost because it was too much. */
static bool has_changed(const struct host_addrs *h)
{
    bool is_any = false;
    char scratch[4096];

    if (h->fd < 0)
        return time_mono_ms() - h->read_ms >= HOST_ADDRS_MS;
    while (recv(h->fd, scratch, sizeof scratch, 0) >= 0 || errno == ENOBUFS)
        is_any = true;
    return is_any;
}

static bool is_same_ip(const struct net_addr *a, const struct net_addr *b)
{
    const struct sockaddr_in *a4 = (const struct sockaddr_in *)(const void *)&a->sa;
    const struct sockaddr_in *b4 = (const struct sockaddr_in *)(const void *)&b->sa;
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)(const void *)&a->sa;
    const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)(const void *)&b->sa;

    if (a->sa.ss_family != b->sa.ss_family)
        return false;
    return a->sa.ss_family == AF_INET
               ? a4->sin_addr.s_addr == b4->sin_addr.s_addr
               : a->sa.ss_family == AF_INET6 && IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr);
}

bool host_addrs_has(struct host_addrs *h, const struct net_addr *a)
{
    struct err e;

    h->is_stale |= has_changed(h);
    if (h->is_stale && read_all(h, &e) < 0) {
        log_warn("net.host_addrs", KV("err", &e));
        return true; /* what is not known is not connected to */
    }
    for (size_t i = 0; i < h->n; i++)
        if (is_same_ip(&h->v[i], a))
            return true;
    return false;
}

int host_addrs_open(struct host_addrs **ret, struct err *e)
{
    struct host_addrs *h = NEW(struct host_addrs);

    h->fd = listen_to_kernel(); /* before the list is read: no change is missed */
    if (read_all(h, e) < 0) {
        host_addrs_close(h);
        return -1;
    }
    *ret = h;
    return 0;
}

void host_addrs_close(struct host_addrs *h)
{
    if (!h)
        return;
    own_fd_close(&h->fd);
    free(h->v);
    free(h);
}
