/* strand: a child process, or a thread of one, that runs in our memory instead of a copy of it. As after vfork, but we do not
 * stop: it has a stack and a thread block (errno and its like) of its own. What a fork costs instead is a copy of the page
 * tables, a fault for each page that either side then writes, and taking the copy apart at the exec: a tenth of a sandbox.
 *
 * Owns:     a stack and a thread block; the last two are kept for the next that asks.
 * Used by:  box.c for the first process of a sandbox, inside.c for the second thread of its setup.
 * Threads:  any. Every signal is blocked in the child: a handler of ours must not run there, on our memory.
 * Rules:    what runs on one allocates nothing, prints nothing and takes no lock of the C library; of our memory it writes only
 *           what is its own by agreement. We keep what it reads until it has executed another program or is dead. A change of
 *           ids there makes our memory undumpable, as it is the same: box.c puts that right.
 * Where:    strand_take returns NULL where the layout of a thread block is not known (a processor that is not x86-64, a
 *           program that is not static, a sanitizer): then there is fork, and pthread_create.
 */
#ifndef SILICA_ISOLATE_STRAND_H
#define SILICA_ISOLATE_STRAND_H

#include "base/own.h"

#include <linux/sched.h>
#include <sys/types.h>

struct strand;
typedef void (*strand_fn)(void *ctx); /* does not return */

struct strand *strand_take(void);
void strand_give(struct strand *s); /* when nothing runs on it any more */

/* A process as the arguments say, which begins with fn(ctx). Its pid, or -1 with errno. */
pid_t strand_process(struct strand *s, struct clone_args *args, strand_fn fn, void *ctx);
/* A thread of the calling process. */
pid_t strand_thread(struct strand *s, strand_fn fn, void *ctx);
/* The end of a thread's fn. */
_Noreturn void strand_exit(void);
/* Until a thread is gone. */
void strand_join(struct strand *s);

#endif
