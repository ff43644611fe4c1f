/* kept: `silica run -d` and `--keep`: the sandbox is the keeper's, and may outlive us.
 *
 * Used by:  run.c.
 */
#ifndef SILICA_CLI_KEPT_H
#define SILICA_CLI_KEPT_H

#include "cli/session.h"
#include "isolate/box.h"

struct kept_run {
    struct box_spec *spec;
    struct session_spec *session; /* the command, its time, its terminal */
    const char *data;             /* --data */
    const char *join;             /* --join */
    bool is_kept, is_detached, is_json;
};

/* Returns the exit code. */
int kept_run(const struct kept_run *r);

#endif
