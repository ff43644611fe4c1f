/* testruntime: a real silica-runtime on a control stream of its own, without a sandbox around it. Only for tests; aborts
 * when it cannot.
 */
#ifndef SILICA_SANDBOX_TESTRUNTIME_H
#define SILICA_SANDBOX_TESTRUNTIME_H

#include <sys/types.h>

/* Returns our end of the stream. The runtime ends when that is closed, or with us; the caller reaps it. */
int testruntime_start(pid_t *ret_pid);

#endif
