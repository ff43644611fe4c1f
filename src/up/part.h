/* part: one process of `silica up`: started, listened to, started again when it dies, ended in order.
 *
 *     struct part *p = part_new(loop, kids, &(struct part_spec){ .name = "control", .argv = argv, ... });
 *     part_start(p) ... part_stop(p, 5000) ... on_change: part_state(p) == PART_ENDED ... part_free(p)
 *
 * Owns:     the process, and the ends of two pipes: what it says on its standard output is lines for us, of which the
 *           first means that it serves; what it says on its standard error goes to its log (isolate/logfile.h).
 * Listener: its standard input is a socket that we hold and it accepts from: while it is dead, callers wait in the queue.
 * Ends:     with us, however we end: the kernel kills it (SPAWN_TIED). It has a process group of its own, so that a Ctrl-C
 *           is ours alone to pass on.
 * Used by:  cli/up.c.
 * Threads:  the loop's.
 */
#ifndef SILICA_UP_PART_H
#define SILICA_UP_PART_H

#include "ev/child.h"

struct part;

enum part_state {
    PART_ABSENT,   /* not started yet */
    PART_STARTING, /* runs, and has not said yet that it serves */
    PART_SERVING,
    PART_WAITING, /* died; the next one starts after a pause */
    PART_ENDING,  /* was asked to end */
    PART_ENDED,
};

struct part_spec {
    const char *name;        /* "control"; a constant */
    const char *const *argv; /* words after our own program's; copied */
    int listen_fd;           /* borrowed; -1: its input is empty */
    int log_fd;              /* the directory of its log; taken */
    bool is_loud;            /* its log goes to our standard error, too */
    /* What it said on its output, without the newline; borrowed for the call. */
    void (*on_line)(void *ctx, struct part *p, struct span line);
    /* Its state is another. After PART_ENDED nothing more comes. */
    void (*on_change)(void *ctx, struct part *p);
    void *ctx;
};

struct part *part_new(struct ev_loop *loop, struct ev_children *kids, const struct part_spec *spec);
/* on_change tells what becomes of it; also that it could not be started. */
void part_start(struct part *p);
/* TERM, and KILL when it is still there after that time. */
void part_stop(struct part *p, uint64_t patience_ms);
/* Only in PART_ABSENT and PART_ENDED. Tolerates NULL. */
void part_free(struct part *p);

const char *part_name(const struct part *p);
enum part_state part_state(const struct part *p);
const char *part_state_name(enum part_state s);
pid_t part_pid(const struct part *p); /* 0: none now */
unsigned part_restarts(const struct part *p);
int part_wait_status(const struct part *p); /* of the last one that ended, as waitpid gives it */
bool part_has_served(const struct part *p); /* at least once */
/* The end of what it wrote to its log before it first served: why it could not. */
struct span part_last_words(const struct part *p);

#endif
