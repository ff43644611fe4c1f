/* job: the blocking part of one request, on a worker, and its answer.
 *
 * Embedded first in the handler's own struct. `run` works on a thread and must not touch x; `answer` runs on the loop
 * and only while the client is still there; `free` always, last.
 */
#ifndef SILICA_RUNTIME_JOB_H
#define SILICA_RUNTIME_JOB_H

#include "runtime/runtime.h"

struct job {
    struct ev_work work;
    struct runtime *rt;
    struct http_exchange *x; /* NULL once the client is gone */
    void (*run)(struct job *j);
    void (*answer)(struct job *j);
    void (*free)(struct job *j);
    struct err err; /* for run to fill; code ERR_NONE is success */
};

/* Takes j. */
void job_start(struct job *j, struct runtime *rt, struct http_exchange *x);

#endif
