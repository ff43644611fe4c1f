/* sandbox_check: a sandbox is made before a server says that it serves, by the engine that will make those of its Pods.
 *
 * Used by:  up_run.c, node.c. `silica doctor` makes several, and looks at them.
 * Blocking: until it is made and removed: some 5 ms, and as long again for the keeper where none runs yet.
 * Threads:  of a process with one (host_check.h).
 */
#ifndef SILICA_CLI_SANDBOX_CHECK_H
#define SILICA_CLI_SANDBOX_CHECK_H

#include "isolate/box.h"

/* data: the directory whose keeper makes it. What went wrong names the setting of the host that is in the way, with what to
 * change as the hint. */
/* all: what all sandboxes may take together, for a keeper that is started. */
int sandbox_check(const char *data, const struct box_limits *all, struct err *e);

#endif
