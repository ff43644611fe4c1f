/* spawner: the process that makes boxes for the keeper, one at a time. It may block, so the keeper need not.
 *
 *     keeper --(what is wanted, descriptors)--> spawner --clone(CLONE_PARENT)--> PID 1, the keeper's child
 *            <--(its record, or what failed)--
 *
 * Owns:     nothing that outlives it: a box it made is the keeper's from birth, and a new spawner goes on where the last
 *           one was killed.
 * Used by:  keeper.c, which forks it before anything else and again when it dies. One thread, no loop.
 * Wire:     packets of one program's own structs; both ends are the same binary.
 */
#ifndef SILICA_ISOLATE_SPAWNER_H
#define SILICA_ISOLATE_SPAWNER_H

#include "isolate/adopt.h"

/* What travels with a request, in this order. */
enum spawner_fd {
    SPAWNER_CONTROL, /* the listening socket for PID 1 */
    SPAWNER_OUT,
    SPAWNER_ERR,
    SPAWNER_STATUS,
    SPAWNER_JOIN,   /* a pidfd of the sandbox to join */
    SPAWNER_CELLAR, /* where its volumes are that are memory */
    SPAWNER_FDS,
};

/* Followed by the spec as JSON. */
struct spawner_ask {
    bool has[SPAWNER_FDS]; /* which of them come along */
    uint32_t ids_base;     /* the range of ids that the keeper holds for it; 0: none */
};

struct spawner_answer {
    bool is_made;
    struct box_record box;
    char unenforced[BOX_UNENFORCED_MAX_BYTES];
    struct err e; /* why it was not made */
};

struct spawner_spec {
    int fd;         /* our end of the pair; a packet is a request */
    int runtime_fd; /* the program of PID 1 */
    int keeper_pidfd;
    const struct cgroup *parent; /* groups above all it makes */
    int engine_fd;               /* the user namespace to stay in, for an account; -1: ours */
};

/* Until the keeper closes its end. */
_Noreturn void spawner_run(const struct spawner_spec *spec);

#endif
