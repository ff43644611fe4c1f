/* packet: whole packets on SOCK_SEQPACKET sockets, with descriptors beside them.
 *
 * Owns:     nothing. Descriptors that come close on exec; those that find no room are closed, never leaked.
 * Used by:  isolate (keeper, spawner, engine), node and router (sockets).
 */
#ifndef SILICA_BASE_PACKET_H
#define SILICA_BASE_PACKET_H

#include "base/buf.h"

#include <sys/uio.h>

#define PACKET_FDS_MAX 8

/* All of it or -1. ERR_CLOSED: nobody is there. ERR_BUSY: a non-blocking socket is full. */
int packet_send(int fd, struct iovec *parts, size_t part_count, const int *fds, size_t fd_count,
                struct err *e);
/* One packet into the parts; *fd_count has the room in fds before, and how many came after. ERR_CLOSED: the end.
 * ERR_LIMIT: it was larger. ERR_BUSY: none is there yet. */
int packet_receive(int fd, struct iovec *parts, size_t part_count, size_t *ret_n, int *fds,
                   size_t *fd_count, struct err *e);

#endif
