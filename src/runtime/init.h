/* init: the runtime as PID 1: the main command, signals, the end.
 *
 * With a command: TERM, INT and the rest go to it, and its exit status becomes ours. Without: TERM or INT stop the
 * server, gracefully.
 */
#ifndef SILICA_RUNTIME_INIT_H
#define SILICA_RUNTIME_INIT_H

#include "runtime/runtime.h"

int init_start(struct runtime *rt, char **command, struct err *e);
/* An ev_signal_fn; ctx is the runtime. */
void init_signal(void *ctx, int signal_number);
/* Ends the main command, then everything; for who has lost the one it served. */
void init_stop(struct runtime *rt);
int init_exit_status(void);
/* When all is over: what the main command left for whoever reads of its end. As PID 1 the last one to say anything. */
void init_say_last_words(const struct runtime *rt);

#endif
