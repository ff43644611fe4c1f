#include "cli/pod_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG 1024

static int find(struct pods *pods, const struct object *pod, struct net_addr *ret, struct err *e)
{
    const char *node = object_text(pod, "spec.nodeName");

    if (!node || !*node)
        return err_set(e, ERR_NOT_FOUND, "pod %s has no node", object_name(pod));
    *ret = CONTAINER(pods, struct pod_socket, pods)->addr;
    return 0;
}

static const struct pods_ops ops = { .find = find };

int pod_socket_open(struct pod_socket *s, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    OWN_MEM char *dir =
        span_dup(slash ? span_of(path, MAX((size_t)(slash - path), (size_t)1)) : SPAN("."));
    char text[NET_ADDR_TEXT_BYTES];

    s->pods.ops = &ops;
    s->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->dir_fd < 0)
        return err_sys(e, "cannot open '%s'", dir);
    if (!*name || snprintf(text, sizeof text, "unix:/proc/self/fd/%d/%s", s->dir_fd, name) >=
                      (int)sizeof text) {
        pod_socket_close(s);
        return err_set(e, ERR_USAGE, "'%.100s' cannot be a socket's name", name);
    }
    if (net_addr_parse(text, &s->addr, e) == 0)
        return 0;
    pod_socket_close(s);
    return -1;
}

void pod_socket_close(struct pod_socket *s)
{
    own_fd_close(&s->dir_fd);
}

int pod_socket_listen(const struct pod_socket *s, int *ret_fd, struct err *e)
{
    const struct sockaddr_un *un = (const void *)&s->addr.sa;
    const char *name = strrchr(un->sun_path, '/') + 1;
    OWN_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_sys(e, "cannot make a socket");
    if (unlinkat(s->dir_fd, name, 0) < 0 && errno != ENOENT)
        return err_sys(e, "cannot remove the old '%s'", name);
    if (fchmod(fd, 0600) < 0 || /* the mode that its file is born with */
        bind(fd, (const struct sockaddr *)&s->addr.sa, s->addr.len) < 0 || listen(fd, BACKLOG) < 0)
        return err_sys(e, "cannot listen on '%s'", name);
    *ret_fd = take_fd(&fd);
    return 0;
}
