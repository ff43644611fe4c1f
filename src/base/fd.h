/* fd: whole reads and writes on blocking descriptors, for the places where short ones are errors, not luck.
 *
 * Owns:     nothing. Never called on the loop's thread with a peer on the other end.
 */
#ifndef SILICA_BASE_FD_H
#define SILICA_BASE_FD_H

#include "base/buf.h"

#include <sys/resource.h>

int fd_write_all(int fd, struct span s, struct err *e);
/* Exactly n bytes, else -1: ERR_CLOSED at end of file. */
int fd_read_exact(int fd, void *p, size_t n, struct err *e);
/* To end of file, into out (its ceiling holds). */
int fd_read_all(int fd, struct buf *out, struct err *e);
/* A small file such as one of /proc, by path. */
int fd_read_file(const char *path, struct buf *out, struct err *e);
int fd_set_nonblock(int fd, struct err *e);
/* An empty file in memory, to be written and then sealed. `name` shows in /proc. */
int fd_open_program(const char *name, struct err *e);
/* What was written, and never mapped, becomes a program that nobody can change any more. */
int fd_seal_program(int fd, struct err *e);
/* A descriptor that reads as empty: /dev/null, or a sealed file of no bytes where a root has no /dev. */
int fd_open_null(struct err *e);
/* A directory with keys and files of ours in it: it is ours, and others can neither enter nor list it. `path` is for the
 * error, ERR_DENIED with what to do. */
int fd_check_own_dir(int fd, const char *path, struct err *e);
/* Opens those of 0, 1 and 2 that are closed, so that no later file or socket gets their numbers and with them what
 * is meant for stderr. For the first line of main(). */
int fd_fill_stdio(struct err *e);
/* This process may have as many descriptors as it can allow itself. *ret_before: as it was, for the programs it starts. */
int fd_raise_limit(struct rlimit *ret_before, struct err *e);

#endif
