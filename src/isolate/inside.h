/* inside: the life of a sandbox's first process between its clone and its exec: it builds the root, gives everything
 * up, and becomes PID 1's program.
 *
 * Used by:  box.c, right after clone3, in the child.
 * Report:   on gate_fd. It first waits there for the parent's INSIDE_GO (the maps are written, the cgroups joined), and
 *           before the exec for INSIDE_PROGRAM (the program is complete and sealed). Then it sends INSIDE_READY, or
 *           INSIDE_FAILED and a struct err at any time. READY and then the end is success; the end alone is a death.
 */
#ifndef SILICA_ISOLATE_INSIDE_H
#define SILICA_ISOLATE_INSIDE_H

#include "isolate/frame.h"
#include "isolate/plan.h"
#include "isolate/program.h"
#include "isolate/strand.h"

#define INSIDE_CONTROL_FD 3 /* what PID 1 is told with --control-fd */
#define INSIDE_STATUS_FD  4 /* and with --status-fd */

enum inside_word { INSIDE_GO = 'g', INSIDE_PROGRAM = 'p', INSIDE_READY = 'r', INSIDE_FAILED = 'f' };

struct inside {
    const struct plan *plan;
    const int *held_fds; /* trees the parent holds, one for each row, or -1 */
    struct frame frame;  /* of a plan that has one */
    int net_fd;          /* the network it is born in, the parent's to enter; -1: none */
    int gate_fd;
    int control_fd;
    int parents_fds
        [2]; /* the other ends, copied to us by the clone: while we hold them we see no end of the parent */
    const struct program *program;
    int runtime_fd;     /* what the child makes of it */
    int log_fd, err_fd; /* -1: nowhere */
    int status_fd;      /* -1: none */
    int parent_pidfd; /* of a parent that is not at the gate; -1: the one at the gate is the parent */
    bool has_network;   /* it was made before us: the loopback is up, and not ours to change */
    bool has_names;     /* the host name is that of another sandbox, which we join */
    int own_namespaces; /* CLONE_NEW* of those that it makes itself, beside its root */
    char *const *argv;
    char *const *envp;
    struct strand *second; /* for the second thread of setup; NULL: one of the C library's */
};

/* In the network namespace we are in. */
/* Of the network we are in; sys_fd: /proc/sys. */
void inside_shrink_sockets(int sys_fd);
int inside_bring_up_loopback(struct err *e);
/* A struct inside. In a copy of the parent's memory or, on a strand, in that memory itself: it writes nothing there. */
_Noreturn void inside_run(void *in);

#endif
