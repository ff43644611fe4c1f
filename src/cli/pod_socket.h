/* pod_socket: the socket between the API server and the node: the node listens, the API server passes streams on. Others
 * between processes of ours are found and made in the same way.
 *
 * Owns:     a descriptor of the socket's directory: a path to a socket has 107 bytes at most, so it is reached through that.
 * Used by:  cli/apiserver.c, which connects (--pod-socket); cli/node.c, which listens; cli/router.c.
 */
#ifndef SILICA_CLI_POD_SOCKET_H
#define SILICA_CLI_POD_SOCKET_H

#include "apiserver/pods.h"

struct pod_socket {
    struct pods pods; /* for the API server: every Pod that has a node is there */
    int dir_fd;
    struct net_addr addr;
};

/* The directory must be there; it is the owner's to keep others out. */
int pod_socket_open(struct pod_socket *s, const char *path, struct err *e);
void pod_socket_close(struct pod_socket *s);
/* A listening socket in place of what is there, for its owner alone. The caller's. */
int pod_socket_listen(const struct pod_socket *s, int *ret_fd, struct err *e);

#endif
