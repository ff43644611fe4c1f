/* owner: the owner of the sandbox on its control stream, as proto/talk has it: commands with their input, output and end.
 *
 * Owns:     its connections and the commands that came on them.
 * Used by:  main.c, which has the HTTP server give such connections away; init.c at the end.
 * Threads:  the loop's.
 * Life:     a connection that ends takes its commands with it, each with all that descends from it.
 * Hostile:  frames are judged by proto/talk. What breaks the rules loses its connection.
 */
#ifndef SILICA_RUNTIME_OWNER_H
#define SILICA_RUNTIME_OWNER_H

#include "runtime/runtime.h"

/* An on_stranger of the HTTP server; ctx is the runtime. */
void owner_take(void *runtime, struct conn *conn, struct span first);
/* When one of its connections has ended. */
void owner_on_closed(ev_fn fn, void *ctx);
/* Sends what waits and closes; done(ctx) when none is left, perhaps at once. No command runs any more. */
void owner_finish(ev_fn done, void *ctx);

#endif
