/* proc: processes as /proc shows them, and signals that cannot hit a stranger.
 *
 * Owns:     a table owns its rows. A process is its pid and its start time together: a pid alone may have been
 *           given to somebody else since.
 * Used by:  runtime/tree.c. Blocks (reads files): not for the loop's thread.
 */
#ifndef SILICA_RUNTIME_PROC_H
#define SILICA_RUNTIME_PROC_H

#include "base/own.h"

#include <sys/types.h>

#define PROC_MAX 65536 /* rows and children we look at; pid_max is 32,768 by default */

struct proc {
    pid_t pid, ppid, pgrp, session;
    uint64_t start;   /* clock ticks since boot */
    unsigned threads; /* a zombie with more than one still runs: only its first thread has ended */
    char state;       /* R S D T t Z X I */
    bool has_execed;  /* false between fork and exec */
    bool
        is_exiting; /* on its way out: forks nothing any more, but its children may still be listed below it */
};

struct proc_table {
    struct proc *rows; /* by rising pid */
    size_t n, cap;
};

/* False when it is gone (or /proc is not there). */
bool proc_read(pid_t pid, struct proc *ret);
/* False also when nothing of it can run any more. */
bool proc_is_alive(const struct proc *p);
bool proc_is_stopped(const struct proc *p);

typedef void (*proc_child_fn)(void *ctx, pid_t pid);
/* Tells every child of every thread of pid. False when this kernel does not list them. */
bool proc_children(pid_t pid, proc_child_fn fn, void *ctx);

/* Everything in this pid namespace. */
void proc_table_read(struct proc_table *t);
void proc_table_done(struct proc_table *t);
const struct proc *proc_table_find(const struct proc_table *t, pid_t pid);

/* True when one of its descriptors is `links[i]`, as "pipe:[4711]" or "/dev/pts/3". */
bool proc_holds(pid_t pid, const char *const *links, size_t count);
/* True when it runs the same program file as we do. */
bool proc_is_our_program(pid_t pid);

/* Sends the signal if pid still is the process that began at `start`. False when it is not, or we may not. */
bool proc_signal(pid_t pid, uint64_t start, int sig);
/* On a pidfd; 0 as signal asks whether it has not been reaped yet. */
bool proc_signal_fd(int pid_fd, int sig);
/* -1 when there is no such process. */
int proc_open(pid_t pid);

#endif
