#include "base/packet.h"

#include <errno.h>
#include <sys/socket.h>

union room {
    char bytes[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
    struct cmsghdr align;
};

static int fail(struct err *e, const char *what)
{
    (void)err_sys(e, "cannot %s a packet", what);
    if (e->sys == EAGAIN)
        e->code = ERR_BUSY;
    if (e->sys == EPIPE || e->sys == ECONNRESET || e->sys == ENOTCONN)
        e->code = ERR_CLOSED;
    return -1;
}

int packet_send(int fd, struct iovec *parts, size_t part_count, const int *fds, size_t fd_count,
                struct err *e)
{
    union room room = { .bytes = { 0 } };
    struct msghdr m = { .msg_iov = parts, .msg_iovlen = part_count };

    assert(fd_count <= PACKET_FDS_MAX);
    if (fd_count) {
        m.msg_control = room.bytes;
        m.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        *CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                               .cmsg_type = SCM_RIGHTS,
                                               .cmsg_len = CMSG_LEN(fd_count * sizeof(int)) };
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, fd_count * sizeof(int));
    }
    if (TEMP_FAILURE_RETRY(sendmsg(fd, &m, MSG_NOSIGNAL)) < 0)
        return fail(e, "send");
    return 0;
}

/* What came, into the caller's room; the rest is closed. */
static size_t take_fds(struct msghdr *m, int *fds, size_t room)
{
    size_t n = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (n < room)
                fds[n++] = fd;
            else
                (void)close(fd);
        }
    }
    return n;
}

int packet_receive(int fd, struct iovec *parts, size_t part_count, size_t *ret_n, int *fds,
                   size_t *fd_count, struct err *e)
{
    union room room;
    struct msghdr m = { .msg_iov = parts,
                        .msg_iovlen = part_count,
                        .msg_control = room.bytes,
                        .msg_controllen = sizeof room.bytes };
    ssize_t n = TEMP_FAILURE_RETRY(recvmsg(fd, &m, MSG_CMSG_CLOEXEC));
    size_t came;

    if (n < 0)
        return fail(e, "receive");
    came = take_fds(&m, fds, fd_count ? *fd_count : 0);
    if (n > 0 && !(m.msg_flags & MSG_TRUNC)) {
        if (fd_count)
            *fd_count = came;
        *ret_n = (size_t)n;
        return 0;
    }
    while (came)
        (void)close(fds[--came]);
    return n == 0 ? err_set(e, ERR_CLOSED, "the peer has gone")
                  : err_set(e, ERR_LIMIT, "a packet that is too large");
}
