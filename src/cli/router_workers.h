/* router_workers: several processes that are one router, and the one that keeps them.
 *
 * It listens, forks the workers, and starts one that died again; it serves what monitors look at, and hands a signal to
 * end on. It passes no request itself.
 *
 * Listens:  at an address of its own with one socket for each worker, among which the kernel deals connections out evenly
 *           (SO_REUSEPORT); a socket that was given is one queue, from which the worker takes that comes first. It holds
 *           all of them itself, too: who is in the queue of a worker that was killed waits for the next one.
 * Counts:   in memory made before the first fork (router/tally.h, kubeclient/counts.h), so that nothing goes back.
 * Forks:    and does not exec: that memory, the sockets and the options are the workers' as they are. It has one thread.
 * Used by:  cli/router.c.
 */
#ifndef SILICA_CLI_ROUTER_WORKERS_H
#define SILICA_CLI_ROUTER_WORKERS_H

#include "cli/router_options.h"

struct counts;
struct tally_board;

/* What a worker is given. */
struct router_seat {
    unsigned number;                 /* from 0 */
    int plain_fd, tls_fd, tunnel_fd; /* listen already, and are taken; -1: closed */
    struct tally_board *board;
    struct counts *counts;
};

/* Until it is told to end; the exit code. o->workers is more than one. */
int router_workers(const struct router_options *o);

/* router.c: one process, until it is told to end; the exit code. seat NULL: it is the only one, and listens itself. */
int router_serve(const struct router_options *o, const struct router_seat *seat);

#endif
