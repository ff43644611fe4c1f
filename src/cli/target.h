/* target: the long-lived sandbox that a command line names, and what to say when it is not one to talk to.
 *
 * Owns:     the engine's handle.
 * Used by:  exec.c, cp.c, freeze.c, stats.c, logs.c.
 */
#ifndef SILICA_CLI_TARGET_H
#define SILICA_CLI_TARGET_H

#include "isolate/engine.h"

/* The row of a command's option table for where sandboxes are kept; `field` as the table's AT(). */
#define TARGET_DATA_OPT(field)                                                                     \
    {                                                                                              \
        "--data", "SILICA_DATA", OPT_STR, field, NULL, 0, 0, "DIR",                                \
            "where long-lived sandboxes are kept"                                                  \
    }

/* -1: ERR_NOT_FOUND with a hint when nothing was ever kept there. */
int target_open(const char *data, struct engine **ret, struct err *e);
/* -1: ERR_NOT_FOUND; its hint has the nearest name. */
int target_get(struct engine *en, const char *name, struct engine_info *ret, struct err *e);
/* A connected stream to its PID 1. -1 at once, with a hint, when nobody would answer on it: it is paused, or has ended. */
int target_control(struct engine *en, const char *name, int *ret_fd, struct err *e);
/* A command waited for an answer and got none: was it paused meanwhile? Then that is the error. */
void target_explain(struct engine *en, const char *name, struct err *e);

#endif
