/* child: signals and the end of child processes.
 *
 * One reaper per process: SIGCHLD arrives on a signalfd, waitpid(-1) takes every zombie, and a table tells who
 * waits for which pid. A process that is PID 1 or a subreaper has to take orphans anyway, and a reaper beside
 * pidfds would race with them. A pid in the table has not been waited for, so it cannot have been reused: kill()
 * by pid from the loop's thread is exact.
 *
 * Owns:     the signalfd, the table, the blocked mask (all signals watched are blocked in every thread; a spawned
 *           child gets an empty mask).
 * Threads:  the loop's. Call ev_children_open before any thread is started.
 */
#ifndef SILICA_EV_CHILD_H
#define SILICA_EV_CHILD_H

#include "ev/loop.h"

#include <sys/types.h>

struct ev_children;

/* A child somebody waits for. Embedded by its owner. */
struct ev_child {
    struct ev_child *next; /* in its bucket */
    pid_t pid;
    ev_fn fn;
    void *ctx;
    int wait_status; /* as waitpid gives it; valid once fn runs */
};

typedef void (*ev_signal_fn)(void *ctx, int signal_number);

/* `signals` (0-terminated, or NULL) are reported to fn as well, but for those that whoever started us had ignored, as
 * nohup and a shell's & do: they stay without effect on us, while what we spawn has the default action for them. */
int ev_children_open(struct ev_loop *loop, const int *signals, ev_signal_fn fn, void *ctx,
                     struct ev_children **ret, struct err *e);
void ev_children_close(struct ev_children *kids);

/* A spawn on another thread may end, and be reaped here, before its pid is known: between begin and end the
 * statuses of unknown pids are kept. Each begin has one end, which gets what begin returned: so a status is dropped
 * as soon as nobody can ask for it, even if spawns never cease, and a pid that comes round again meets no old one. */
unsigned ev_child_spawn_begin(struct ev_children *kids);
void ev_child_spawn_end(struct ev_children *kids, unsigned epoch);

/* fn(ctx) runs once, in a later turn, when the child has ended. Call between begin and end, or in the callback that
 * started the child on the loop's own thread. */
void ev_child_watch(struct ev_children *kids, struct ev_child *c, pid_t pid, ev_fn fn, void *ctx);
/* Stops waiting; the child will be reaped as an orphan. */
void ev_child_forget(struct ev_children *kids, struct ev_child *c);
/* True while pid is a child somebody waits for. */
bool ev_child_is_known(const struct ev_children *kids, pid_t pid);
/* Orphans taken so far. */
uint64_t ev_children_orphans(const struct ev_children *kids);

#endif
