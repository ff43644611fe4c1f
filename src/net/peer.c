#include "net/peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>

static bool unix_uid(int fd, uid_t *ret)
{
    struct ucred who;
    socklen_t n = sizeof who;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || n != sizeof who)
        return false;
    *ret = who.uid;
    return true;
}

static void put_end(const struct net_addr *a, __be16 *port, __be32 ip[4])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&a->sa;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&a->sa;

    if (a->sa.ss_family == AF_INET) {
        *port = v4->sin_port;
        ip[0] = v4->sin_addr.s_addr;
    } else {
        *port = v6->sin6_port;
        memcpy(ip, &v6->sin6_addr, sizeof v6->sin6_addr);
    }
}

/* One socket, named by both its ends; no dump, so the kernel looks it up in its table. */
static bool ask(int diag_fd, const struct net_addr *from, const struct net_addr *to)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 want;
    } rq = { .head = { .nlmsg_len = sizeof rq,
                       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                       .nlmsg_flags = NLM_F_REQUEST },
             .want = { .sdiag_family = (uint8_t)from->sa.ss_family,
                       .sdiag_protocol = IPPROTO_TCP,
                       .idiag_states = UINT32_MAX,
                       .id = { .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } } };

    put_end(from, &rq.want.id.idiag_sport, rq.want.id.idiag_src);
    put_end(to, &rq.want.id.idiag_dport, rq.want.id.idiag_dst);
    return send(diag_fd, &rq, sizeof rq, 0) == (ssize_t)sizeof rq;
}

static bool answer(int diag_fd, uid_t *ret)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg found;
        char rest[1024]; /* attributes nobody asked for */
    } got;
    ssize_t n = recv(diag_fd, &got, sizeof got, MSG_DONTWAIT);

    if (n < (ssize_t)offsetof(__typeof__(got), rest) || got.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return false;
    *ret = got.found.idiag_uid;
    return true;
}

bool net_peer_uid(int fd, const struct net_addr *peer, uid_t *ret)
{
    struct net_addr own = { .len = sizeof own.sa };
    OWN_FD int diag_fd = -1;

    if (peer->sa.ss_family == AF_UNIX)
        return unix_uid(fd, ret);
    if (getsockname(fd, (struct sockaddr *)&own.sa, &own.len) < 0 ||
        own.sa.ss_family != peer->sa.ss_family)
        return false;
    diag_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    return diag_fd >= 0 && ask(diag_fd, peer, &own) && answer(diag_fd, ret);
}

bool net_peer_is_ours(int fd, const struct net_addr *peer)
{
    uid_t uid;

    return net_peer_uid(fd, peer, &uid) && (uid == geteuid() || uid == 0);
}
