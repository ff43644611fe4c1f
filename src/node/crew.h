/* crew: calls of the isolation engine, which block, carried out by a few threads. And the keeper's end, told.
 *
 *     crew_submit(crew, &job, run, done, self);      run(self, engine, NULL) on a thread, then done(self) on the loop
 *
 * Owns:     the threads and one handle of the engine for each of them that works, opened on need; the connection by which
 *           the end of the keeper is noticed.
 * Threads:  the loop's, but for run. A job is its owner's memory and must live until done, which comes exactly once.
 * Keeper:   is started where there is none. When it is killed its sandboxes end with it: on_lost comes once the next keeper has
 *           written that down, so that whoever looks then sees it.
 */
#ifndef SILICA_NODE_CREW_H
#define SILICA_NODE_CREW_H

#include "ev/worker.h"
#include "isolate/engine.h"

struct crew;

struct crew_spec {
    const char *data;      /* the engine's data directory; made where it is missing */
    struct box_limits all; /* of all sandboxes together, for a keeper that is started */
    ev_fn on_lost;
    void *ctx;
};

/* Blocks until a keeper serves. */
int crew_open(struct ev_loop *loop, const struct crew_spec *spec, struct crew **ret, struct err *e);
/* Waits for what is under way. done of all jobs has run on return. Not for callbacks; tolerates NULL. */
void crew_close(struct crew *c);

/* en NULL: there is no engine to be had, e says why. */
typedef void (*crew_run_fn)(void *ctx, struct engine *en, const struct err *e);

struct crew_job {
    struct ev_work work;
    struct crew *crew;
    crew_run_fn run;
    ev_fn done;
    void *ctx;
};
void crew_submit(struct crew *c, struct crew_job *job, crew_run_fn run, ev_fn done, void *ctx);
/* The engine's data directory. */
const char *crew_dir(const struct crew *c);

#endif
