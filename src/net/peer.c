#include "net/peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

/* Answers to questions that nobody waits for any more, read before giving up */
#define STALE_ANSWERS_MAX 8

static bool unix_uid(int fd, uid_t *ret)
{
    struct ucred who;
    socklen_t n = sizeof who;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || n != sizeof who)
        return false;
    *ret = who.uid;
    return true;
}

/* ---- the question ---- */

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 want;
};

struct answer {
    struct nlmsghdr head;
    struct inet_diag_msg found;
    char rest[1024]; /* attributes that were not asked for */
};

/* One per thread. A fork shares it with its parent, where each would read the other's answers: so it is known by its process. */
static _Thread_local struct {
    int fd;
    pid_t pid;
    uint32_t seq;
} diag = { .fd = -1 };

static bool open_diag(void)
{
    if (diag.fd >= 0 && diag.pid == getpid())
        return true;
    own_fd_close(&diag.fd);
    diag.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    diag.pid = getpid();
    return diag.fd >= 0;
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

/* A listener of both families shows IPv4 ends as IPv6 ones; the client's socket is IPv4 all the same, and so is its answer. */
static void unmap(struct net_addr *a)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&a->sa;
    struct sockaddr_in v4 = { .sin_family = AF_INET };

    if (a->sa.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return;
    v4.sin_port = v6->sin6_port;
    memcpy(&v4.sin_addr, v6->sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
    *a = (struct net_addr){ .len = sizeof v4 };
    memcpy(&a->sa, &v4, sizeof v4);
}

/* One socket, named by both its ends; no dump, so the kernel looks it up in its table. */
static bool ask(const struct net_addr *from, const struct net_addr *to, struct question *rq)
{
    *rq = (struct question){
        .head = { .nlmsg_len = sizeof *rq,
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST,
                  .nlmsg_seq = ++diag.seq },
        .want = { .sdiag_family = (uint8_t)from->sa.ss_family,
                  .sdiag_protocol = IPPROTO_TCP,
                  .idiag_states = UINT32_MAX,
                  .id = { .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
    };
    put_end(from, &rq->want.id.idiag_sport, rq->want.id.idiag_src);
    put_end(to, &rq->want.id.idiag_dport, rq->want.id.idiag_dst);
    return send(diag.fd, rq, sizeof *rq, 0) == (ssize_t)sizeof *rq;
}

/* The kernel has answered when send returns. */
static bool receive(uint32_t seq, struct answer *ret)
{
    for (int i = 0; i < STALE_ANSWERS_MAX; i++) {
        struct sockaddr_nl from = { 0 };
        socklen_t from_n = sizeof from;
        ssize_t n = recvfrom(diag.fd, ret, sizeof *ret, 0, (struct sockaddr *)&from, &from_n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (from.nl_pid || n < (ssize_t)sizeof ret->head || ret->head.nlmsg_seq != seq)
            continue;
        return n >= (ssize_t)offsetof(struct answer, rest) &&
               ret->head.nlmsg_type == SOCK_DIAG_BY_FAMILY;
    }
    return false;
}

/* Where no connection has these ends, the kernel names a listener on the port, which may be any account's. A socket without an
 * inode is an orphan, or waits for a handshake. FIN_WAIT: its process has only said that no more requests follow. */
static bool is_held(const struct question *rq, const struct inet_diag_msg *found)
{
    return found->idiag_inode != 0 && found->id.idiag_sport == rq->want.id.idiag_sport &&
           found->id.idiag_dport == rq->want.id.idiag_dport &&
           (found->idiag_state == TCP_ESTABLISHED || found->idiag_state == TCP_FIN_WAIT1 ||
            found->idiag_state == TCP_FIN_WAIT2);
}

static bool is_connected(int fd)
{
    struct tcp_info info;
    socklen_t n = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 &&
           (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

static bool tcp_uid(int fd, const struct net_addr *peer, uid_t *ret)
{
    struct net_addr own = { .len = sizeof own.sa }, from = *peer;
    struct question rq;
    struct answer got;

    if (getsockname(fd, (struct sockaddr *)&own.sa, &own.len) < 0)
        return false;
    unmap(&own);
    unmap(&from);
    if (own.sa.ss_family != from.sa.ss_family || !open_diag() || !ask(&from, &own, &rq) ||
        !receive(rq.head.nlmsg_seq, &got) || !is_held(&rq, &got.found) || !is_connected(fd))
        return false;
    *ret = got.found.idiag_uid;
    return true;
}

/* ---- verbs ---- */

bool net_peer_uid(int fd, const struct net_addr *peer, uid_t *ret)
{
    if (peer->sa.ss_family == AF_UNIX)
        return unix_uid(fd, ret);
    return (peer->sa.ss_family == AF_INET || peer->sa.ss_family == AF_INET6) &&
           tcp_uid(fd, peer, ret);
}

bool net_peer_is_ours(int fd, const struct net_addr *peer)
{
    uid_t uid;

    return net_peer_uid(fd, peer, &uid) && uid == geteuid();
}
