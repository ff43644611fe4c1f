/* exits: tells when the command of a sandbox has ended, by what its keeper then writes into its directory. The kernel
 * watches that for us: a sandbox costs no descriptor and no thread.
 *
 * Owns:     one inotify descriptor, a name for each sandbox that is watched.
 * Used by:  work.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_NODE_EXITS_H
#define SILICA_NODE_EXITS_H

#include "ev/loop.h"

struct exits;

/* Its end was written down. Borrowed. */
typedef void (*exits_fn)(void *ctx, const char *box);

/* dir: the engine's data directory. */
int exits_open(struct ev_loop *loop, const char *dir, exits_fn fn, void *ctx, struct exits **ret,
               struct err *e);
void exits_close(struct exits *x); /* tolerates NULL */
/* *ret_is_over: it had ended before; that is not told. Again is no error. -1: its end will not be told, and somebody has to
 * look now and then. */
int exits_watch(struct exits *x, const char *box, bool *ret_is_over, struct err *e);

#endif
