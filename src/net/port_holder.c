#include "net/port_holder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANSWERS_MAX_BYTES 8192
#define ANSWERS_MAX       64 /* packets of one dump: few sockets listen on one port */
#define COMM_BYTES        16

/* ---- the socket ---- */

struct listening {
    uint32_t inode;
    uid_t uid;
    bool is_everywhere;
};

static bool is_in_the_way(const struct inet_diag_msg *m, const struct net_addr *at,
                          struct listening *ret)
{
    static const __be32 any[4] = { 0 };
    const struct sockaddr_in *want = (const struct sockaddr_in *)(const void *)&at->sa;
    bool is_any = memcmp(m->id.idiag_src, any, m->idiag_family == AF_INET ? 4 : sizeof any) == 0;

    if (m->id.idiag_sport != want->sin_port ||
        (!is_any && (m->idiag_family != AF_INET || m->id.idiag_src[0] != want->sin_addr.s_addr)))
        return false;
    *ret = (struct listening){ m->idiag_inode, m->idiag_uid, is_any };
    return true;
}

/* Its answers, to the end of the dump. */
static bool read_dump(int fd, const struct net_addr *at, struct listening *ret)
{
    _Alignas(struct nlmsghdr) char bytes[ANSWERS_MAX_BYTES];
    bool is_found = false;

    for (int i = 0; i < ANSWERS_MAX; i++) {
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        struct nlmsghdr *head = (struct nlmsghdr *)(void *)bytes;

        if (n <= 0)
            return is_found;
        for (; NLMSG_OK(head, (size_t)n); head = NLMSG_NEXT(head, n)) {
            if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
                return is_found; /* NLMSG_DONE, or an error */
            if (!is_found && head->nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
                is_found = is_in_the_way(NLMSG_DATA(head), at, ret);
        }
    }
    return is_found;
}

static bool find_socket(uint8_t family, const struct net_addr *at, struct listening *ret)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 want;
    } rq = {
        .head = { .nlmsg_len = sizeof rq,
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .want = { .sdiag_family = family,
                  .sdiag_protocol = IPPROTO_TCP,
                  .idiag_states = 1u << TCP_LISTEN,
                  .id.idiag_sport = ((const struct sockaddr_in *)(const void *)&at->sa)->sin_port },
    };
    const struct timeval patience = { .tv_sec = 1 };
    OWN_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           send(fd, &rq, sizeof rq, 0) == (ssize_t)sizeof rq && read_dump(fd, at, ret);
}

/* ---- the process ---- */

static void own_dir_close(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

static bool holds(int proc_fd, const char *pid, const char *socket_name)
{
    char path[NAME_MAX + 4], target[64];
    OWN(own_dir_close) DIR *dir = NULL;
    const struct dirent *entry;
    int fd;

    (void)snprintf(path, sizeof path, "%s/fd", pid);
    fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return false;
    }
    while ((entry = readdir(dir))) {
        ssize_t n = readlinkat(fd, entry->d_name, target, sizeof target - 1);

        target[MAX(n, 0)] = '\0';
        if (strcmp(target, socket_name) == 0)
            return true;
    }
    return false;
}

static void read_comm(int proc_fd, const char *pid, char comm[COMM_BYTES + 1])
{
    char path[NAME_MAX + 8];
    ssize_t n = -1;

    (void)snprintf(path, sizeof path, "%s/comm", pid);
    OWN_FD int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0)
        n = read(fd, comm, COMM_BYTES);
    comm[MAX(n, 0)] = '\0';
    comm[strcspn(comm, "\n")] = '\0';
    for (char *c = comm; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static bool find_process(const struct listening *l, char text[NET_PORT_HOLDER_BYTES])
{
    OWN(own_dir_close) DIR *proc = opendir("/proc");
    char name[32], comm[COMM_BYTES + 1];
    const struct dirent *entry;

    (void)snprintf(name, sizeof name, "socket:[%u]", l->inode);
    while (proc && (entry = readdir(proc))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            !holds(dirfd(proc), entry->d_name, name))
            continue;
        read_comm(dirfd(proc), entry->d_name, comm);
        (void)snprintf(text, NET_PORT_HOLDER_BYTES, "%s (pid %.16s, user %u)", comm, entry->d_name,
                       l->uid);
        return true;
    }
    return false;
}

/* ---- verbs ---- */

static bool find(const struct net_addr *at, struct listening *l, struct net_port_holder *ret)
{
    if (at->sa.ss_family != AF_INET ||
        (!find_socket(AF_INET, at, l) && !find_socket(AF_INET6, at, l)))
        return false;
    ret->is_everywhere = l->is_everywhere;
    ret->uid = l->uid;
    (void)snprintf(ret->text, sizeof ret->text, "a program of user %u", l->uid);
    return true;
}

bool net_port_holder_find(const struct net_addr *at, struct net_port_holder *ret)
{
    struct listening l;

    if (!find(at, &l, ret))
        return false;
    (void)find_process(&l, ret->text);
    return true;
}

bool net_port_holder_find_user(const struct net_addr *at, struct net_port_holder *ret)
{
    struct listening l;

    return find(at, &l, ret);
}
