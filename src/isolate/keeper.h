/* keeper: the process that long-lived sandboxes belong to, one for each data directory. It is the parent of every PID 1,
 * reaps them, writes how they ended, and brings their output to disk; callers come and go on its socket.
 *
 *     caller --engine.sock--> keeper --pair--> spawner --clone(CLONE_PARENT)--> PID 1
 *                                ^--------- the end of each PID 1, its output ----'
 *
 * Owns:     the data directory's lock, the spawner, every sandbox that runs. If it is killed its sandboxes end with it;
 *           the next keeper, or `silica doctor --clean`, clears up (sweep.h).
 * Cost:     of an idle sandbox: no task, and two descriptors for the output of its main command, if it has one.
 * Used by:  `silica keeper`, which is started by engine_open. One loop, one thread, nothing that blocks for long: what
 *           does is the spawner's work, or the caller's.
 */
#ifndef SILICA_ISOLATE_KEEPER_H
#define SILICA_ISOLATE_KEEPER_H

#include "isolate/box.h"

struct keeper_spec {
    const char *dir;
    int runtime_fd;        /* the program of PID 1, sealed */
    int ready_fd;          /* closed when the socket listens; -1: none */
    uint64_t linger_ms;    /* without sandboxes and callers it ends after this long */
    struct box_limits all; /* of all sandboxes together; 0: what default_limits_all gives */
};

/* Until nobody needs it any more, or TERM. ERR_EXISTS: another keeper has this directory. */
int keeper_run(const struct keeper_spec *spec, struct err *e);

#endif
